//! AWS::EC2::*: types of Amazon, made of objects of OpenStack.

mod address;
mod address_association;
mod instance;
mod security_group;
mod translated;
mod volume;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::call::Service;
use crate::rest::{RestDriver, Shape};
use translated::Translated;

/// Neutron.
const NEUTRON: Service = Service("network");
/// Nova.
const NOVA: Service = Service("compute");

/// The driver of a type of Amazon.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("AWS::EC2::")? {
        "Instance" => Some(Arc::new(instance::Instance::new())),
        "Volume" => Some(Arc::new(Translated::new(crate::cinder::Volume, volume::Volume))),
        "VolumeAttachment" => Some(Arc::new(Translated::new(crate::cinder::VolumeAttachment, volume::Attachment))),
        "SecurityGroup" => of_neutron(resource_type, security_group::SecurityGroup),
        "EIP" => of_neutron(resource_type, address::Address),
        "EIPAssociation" => Some(Arc::new(address_association::AddressAssociation)),
        _ => None,
    }
}

/// A type whose objects are in Neutron, whatever service makes the type available.
fn of_neutron(resource_type: &ResourceType, shape: impl Shape + 'static) -> Option<Arc<dyn Driver>> {
    let mut resource_type = resource_type.clone();
    resource_type.service = vec![NEUTRON.0.to_owned()];
    Some(Arc::new(RestDriver::shaped(&resource_type, shape)?))
}
