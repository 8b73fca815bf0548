//! Resolves names to IDs, with the errors of Heat's client plug-ins (`reference/constraints.json`, `errors.json`).
//!
//! Most finders are in the definition files of types. Here are those that need more than a collection.

mod defined;
#[cfg(test)]
mod tests;
mod without_type;

use kiln_resource::{Cloud, CloudRequest, Failure, FailureKind, Finders, Method};
use kiln_value::Value;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Keystone objects: finder, collection, key of one object, Heat's name of the entity, whether they belong to a domain.
const KEYSTONE: &[(&str, &str, &str, &str, bool)] = &[
    ("keystone.project", "/v3/projects", "project", "KeystoneProject", true),
    ("keystone.user", "/v3/users", "user", "KeystoneUser", true),
    ("keystone.group", "/v3/groups", "group", "KeystoneGroup", true),
    ("keystone.role", "/v3/roles", "role", "KeystoneRole", true),
    ("keystone.domain", "/v3/domains", "domain", "KeystoneDomain", false),
    ("keystone.service", "/v3/services", "service", "KeystoneService", false),
];

/// The ID of the object with this name or ID.
pub(crate) async fn find(cloud: &dyn Cloud, finders: &Finders, finder: &str, name: &str) -> Result<String, Failure> {
    if let Some((_, collection, key, entity, in_domain)) = KEYSTONE.iter().find(|row| row.0 == finder) {
        return keystone(cloud, collection, key, entity, *in_domain, name).await;
    }
    match finder {
        "barbican.secret" => by_reference(cloud, "/v1/secrets", "Secret", name).await,
        "barbican.container" => by_reference(cloud, "/v1/containers", "Container", name).await,
        // Queues exist as soon as they are used.
        "zaqar.queue" => Ok(name.to_owned()),
        "neutron.lbaas.provider" => provider(cloud, "LOADBALANCERV2", name).await,
        "neutron.segment" => segment_of_network(cloud, name).await,
        "neutron.security_group" => security_group(cloud, name).await,
        "nova.flavor" => flavor(cloud, name).await,
        "nova.host" => host(cloud, name).await,
        "glance.image" => image(cloud, name).await,
        "cinder.vtype" => volume_type(cloud, name).await,
        "cinder.qos_specs" => qos_specs(cloud, name).await,
        _ => match finders.get(finder).cloned().or_else(|| without_type::of(finder)) {
            Some(finder) => defined::find(cloud, &finder, name).await,
            None => Err(Failure::other("ClientNotFound", format!("unknown finder {finder}"))),
        },
    }
}

/// Heat's `EntityNotFound`.
fn entity_not_found(entity: &str, name: &str) -> Failure {
    let message = format!("The {entity} ({name}) could not be found.");
    Failure::new(FailureKind::NotFound, "EntityNotFound", message)
}

fn is_uuid_like(text: &str) -> bool {
    let digits = text.bytes().filter(|b| *b != b'-');
    digits.clone().count() == 32 && digits.clone().all(|b| b.is_ascii_hexdigit())
}

