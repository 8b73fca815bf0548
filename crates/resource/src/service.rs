//! The names of OpenStack's services.

/// Service types of definitions, and their projects.
const PROJECTS: [(&str, &str); 20] = [
    ("alarming", "aodh"),
    ("baremetal", "ironic"),
    ("cloudformation", "heat"),
    ("compute", "nova"),
    ("container", "zun"),
    ("container-infra", "magnum"),
    ("database", "trove"),
    ("dns", "designate"),
    ("identity", "keystone"),
    ("image", "glance"),
    ("key-manager", "barbican"),
    ("load-balancer", "octavia"),
    ("messaging", "zaqar"),
    ("network", "neutron"),
    ("object-store", "swift"),
    ("orchestration", "heat"),
    ("reservation", "blazar"),
    ("sharev2", "manila"),
    ("volumev3", "cinder"),
    ("workflowv2", "mistral"),
];

/// The project of a service type, as Heat calls it: `neutron` for `network`; the type itself if it is unknown.
pub fn project(service: &str) -> &str {
    PROJECTS.iter().find(|(known, _)| *known == service).map_or(service, |(_, project)| project)
}
