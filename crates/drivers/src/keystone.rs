//! OS::Keystone::*: the types with code.

mod domain;
mod principal;
mod project;
mod role_assignment;
mod roles;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::rest::shaped;
use principal::Principal;
use role_assignment::RoleAssignment;
use roles::Holder;

/// The driver of a Keystone type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Keystone::")? {
        "Domain" => shaped(resource_type, domain::Domain),
        "Project" => shaped(resource_type, project::Project),
        "User" => shaped(resource_type, Principal(Holder::User)),
        "Group" => shaped(resource_type, Principal(Holder::Group)),
        "UserRoleAssignment" => Some(Arc::new(RoleAssignment(Holder::User))),
        "GroupRoleAssignment" => Some(Arc::new(RoleAssignment(Holder::Group))),
        _ => None,
    }
}