/// A percent-encoded path segment.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// An object by ID, `None` if it does not exist.
async fn show(cloud: &dyn Cloud, service: &str, collection: &str, id: &str) -> Result<Option<Value>, Failure> {
    if id.is_empty() {
        return Ok(None);
    }
    match cloud.call(CloudRequest::new(service, Method::Get, format!("{collection}/{}", segment(id)))).await {
        Ok(response) => Ok(Some(response.body)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The objects of a list, under any key.
async fn list(cloud: &dyn Cloud, request: CloudRequest) -> Result<Vec<Value>, Failure> {
    let response = cloud.call(request).await?;
    let Value::Map(entries) = response.body else { return Ok(Vec::new()) };
    let mut lists = entries.into_iter().filter(|(key, _)| !key.ends_with("links"));
    let first = lists.find_map(|(_, value)| match value {
        Value::List(items) => Some(items),
        _ => None,
    });
    Ok(first.unwrap_or_default())
}

/// The IDs of the objects whose `key` has the value `wanted`.
fn ids(objects: &[Value], key: &str, wanted: &str) -> Vec<String> {
    objects.iter().filter(|o| o.str_at(key) == Some(wanted)).filter_map(|o| o.str_at("id").map(str::to_owned)).collect()
}

/// A provider of a service of Neutron, which is found by its name only.
async fn provider(cloud: &dyn Cloud, service: &str, name: &str) -> Result<String, Failure> {
    let request = CloudRequest::new("network", Method::Get, "/v2.0/service-providers").query("service_type", service);
    let providers = list(cloud, request).await?;
    let names: Value = providers.iter().filter_map(|provider| provider.str_at("name")).collect();
    if names.as_list().is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name))) {
        return Ok(name.to_owned());
    }
    let known = kiln_value::text::repr(&names);
    let text = format!("Unable to find neutron provider '{name}', available providers are {known}.");
    Err(Failure::new(FailureKind::NotFound, "StackValidationFailed", text))
}

/// Groups are searched only in the caller's project: an administrator sees the `default` group of every project.
async fn security_group(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    let select = |key: &str| {
        let request = CloudRequest::new("network", Method::Get, "/v2.0/security-groups");
        request.query("fields", "id").query("fields", "name").query(key, name)
    };
    if is_uuid_like(name)
        && let [id] = ids(&list(cloud, select("id")).await?, "id", name).as_slice()
    {
        return Ok(id.clone());
    }
    let own = select("name").query("project_id", cloud.project_id().await?);
    match ids(&list(cloud, own).await?, "name", name).as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(Failure::new(
            FailureKind::NotFound,
            "NotFound",
            format!("Unable to find security_group with name or id '{name}'"),
        )),
        _ => Err(Failure::other(
            "PhysicalResourceNameAmbiguity",
            format!("Multiple physical resources were found with name ({name})."),
        )),
    }
}

/// As in openstacksdk, which Heat uses for segments.
async fn segment_of_network(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    let segments = list(cloud, CloudRequest::new("network", Method::Get, "/v2.0/segments")).await?;
    if let [id, ..] = ids(&segments, "id", name).as_slice() {
        return Ok(id.clone());
    }
    match ids(&segments, "name", name).as_slice() {
        [id] => Ok(id.clone()),
        [] => {
            let message = format!("No Segment found for {name}");
            Err(Failure::new(FailureKind::NotFound, "NotFoundException", message))
        }
        _ => Err(Failure::other("DuplicateResource", format!("More than one Segment exists with the name '{name}'."))),
    }
}

async fn flavor(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    if let Some(body) = show(cloud, "compute", "/flavors", name).await?
        && let Some(id) = body.get("flavor").and_then(|f| f.str_at("id"))
    {
        return Ok(id.to_owned());
    }
    let mut request = CloudRequest::new("compute", Method::Get, "/flavors").query("is_public", "None");
    loop {
        let page = list(cloud, request.clone()).await?;
        if let Some(id) = ids(&page, "name", name).first() {
            return Ok(id.clone());
        }
        let Some(last) = page.last().and_then(|f| f.str_at("id")) else { break };
        request.query.retain(|(key, _)| key != "marker");
        request = request.query("marker", last);
    }
    let message = format!("No Flavor matching {{'name': {}}}. (HTTP 404)", kiln_value::text::quote(name));
    Err(Failure::new(FailureKind::NotFound, "NotFound", message))
}

async fn host(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    let path = format!("/os-hypervisors/{}/search", segment(name));
    let found = list(cloud, CloudRequest::new("compute", Method::Get, path)).await?;
    let host = found.first().and_then(|h| h.str_at("hypervisor_hostname"));
    host.map(str::to_owned).ok_or_else(|| {
        let message = format!("No hypervisor matching '{name}' could be found. (HTTP 404)");
        Failure::new(FailureKind::NotFound, "NotFound", message)
    })
}

