//! Lists of a cloud to choose from, for the constraints of parameters.

use kiln_resource::{CloudRequest, Method};
use kiln_value::Value;

use crate::error::CloudError;
use crate::session::Session;

/// An object to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its ID, or its name if it has no other.
    pub id: String,
    /// Its name; empty: none.
    pub name: String,
}

/// The list for a constraint: its service, its path, and the key of the list in the response.
type List = (&'static str, &'static str, &'static str, &'static str);

/// The only reads that are made.
const LISTS: [List; 11] = [
    ("cinder.volume", "volumev3", "/volumes", "volumes"),
    ("cinder.vtype", "volumev3", "/types", "volume_types"),
    ("glance.image", "image", "/v2/images", "images"),
    ("neutron.network", "network", "/v2.0/networks", "networks"),
    ("neutron.port", "network", "/v2.0/ports", "ports"),
    ("neutron.router", "network", "/v2.0/routers", "routers"),
    ("neutron.security_group", "network", "/v2.0/security-groups", "security_groups"),
    ("neutron.subnet", "network", "/v2.0/subnets", "subnets"),
    ("nova.flavor", "compute", "/flavors", "flavors"),
    ("nova.keypair", "compute", "/os-keypairs", "keypairs"),
    ("nova.server", "compute", "/servers", "servers"),
];

/// The first page of a list, by name: names are a help to write one, not all that there is.
const PAGE: &str = "200";

/// What the user of a session may choose for a constraint such as `nova.flavor`, by name; `None`: no list is known for it.
pub async fn choices(session: &Session, constraint: &str) -> Result<Option<Vec<Choice>>, CloudError> {
    let Some((_, service, path, key)) = LISTS.iter().find(|(name, ..)| *name == constraint) else { return Ok(None) };
    let mut request = CloudRequest::new(*service, Method::Get, *path);
    // Others refuse or ignore it.
    if *key != "volume_types" {
        request = request.query("limit", PAGE);
    }
    let answered = session.call(&request).await?;
    let listed = answered.body.get(key).and_then(Value::as_list);
    let mut found: Vec<Choice> = listed.unwrap_or_default().iter().filter_map(choice).collect();
    found.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    Ok(Some(found))
}

fn choice(listed: &Value) -> Option<Choice> {
    // Nova wraps each key pair.
    let listed = listed.get("keypair").unwrap_or(listed);
    let name = listed.str_at("name").unwrap_or_default();
    let id = listed.str_at("id").unwrap_or(name);
    (!id.is_empty()).then(|| Choice { id: id.to_owned(), name: name.to_owned() })
}
