//! The initial content of a cloud: accounts, catalog, flavors, images, networks and volume types.

use crate::cinder::new_type;
use crate::glance;
use crate::keystone::{Caller, Target, domain, grant, new_project, new_region, new_role, new_service, new_user};
use crate::neutron;
use crate::nova::new_flavor;
use crate::state::CloudState;
use crate::table::Fields;

/// Roles of an ordinary user.
const MEMBER: [&str; 5] = ["member", "reader", "heat_stack_owner", "creator", "load-balancer_member"];

/// Creates the initial content.
pub(crate) fn furnish(world: &mut CloudState) {
    let (admin, demo) = identity(world);
    catalog(world);
    for (name, id, vcpus, ram, disk) in [
        ("m1.nano", "42", 1, 64, 1),
        ("m1.micro", "84", 1, 128, 1),
        ("m1.tiny", "1", 1, 512, 1),
        ("m1.small", "2", 1, 2048, 20),
        ("m1.medium", "3", 2, 4096, 40),
        ("m1.large", "4", 4, 8192, 80),
        ("m1.xlarge", "5", 8, 16384, 160),
    ] {
        new_flavor(world, id, name, vcpus, ram, disk);
    }
    for name in ["cirros", "fedora-coreos"] {
        image(world, name, &admin);
    }
    for name in ["fake", "fake2", "__DEFAULT__"] {
        new_type(world, name);
    }
    bare_machine(world);
    neutron::furnish(world, &Caller::service(&admin), &Caller::service(&demo));
}

/// Creates the accounts, and returns the projects of admin and demo.
fn identity(world: &mut CloudState) -> (String, String) {
    for (id, name, description) in
        [("default", "Default", "The default domain"), ("heat", "heat", "Owns users of stacks")]
    {
        world.keystone.domains.insert(domain(id, name, description));
    }
    for role in ["admin", "service", "heat_stack_user"].into_iter().chain(MEMBER) {
        new_role(world, role, serde_json::Value::Null);
    }
    let [admin, service, demo, alt_demo] =
        ["admin", "service", "demo", "alt_demo"].map(|name| new_project(world, name, "default"));
    let user = new_user(world, "admin", "default", "password");
    for project in [&admin, &demo, &alt_demo] {
        grant(world, &user, Target::Project(project.clone()), "admin");
    }
    for role in ["heat_stack_owner", "creator", "member"] {
        grant(world, &user, Target::Project(admin.clone()), role);
    }
    grant(world, &user, Target::Domain("default".to_owned()), "admin");
    grant(world, &user, Target::System, "admin");
    for (name, project) in [("demo", &demo), ("alt_demo", &alt_demo)] {
        let user = new_user(world, name, "default", "password");
        for role in MEMBER {
            grant(world, &user, Target::Project(project.clone()), role);
        }
    }
    let heat = new_user(world, "heat", "default", "password");
    for role in ["admin", "service"] {
        grant(world, &heat, Target::Project(service.clone()), role);
    }
    let stacks = new_user(world, "heat_domain_admin", "heat", "password");
    grant(world, &stacks, Target::Domain("heat".to_owned()), "admin");
    (admin, demo)
}

fn catalog(world: &mut CloudState) {
    new_region(world, "RegionOne");
    let base = world.base.clone();
    for (kind, name, path) in [
        ("identity", "keystone", "/identity/v3"),
        ("compute", "nova", "/compute/v2.1"),
        ("network", "neutron", "/network"),
        ("volumev3", "cinderv3", "/volume/v3/%(project_id)s"),
        ("block-storage", "cinder", "/volume/v3/%(project_id)s"),
        ("image", "glance", "/image"),
        ("load-balancer", "octavia", "/load-balancer"),
        ("object-store", "swift", "/object-store/v1/AUTH_%(project_id)s"),
        ("key-manager", "barbican", "/key-manager"),
        ("dns", "designate", "/dns"),
        ("alarming", "aodh", "/alarming"),
        ("messaging", "zaqar", "/messaging"),
        ("workflowv2", "mistral", "/workflow/v2"),
        ("sharev2", "manilav2", "/share/v2"),
        ("container-infra", "magnum", "/container-infra/v1"),
        ("baremetal", "ironic", "/baremetal"),
        ("reservation", "blazar", "/reservation/v1"),
        ("database", "trove", "/database/v1/%(project_id)s"),
        ("container", "zun", "/container/v1"),
    ] {
        new_service(world, kind, name, &format!("{base}{path}"));
    }
}

/// A node of Ironic, `node-1`.
fn bare_machine(world: &mut CloudState) {
    let id = world.uuid();
    let mut row = crate::table::Row::new();
    row.put("id", id.clone());
    row.put("uuid", id);
    row.put("name", "node-1");
    row.put("_id", "node-1");
    row.put("_noun", "baremetal/nodes");
    row.put("_public", true);
    world.nouns.rows.insert(row);
}

fn image(world: &mut CloudState, name: &str, owner: &str) {
    let id = glance::new_image(world, name, owner);
    glance::activate(world, &id, 4096);
    world.glance.images.edit(&id, |row| {
        row.put("visibility", "public");
        row.put("disk_format", "raw");
        row.put("container_format", "bare");
        if name == "fedora-coreos" {
            row.put("os_distro", name);
        }
    });
}
