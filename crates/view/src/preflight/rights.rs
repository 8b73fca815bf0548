//! Rights that a service tells without a change: who may not list objects of a service for administrators will hardly be
//! allowed to make one.

use std::collections::BTreeMap;

use super::reader::Unread;
use super::{Finding, Findings, Flight};

/// Types for administrators, and their lists.
const LISTS: [(&str, &str, &str); 7] = [
    ("OS::Keystone::Project", "identity", "/v3/projects"),
    ("OS::Keystone::User", "identity", "/v3/users"),
    ("OS::Keystone::Group", "identity", "/v3/groups"),
    ("OS::Keystone::Role", "identity", "/v3/roles"),
    ("OS::Keystone::Domain", "identity", "/v3/domains"),
    ("OS::Nova::HostAggregate", "compute", "/os-aggregates"),
    ("OS::Cinder::QoSSpecs", "block-storage", "/qos-specs"),
];

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut wanted: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for planned in flight.work.resources.iter().filter(|one| one.makes()) {
        if let Some((_, service, path)) = LISTS.iter().find(|(kind, ..)| *kind == planned.kind) {
            wanted.entry((service, path)).or_default().push(planned.path.clone());
        }
    }
    let mut found = Vec::new();
    for ((service, path), resources) in &wanted {
        match flight.cloud.get(service, path, &[("limit", "1")]).await {
            Err(Unread::Forbidden) => {
                let message = format!("{service} does not allow to list {path}: a create will hardly be allowed");
                found.push(Finding::warn(message, resources.clone()));
            }
            Err(unread) => {
                let message = format!("the rights for {path} of {service}: {}", unread.why());
                found.push(Finding::skipped(message, resources.clone()));
            }
            Ok(_) => {}
        }
    }
    (!wanted.is_empty()).then_some(found)
}
