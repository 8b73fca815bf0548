//! AWS::*: types of Amazon, made of objects of OpenStack. Those that share their code with a type of `OS::Heat` are in `heat`.

mod address;
mod address_association;
mod bucket;
mod iam;
mod instance;
mod internet_gateway;
mod launch_configuration;
mod load_balancer;
mod nested_stack;
mod network_interface;
mod route_table;
mod security_group;
mod subnet;
mod translated;
mod volume;
mod vpc;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::call::NEUTRON;
use crate::rest::{RestDriver, Shape};
use translated::Translated;

/// The driver of a type of Amazon.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "AWS::AutoScaling::LaunchConfiguration" => return Some(Arc::new(launch_configuration::LaunchConfiguration)),
        "AWS::CloudFormation::Stack" => return Some(Arc::new(nested_stack::StackAtUrl)),
        "AWS::ElasticLoadBalancing::LoadBalancer" => return Some(Arc::new(load_balancer::LoadBalancer)),
        "AWS::S3::Bucket" => return Some(Arc::new(bucket::Bucket)),
        "AWS::IAM::User" => return Some(Arc::new(iam::User)),
        "AWS::IAM::AccessKey" => return Some(Arc::new(iam::AccessKey)),
        _ => {}
    }
    match resource_type.name.strip_prefix("AWS::EC2::")? {
        "Instance" => Some(Arc::new(instance::Instance::new())),
        "Volume" => Some(Arc::new(Translated::new(crate::cinder::Volume, volume::Volume))),
        "VolumeAttachment" => Some(Arc::new(Translated::new(crate::cinder::VolumeAttachment, volume::Attachment))),
        "SecurityGroup" => of_neutron(resource_type, security_group::SecurityGroup),
        "VPC" => Some(Arc::new(vpc::Vpc)),
        "Subnet" => of_neutron(resource_type, subnet::Subnet),
        "InternetGateway" => Some(Arc::new(internet_gateway::InternetGateway)),
        "VPCGatewayAttachment" => Some(Arc::new(internet_gateway::GatewayAttachment)),
        "RouteTable" => of_neutron(resource_type, route_table::RouteTable),
        "SubnetRouteTableAssociation" => Some(Arc::new(route_table::RouteAssociation)),
        "NetworkInterface" => of_neutron(resource_type, network_interface::NetworkInterface),
        "EIP" => of_neutron(resource_type, address::Address),
        "EIPAssociation" => Some(Arc::new(address_association::AddressAssociation)),
        _ => None,
    }
}

/// A type whose objects are in Neutron, whatever service makes the type available.
fn of_neutron(resource_type: &ResourceType, shape: impl Shape + 'static) -> Option<Arc<dyn Driver>> {
    let mut resource_type = resource_type.clone();
    resource_type.service = vec![NEUTRON.0.to_owned()];
    Some(Arc::new(RestDriver::shaped(&resource_type, shape)?.unshown()))
}
