//! The create request of a server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kiln_resource::shared_software::add_for_agent;
use kiln_resource::{CloudRequest, Context, Facts, Failure, Found, Method, Progress, Step};
use kiln_value::{Map, Value, value};

use super::networks::{self, INTERNAL_PORTS};
use super::user_data::{self, Format};
use super::{block_devices, building};
use crate::call::{NOVA, items, made_id};
use crate::heat::agent::metadata_server;
use crate::heat::multipart::config_or_text;
use crate::scheduler_hints;

/// The name of the server: specified or physical.
pub(super) fn name(facts: &Facts) -> &str {
    facts.property("name").as_str().filter(|name| !name.is_empty()).unwrap_or(&facts.physical_name)
}

/// What distinguishes a server from others with the same name.
#[derive(PartialEq)]
pub(super) enum Mark {
    /// Its unique name.
    Name,
    /// A tag, which it keeps: neither the server as Heat shows it nor its guest has it, and its removal would be another
    /// request. The tags of the template replace it.
    Tag,
    /// Its description, which is removed after the build: Nova accepts tags only from 2.52, and an omitted `networks`
    /// only before 2.37.
    Description,
}

/// The mark of a new server.
pub(super) fn mark(facts: &Facts) -> Mark {
    match (facts.property("name").is_truthy(), facts.property("networks").is_truthy()) {
        (false, _) => Mark::Name,
        (true, true) => Mark::Tag,
        (true, false) => Mark::Description,
    }
}

fn tag(facts: &Facts) -> String {
    format!("kiln-{}", facts.attempt.token)
}

/// Key of the state of a build: the server has no mark in its description. Earlier versions of Kiln do not write it.
const UNDESCRIBED: &str = "undescribed";

/// Whether the description of a server has a mark. `state` is that of its build.
pub(super) fn is_described(facts: &Facts, state: &Value) -> bool {
    mark(facts) != Mark::Name && !state.get(UNDESCRIBED).is_some_and(Value::is_truthy)
}

/// Removes the mark from the description, where users would see it forever. Idempotent.
pub(super) async fn remove_mark(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let request = CloudRequest::new(NOVA.0, Method::Put, super::server_path(id)).microversion("2.19");
    cx.cloud.call(request.body(value!({"server": {"description": null}}))).await.map(|_| ())
}

/// Creates the server and the ports that it requires.
pub(super) async fn start(cx: &Context<'_>) -> Result<Step, Failure> {
    let given = cx.facts.property("networks");
    let allocation = networks::allocation(given);
    let interfaces = networks::prepare(
        cx,
        match allocation {
            Some(_) => &[],
            None => given.as_list().unwrap_or_default(),
        },
    )
    .await?;
    let (body, version) = match request(cx, allocation, &interfaces.request).await {
        Ok(request) => request,
        Err(failure) => {
            if !failure.is_passing() {
                networks::discard(cx, &interfaces.made).await;
            }
            return Err(failure);
        }
    };
    let request = CloudRequest::new(NOVA.0, Method::Post, "/servers").body(body).microversion(version);
    match cx.cloud.call(request).await {
        Ok(response) => {
            let server = response.body.get("server").and_then(|server| server.str_at("id"));
            let is_described = mark(cx.facts) == Mark::Description;
            Ok(made(made_id(server, "a server")?, &interfaces.made, is_described))
        }
        Err(failure) => {
            // The server may exist after all. It then requires its ports, and a repeated call reuses them.
            if !failure.is_passing() {
                networks::discard(cx, &interfaces.made).await;
            }
            Err(failure)
        }
    }
}

fn made(id: &str, ports: &[String], is_described: bool) -> Step {
    let mut step = building().id(id);
    if let (false, Progress::Wait { state: Value::Map(state), .. }) = (is_described, &mut step.progress) {
        state.insert(UNDESCRIBED.to_owned(), true.into());
    }
    if ports.is_empty() { step } else { step.data(INTERNAL_PORTS, networks::ports_entry(ports)) }
}

/// The server of a lost create: by its unique name, or by its mark if the template specifies the name.
pub(super) async fn find(cx: &Context<'_>) -> Result<Found, Failure> {
    let name = name(cx.facts);
    // Nova treats the name as a regular expression.
    let pattern = format!("^{}$", escape(name));
    // Tags are shown from 2.26.
    let request = CloudRequest::new(NOVA.0, Method::Get, "/servers/detail").query("name", pattern).microversion("2.26");
    let body = cx.cloud.call(request).await?.body;
    let servers = items(body, "servers")?;
    let (tag, is_unique) = (tag(cx.facts), mark(cx.facts) == Mark::Name);
    let has_tag = |server: &Value| {
        let tags = server.get("tags").and_then(Value::as_list).unwrap_or_default();
        tags.iter().any(|own| own.as_str() == Some(&tag))
    };
    // Earlier versions of Kiln have marked every description.
    let is_described = |server: &Value| server.str_at("description") == Some(&cx.facts.attempt.token);
    let is_ours = |server: &&Value| {
        server.str_at("name") == Some(name)
            // Left by an earlier attempt with the same name.
            && super::task_state(server) != Some("deleting")
            && super::status(server) != "DELETED"
            && (is_unique || has_tag(server) || is_described(server))
    };
    let found = servers.iter().find(is_ours).and_then(|server| Some((server.str_at("id")?, is_described(server))));
    let Some((id, is_described)) = found else { return Ok(Found::NotMade) };
    let ports = networks::marked(cx).await?;
    let ports: Vec<String> = ports.iter().filter_map(|port| port.str_at("id").map(str::to_owned)).collect();
    Ok(Found::Made(made(id, &ports, is_described)))
}

