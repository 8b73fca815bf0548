//! Objects of simple services, found by ID first and then by name.

use kiln_resource::{Cloud, CloudRequest, Failure, FailureKind, Method};
use kiln_value::Value;

use super::{entity_not_found, list, show};

/// How the objects of a collection are found.
pub(super) struct Plain {
    finder: &'static str,
    service: &'static str,
    collection: &'static str,
    /// The key of the ID.
    id: &'static str,
    /// The key of the name, by which the list is searched; empty: only the ID counts, or the service accepts names in
    /// its place.
    name: &'static str,
    missing: Missing,
}

/// The error for a missing object.
enum Missing {
    /// Heat's `EntityNotFound`, with this word.
    Entity(&'static str),
    /// That of osc-lib.
    Osc,
    /// That of Heat's plug-in for extensions of Neutron, with this word.
    Extension(&'static str),
    /// That of a client that lists objects of this class.
    Match(&'static str),
}

const fn octavia(finder: &'static str, collection: &'static str, id: &'static str) -> Plain {
    Plain { finder, service: "load-balancer", collection, id, name: "name", missing: Missing::Osc }
}

const fn neutron(finder: &'static str, collection: &'static str, word: &'static str) -> Plain {
    Plain { finder, service: "network", collection, id: "id", name: "name", missing: Missing::Extension(word) }
}

const fn manila(finder: &'static str, collection: &'static str, word: &'static str) -> Plain {
    Plain { finder, service: "sharev2", collection, id: "id", name: "name", missing: Missing::Entity(word) }
}

/// A collection in which names are accepted in the place of IDs.
const fn named(finder: &'static str, service: &'static str, collection: &'static str, id: &'static str) -> Plain {
    Plain { finder, service, collection, id, name: "", missing: Missing::Osc }
}

impl Plain {
    const fn called(mut self, entity: &'static str) -> Self {
        self.missing = Missing::Entity(entity);
        self
    }
}

const PLAIN: &[Plain] = &[
    octavia("octavia.loadbalancer", "/v2/lbaas/loadbalancers", "id"),
    octavia("octavia.listener", "/v2/lbaas/listeners", "id"),
    octavia("octavia.pool", "/v2/lbaas/pools", "id"),
    octavia("octavia.l7policy", "/v2/lbaas/l7policies", "id"),
    octavia("octavia.flavor", "/v2/lbaas/flavors", "id"),
    octavia("octavia.flavorprofile", "/v2/lbaas/flavorprofiles", "id"),
    octavia("octavia.availabilityzone", "/v2/lbaas/availabilityzones", "name"),
    octavia("octavia.availabilityzoneprofile", "/v2/lbaas/availabilityzoneprofiles", "id"),
    neutron("neutron.port_pair", "/v2.0/sfc/port_pairs", "port_pair"),
    neutron("neutron.port_pair_group", "/v2.0/sfc/port_pair_groups", "port_pair_group"),
    neutron("neutron.flow_classifier", "/v2.0/sfc/flow_classifiers", "flow_classifier"),
    neutron("neutron.taas.tap_service", "/v2.0/taas/tap_services", "tap_service"),
    neutron("neutron.taas.tap_flow", "/v2.0/taas/tap_flows", "tap_flow"),
    Plain {
        finder: "neutron.ip",
        service: "network",
        collection: "/v2.0/floatingips",
        id: "id",
        name: "floating_ip_address",
        missing: Missing::Match("FloatingIP"),
    },
    Plain {
        finder: "trove.flavor",
        service: "database",
        collection: "/flavors",
        id: "id",
        name: "name",
        missing: Missing::Match("Flavor"),
    },
    Plain {
        finder: "designate.zone",
        service: "dns",
        collection: "/v2/zones",
        id: "id",
        name: "name",
        missing: Missing::Entity("Designate Zone"),
    },
    manila("manila.share_network", "/v2/share-networks", "share network"),
    manila("manila.share_type", "/v2/types", "share type"),
    manila("manila.share_snapshot", "/v2/snapshots", "share snapshot"),
    manila("manila.security_service", "/v2/security-services", "security service"),
    named("magnum.cluster_template", "container-infra", "/v1/clustertemplates", "uuid").called("ClusterTemplate"),
    named("ironic.node", "baremetal", "/v1/nodes", "uuid").called("Node"),
    named("ironic.portgroup", "baremetal", "/v1/portgroups", "uuid").called("PortGroup"),
    named("mistral.workflow", "workflowv2", "/v2/workflows", "name").called("Workflow"),
];

/// The entry of a finder, if it is one of these.
pub(super) fn of(finder: &str) -> Option<&'static Plain> {
    PLAIN.iter().find(|plain| plain.finder == finder)
}

/// A secret or container of Barbican, which is given by its URL.
pub(super) async fn by_reference(
    cloud: &dyn Cloud,
    collection: &str,
    entity: &str,
    url: &str,
) -> Result<String, Failure> {
    let id = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match show(cloud, "key-manager", collection, id).await? {
        Some(_) => Ok(url.to_owned()),
        None => Err(entity_not_found(entity, url)),
    }
}

impl Plain {
    /// The ID of the object with this name or ID.
    pub(super) async fn find(&self, cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
        let by_id = match show(cloud, self.service, self.collection, name).await {
            // Some services reject a value that is not an ID.
            Err(failure) if failure.kind == FailureKind::Refused && !self.name.is_empty() => None,
            other => other?,
        };
        if let Some(id) = by_id.as_ref().and_then(|body| self.id_of(body)) {
            return Ok(id);
        }
        if self.name.is_empty() {
            return Err(self.missing(name));
        }
        let request = CloudRequest::new(self.service, Method::Get, self.collection).query(self.name, name);
        let found = list(cloud, request).await?;
        let is_named = |object: &&Value| object.str_at(self.name) == Some(name);
        let ids: Vec<&str> = found.iter().filter(is_named).filter_map(|object| object.str_at(self.id)).collect();
        match ids.as_slice() {
            [id] => Ok((*id).to_owned()),
            [] => Err(self.missing(name)),
            _ => Err(self.ambiguous(name)),
        }
    }

    /// The ID of an object, which may be under a key.
    fn id_of(&self, body: &Value) -> Option<String> {
        let inner = body.as_map().and_then(|map| map.values().next()).and_then(|first| first.get(self.id));
        body.get(self.id).or(inner).map(kiln_value::text::str)
    }

    fn missing(&self, name: &str) -> Failure {
        let not_found = |class: &str, message: String| Failure::new(FailureKind::NotFound, class, message);
        match self.missing {
            Missing::Entity(word) => entity_not_found(word, name),
            Missing::Osc => not_found("NotFound", format!("{name} not found (HTTP 404)")),
            Missing::Extension(word) => {
                not_found("NotFound", format!("Unable to find {word} with name or id '{name}'"))
            }
            Missing::Match(class) => not_found("NotFoundException", format!("No {class} found for {name}")),
        }
    }

    fn ambiguous(&self, name: &str) -> Failure {
        match self.missing {
            Missing::Entity(word) => Failure::other(
                "NoUniqueMatch",
                format!("Ambiguous {word} name '{name}'. Found more than one {word} for this name."),
            ),
            Missing::Osc => Failure::other("NotFound", format!("{name} not found (HTTP 404)")),
            Missing::Extension(word) => Failure::other(
                "NeutronClientNoUniqueMatch",
                format!("Multiple {word} matches found for name '{name}', use an ID to be more specific."),
            ),
            Missing::Match(class) => {
                Failure::other("DuplicateResource", format!("More than one {class} exists with the name '{name}'."))
            }
        }
    }
}