async fn image(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    if is_uuid_like(name)
        && let Some(id) = show(cloud, "image", "/v2/images", name).await?.as_ref().and_then(|i| i.str_at("id"))
    {
        return Ok(id.to_owned());
    }
    let found = list(cloud, CloudRequest::new("image", Method::Get, "/v2/images").query("name", name)).await?;
    let quoted = kiln_value::text::quote(name);
    match ids(&found, "name", name).as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(Failure::new(
            FailureKind::NotFound,
            "EntityMatchNotFound",
            format!("No images matching {{'name': {quoted}}}."),
        )),
        _ => Err(Failure::other(
            "EntityUniqueMatchNotFound",
            format!("No images unique match found for {{'name': {quoted}}}."),
        )),
    }
}

async fn volume_type(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    let types =
        list(cloud, CloudRequest::new("block-storage", Method::Get, "/v3/types").query("is_public", "None")).await?;
    let found = types.iter().find(|t| [t.str_at("name"), t.str_at("id")].contains(&Some(name)));
    found.and_then(|t| t.str_at("id")).map(str::to_owned).ok_or_else(|| entity_not_found("VolumeType", name))
}

async fn qos_specs(cloud: &dyn Cloud, name: &str) -> Result<String, Failure> {
    let specs = list(cloud, CloudRequest::new("block-storage", Method::Get, "/v3/qos-specs")).await?;
    let found = specs.iter().find(|s| [s.str_at("name"), s.str_at("id")].contains(&Some(name)));
    found.and_then(|s| s.str_at("id")).map(str::to_owned).ok_or_else(|| {
        let quoted = kiln_value::text::quote(name);
        Failure::new(
            FailureKind::NotFound,
            "NotFound",
            format!("No QoSSpecs matching {{'name': {quoted}}}. (HTTP 404)"),
        )
    })
}

/// Keystone objects may be given as `name{domain}`.
async fn keystone(
    cloud: &dyn Cloud,
    collection: &str,
    key: &str,
    entity: &str,
    in_domain: bool,
    given: &str,
) -> Result<String, Failure> {
    let (name, domain) = match given.strip_suffix('}').and_then(|g| g.split_once('{')) {
        Some((name, domain)) if in_domain => {
            let id = Box::pin(keystone(cloud, "/v3/domains", "domain", "KeystoneDomain", false, domain)).await;
            (name, Some(id.map_err(|_| entity_not_found(entity, given))?))
        }
        _ => (given, None),
    };
    if let Some(body) = show(cloud, "identity", collection, name).await?
        && let Some(id) = body.get(key).and_then(|o| o.str_at("id"))
    {
        return Ok(id.to_owned());
    }
    if name.is_empty() {
        return Err(entity_not_found(entity, name));
    }
    let mut request = CloudRequest::new("identity", Method::Get, collection).query("name", name);
    if let Some(domain) = domain {
        request = request.query("domain_id", domain);
    }
    let found = ids(&list(cloud, request).await?, "name", name);
    match found.as_slice() {
        [_, _, ..] if key == "service" => {
            let text = format!(
                "Keystone has more than one service with same name {name}. Please use service id instead of name"
            );
            Err(Failure::other("KeystoneServiceNameConflict", text))
        }
        [id, ..] => Ok(id.clone()),
        [] => Err(entity_not_found(entity, name)),
    }
}

/// A secret or container of Barbican, which is given by its URL.
async fn by_reference(cloud: &dyn Cloud, collection: &str, entity: &str, url: &str) -> Result<String, Failure> {
    let id = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match show(cloud, "key-manager", collection, id).await? {
        Some(_) => Ok(url.to_owned()),
        None => Err(entity_not_found(entity, url)),
    }
}
