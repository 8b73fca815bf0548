//! Drivers of resource types, one module per service.

mod alike;
mod aodh;
mod aws;
mod barbican;
mod blazar;
mod call;
mod cinder;
mod designate;
mod glance;
pub mod heat;
mod keystone;
mod magnum;
mod manila;
mod mime;
mod mistral;
mod neutron;
mod nova;
mod octavia;
mod path;
mod queue;
mod quota;
mod rest;
mod scheduler_hints;
pub mod swift;
mod trove;
mod validation;
mod zaqar;
mod zun;

use std::sync::Arc;

use kiln_resource::{Driver, DriverKind, ResourceType};

/// The driver of a type: its own one in this crate, else the generic REST driver if the definition has a `rest`
/// section; `None` if the type is not implemented. Used with `kiln_resource::Registry::build`.
pub fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    if resource_type.driver == DriverKind::None {
        return None;
    }
    let services = [
        heat::driver_for,
        neutron::driver_for,
        nova::driver_for,
        cinder::driver_for,
        glance::driver_for,
        keystone::driver_for,
        octavia::driver_for,
        aodh::driver_for,
        aws::driver_for,
        barbican::driver_for,
        blazar::driver_for,
        designate::driver_for,
        magnum::driver_for,
        manila::driver_for,
        mistral::driver_for,
        swift::driver_for,
        trove::driver_for,
        zaqar::driver_for,
        zun::driver_for,
    ];
    let own = services.iter().find_map(|driver_for| driver_for(resource_type));
    own.or_else(|| Some(Arc::new(rest::RestDriver::new(resource_type)?)))
}
