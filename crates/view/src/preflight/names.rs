//! Names that a service allows only once.

use std::collections::HashMap;

use kiln_value::Value;

use super::planned::{Does, Planned};
use super::reader::Unread;
use super::{Finding, Findings, Flight};

/// How the object with a name is looked for.
enum Look {
    /// In the list at this path, with this key; the service filters by name.
    Filtered(&'static str, &'static str),
    /// In the whole list.
    Listed(&'static str, &'static str),
    /// In a list of Keystone, where a name is unique in its domain.
    InDomain(&'static str, &'static str),
}

/// The types with unique names: their services, and how a name is looked for.
const UNIQUE: [(&str, &str, Look); 10] = [
    ("OS::Nova::KeyPair", "compute", Look::Listed("/os-keypairs", "keypairs")),
    ("OS::Nova::Flavor", "compute", Look::Listed("/flavors", "flavors")),
    ("OS::Nova::HostAggregate", "compute", Look::Listed("/os-aggregates", "aggregates")),
    ("OS::Designate::Zone", "dns", Look::Filtered("/v2/zones", "zones")),
    ("OS::Cinder::VolumeType", "block-storage", Look::Listed("/types", "volume_types")),
    ("OS::Cinder::QoSSpecs", "block-storage", Look::Listed("/qos-specs", "qos_specs")),
    ("OS::Keystone::Domain", "identity", Look::Filtered("/v3/domains", "domains")),
    ("OS::Keystone::Project", "identity", Look::InDomain("/v3/projects", "projects")),
    ("OS::Keystone::User", "identity", Look::InDomain("/v3/users", "users")),
    ("OS::Keystone::Group", "identity", Look::InDomain("/v3/groups", "groups")),
];

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut found = Vec::new();
    let mut seen: HashMap<(&str, &str, Option<&str>), &str> = HashMap::new();
    let mut any = false;
    for planned in flight.work.resources.iter().filter(|one| one.makes() && one.is_certain) {
        let Some((kind, service, look)) = UNIQUE.iter().find(|(kind, ..)| *kind == planned.kind) else { continue };
        // Without a name the type makes one with its own ID in it.
        let Some(name) = planned.text("name") else { continue };
        // Key pairs belong to users, and only administrators name another one.
        if planned.made().is_some_and(|made| made.contains_key("user")) {
            continue;
        }
        any = true;
        let path = planned.path.as_str();
        let domain = planned.text("domain");
        if let Some(other) = seen.insert((kind, name, domain), path) {
            let message = format!("{other} and {path} would both be named {name}, and {kind} allows a name once");
            found.push(Finding::fail(message, vec![other.to_owned(), path.to_owned()]));
            continue;
        }
        match is_taken(flight, service, look, name, domain).await {
            Ok(Some(id)) => found.push(taken(flight, planned, name, &id)),
            Ok(None) | Err(Unread::Missing) => {}
            Err(unread) => {
                let message = format!("whether the name {name} of {path} is taken: {}", unread.why());
                found.push(Finding::skipped(message, vec![path.to_owned()]));
            }
        }
    }
    any.then_some(found)
}

/// An object of the tree may be gone before its name is needed again.
fn taken(flight: &Flight<'_>, planned: &Planned<'_>, name: &str, id: &str) -> Finding {
    let path = planned.path.clone();
    if planned.does == Does::Create && flight.work.objects.contains(id) && !flight.work.staying.contains(id) {
        return Finding::warn(format!("{path}: the name {name} is free only when its object {id} is gone"), vec![path]);
    }
    Finding::fail(format!("{path}: the name {name} is taken by {id}"), vec![path])
}

/// The ID of the object with a name.
async fn is_taken(
    flight: &Flight<'_>,
    service: &str,
    look: &Look,
    name: &str,
    domain: Option<&str>,
) -> Result<Option<String>, Unread> {
    let cloud = &flight.cloud;
    let (list, domain) = match look {
        Look::Filtered(path, key) => (cloud.list(service, path, &[("name", name)], key).await?, None),
        Look::Listed(path, key) => (cloud.list(service, path, &[], key).await?, None),
        Look::InDomain(path, key) => {
            let domain = domain.unwrap_or("default");
            let found = cloud.find("keystone.domain", domain).await;
            let id = found.ok_or_else(|| Unread::Failed(format!("the domain {domain} is not found")))?;
            (cloud.list(service, path, &[("name", name), ("domain_id", &id)], key).await?, Some(id))
        }
    };
    let is_it = |one: &&Value| -> bool {
        one.str_at("name").is_some_and(|own| own == name)
            && domain.as_deref().is_none_or(|id| one.str_at("domain_id").is_some_and(|own| own == id))
    };
    // Nova wraps each key pair, which has no ID but its name.
    let mut list = list.iter().map(|one| one.get("keypair").unwrap_or(one));
    Ok(list.find(is_it).and_then(|one| one.get("id").or_else(|| one.get("name"))).map(kiln_value::text::str))
}