/// Escapes a string for a regular expression.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_alphanumeric() && !"_- ".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The body, and the lowest microversion that supports all requested features.
async fn request(
    cx: &Context<'_>,
    allocation: Option<&str>,
    interfaces: &Value,
) -> Result<(Value, &'static str), Failure> {
    let facts = cx.facts;
    let mut server = Map::new();
    server.insert("name".into(), name(facts).into());
    server.insert("imageRef".into(), facts.property("image").as_str().unwrap_or_default().into());
    server.insert("flavorRef".into(), facts.property("flavor").clone());
    // Before 2.19, the name is also the description.
    let mut version = (2, 19);
    match mark(facts) {
        Mark::Name => {}
        Mark::Tag => {
            server.insert("tags".into(), value!([(tag(facts))]));
            version = version.max((2, 52));
        }
        Mark::Description => drop(server.insert("description".into(), facts.attempt.token.as_str().into())),
    }
    let user_data = user_data(cx).await?;
    if !user_data.is_empty() {
        server.insert("user_data".into(), user_data::encode(&user_data).into());
    }
    if let Some(metadata) = facts.property("metadata").as_map().filter(|m| !m.is_empty()) {
        server.insert("metadata".into(), metadata_texts(metadata));
    }
    for (property, key) in [
        ("key_name", "key_name"),
        ("availability_zone", "availability_zone"),
        ("config_drive", "config_drive"),
        ("diskConfig", "OS-DCF:diskConfig"),
        ("admin_pass", "adminPass"),
        ("reservation_id", "reservation_id"),
    ] {
        let value = facts.property(property);
        if !value.is_null() && value.as_str() != Some("") {
            server.insert(key.into(), value.clone());
        }
    }
    if let Some(files) = personality(facts) {
        server.insert("personality".into(), files);
    }
    let groups = facts.property("security_groups").as_list().unwrap_or_default();
    if !groups.is_empty() {
        server.insert("security_groups".into(), groups.iter().map(|group| value!({"name": group})).collect());
    }
    block_devices::add(facts, &mut server);
    if block_devices::has_volume_type(facts) {
        version = version.max((2, 67));
    }
    match allocation {
        Some(how) => {
            server.insert("networks".into(), how.into());
            version = version.max((2, 37));
        }
        None if interfaces.is_truthy() => {
            server.insert("networks".into(), interfaces.clone());
        }
        // From 2.37, networks are required; this was the meaning of omitting them.
        None if version >= (2, 37) => {
            server.insert("networks".into(), "auto".into());
        }
        None => {}
    }
    if interfaces.as_list().unwrap_or_default().iter().any(|interface| interface.get("tag").is_some()) {
        version = version.max((2, 42));
    }
    let mut body = value!({"server": server});
    if let (Some(hints), Some(body)) = (scheduler_hints::of(facts), body.as_map_mut()) {
        body.insert("os:scheduler_hints".into(), hints.into());
    }
    let version = match version {
        (2, 67) => "2.67",
        (2, 52) => "2.52",
        (2, 42) => "2.42",
        (2, 37) => "2.37",
        _ => "2.19",
    };
    Ok((body, version))
}

/// The user data for the guest.
pub(super) async fn user_data(cx: &Context<'_>) -> Result<String, Failure> {
    let facts = cx.facts;
    let format = Format::parse(facts.property("user_data_format").as_str());
    let cfn_url = match format {
        Format::CfnTools => metadata_server(cx.cloud).await?,
        Format::Raw | Format::SoftwareConfig => None,
    };
    let given = facts.property("user_data").as_str().unwrap_or_default();
    let text = match format {
        Format::CfnTools => given.to_owned(),
        Format::Raw | Format::SoftwareConfig => config_or_text(cx, given).await?,
    };
    let mut metadata = facts.metadata.as_map().cloned().unwrap_or_default();
    if format == Format::SoftwareConfig {
        add_for_agent(&facts.data, &[], &mut metadata);
    }
    // Any string that does not occur in a part is suitable.
    let boundary = format!("{:020}", cx.random());
    Ok(user_data::build(format, &text, &metadata.into(), cfn_url.as_deref(), &boundary))
}

/// Metadata values are strings in Nova: other values are converted to JSON.
pub(super) fn metadata_texts(metadata: &Map) -> Value {
    let texts = metadata.iter().map(|(key, value)| match value {
        Value::Str(text) => (key.clone(), Value::from(text)),
        other => (key.clone(), kiln_value::text::json(other).into()),
    });
    texts.collect()
}

/// Injected files: content by path.
pub(super) fn personality(facts: &Facts) -> Option<Value> {
    let files = facts.property("personality").as_map().filter(|files| !files.is_empty())?;
    let file = |(path, text): (&String, &Value)| {
        let contents = STANDARD.encode(text.as_str().unwrap_or_default());
        value!({"path": path, "contents": contents})
    };
    Some(files.iter().map(file).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_values_are_strings() {
        let given = value!({"a": "text", "n": 1, "l": [true, null]});
        let expected = value!({"a": "text", "n": "1", "l": "[true, null]"});
        assert_eq!(metadata_texts(given.as_map().unwrap()), expected);
    }

    #[test]
    fn names_are_escaped_for_novas_filter() {
        assert_eq!(escape("web-1 (a.b)"), "web-1 \\(a\\.b\\)");
    }
}
