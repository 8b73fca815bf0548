//! The config of a deployment: the source config with the values of the inputs, and what the agent in the server has to
//! know to report the result.

use kiln_resource::shared_software::{UNGROUPED, inputs};
use kiln_resource::{ConfigBody, Context, Facts, Failure, SoftwareConfig};
use kiln_value::{Class, Map, Value, value};
use sha2::Digest as _;

use super::signal_place;
use super::signal_url::{SignedFor, signed};
use super::software_config::time;
use super::stack_user::{PASSWORD, USER, text};
use super::structured::substitute;

/// The transport of signals.
pub(super) fn transport(facts: &Facts) -> &str {
    facts.property("signal_transport").as_str().unwrap_or("CFN_SIGNAL")
}

/// Builds the config for an action. Its ID follows from the resource and the config before it, so that a repeated step
/// creates no other one.
pub(super) async fn build(
    cx: &Context<'_>,
    action: &str,
    source: Option<&SoftwareConfig>,
    previous: Option<&str>,
) -> Result<SoftwareConfig, Failure> {
    let facts = cx.facts;
    let body = source.map(|source| source.body.clone()).unwrap_or_default();
    let all = all_inputs(cx, action, &body.inputs).await?;
    let mut config = SoftwareConfig {
        id: id(&[&facts.id, action, previous.unwrap_or_default()]),
        project: facts.stack.project_id.clone(),
        name: given(facts.property("name").as_str())
            .or_else(|| given(source.and_then(|source| source.name.as_deref()))),
        group: given(source.and_then(|source| source.group.as_deref())).or_else(|| Some(UNGROUPED.to_owned())),
        body: ConfigBody { inputs: all, ..body },
        created: time(cx.now),
    };
    config.name = config.name.or_else(|| Some(facts.physical_name.clone()));
    if config.body.options.is_null() {
        config.body.options = Map::new().into();
    }
    let values = config.input_values();
    config.body.config = content(facts, &config.body.config, &values)?;
    Ok(config)
}

fn given(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The content; a structured one with the inputs in it.
fn content(facts: &Facts, config: &Value, values: &Map) -> Result<Value, Failure> {
    let Some(key) = facts.property("input_key").as_str() else {
        return Ok(if config.is_truthy() { config.clone() } else { "".into() });
    };
    let strict = facts.property("input_values_validate").as_str() == Some("STRICT");
    let filled = substitute(config, values, key, strict)
        .map_err(|error| Failure::other(error.class.clone(), error.to_string()))?;
    Ok(if filled.is_truthy() { filled } else { Map::new().into() })
}

/// The declared inputs with their values, those that only have a value, and Kiln's own.
async fn all_inputs(cx: &Context<'_>, action: &str, declared: &[Value]) -> Result<Vec<Value>, Failure> {
    let mut values = cx.facts.property("input_values").as_map().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for input in declared {
        let Some(mut input) = input.as_map().cloned() else { continue };
        let name = input.get("name").and_then(Value::as_str).unwrap_or_default();
        let value = values.shift_remove(name).or_else(|| input.get("default").cloned()).unwrap_or_default();
        input.insert("value".to_owned(), value);
        all.push(Value::Map(input));
    }
    all.extend(values.into_iter().map(|(name, value)| value!({"name": name, "value": value})));
    all.extend(own_inputs(cx, action).await?);
    inputs(all).map_err(|error| Failure::other(Class::ValueError, error.to_string()))
}

async fn own_inputs(cx: &Context<'_>, action: &str) -> Result<Vec<Value>, Failure> {
    let facts = cx.facts;
    let input = |name: &str, value: Value, description: &str| value!({"name": name, "value": value, "description": description});
    let stack = format!("{}/{}", facts.stack.name, facts.stack.id);
    let mut own = vec![
        input("deploy_server_id", facts.property("server").clone(), "The server that is configured"),
        input("deploy_action", action.into(), "The action that the deployment is a part of"),
        input("deploy_stack_id", stack.into(), "The stack of the deployment"),
        input("deploy_resource_name", facts.name.as_str().into(), "The resource of the deployment"),
        input("deploy_signal_transport", transport(facts).into(), "How to send the outputs"),
    ];
    match transport(facts) {
        "CFN_SIGNAL" => {
            // The URL does not expire, because the timeout of the stack may be longer than Keystone accepts.
            let url = signed(facts, &cx.cloud.signal_endpoints().await?, SignedFor::Signal, None)?;
            own.push(input("deploy_signal_id", url.into(), "Where to send the outputs"));
            own.push(input("deploy_signal_verb", "POST".into(), "The HTTP method to send the outputs"));
        }
        "TEMP_URL_SIGNAL" => {
            own.push(input("deploy_signal_id", text(facts, signal_place::URL).into(), "Where to send the outputs"));
            own.push(input("deploy_signal_verb", "PUT".into(), "The HTTP method to send the outputs"));
        }
        "HEAT_SIGNAL" | "ZAQAR_SIGNAL" => {
            let endpoints = cx.cloud.signal_endpoints().await?;
            let secret = |key: &str| text(facts, key).into();
            let project = facts.stack.user_project_id.clone().into();
            own.push(input("deploy_auth_url", endpoints.keystone.into(), "URL of Keystone"));
            own.push(input("deploy_username", facts.physical_name.as_str().into(), "Name of the user who reports"));
            own.push(input("deploy_user_id", secret(USER), "ID of the user who reports"));
            own.push(input("deploy_password", secret(PASSWORD), "Password of the user who reports"));
            own.push(input("deploy_project_id", project, "Project of the user who reports"));
            let region = endpoints.region.filter(|region| !region.is_empty());
            own.extend(region.map(|region| input("deploy_region_name", region.into(), "Region of the services")));
            if transport(facts) == "ZAQAR_SIGNAL" {
                own.push(input("deploy_queue_id", text(facts, signal_place::QUEUE).into(), "Queue for the outputs"));
            }
        }
        _ => {}
    }
    Ok(own)
}

fn id(parts: &[&str]) -> String {
    let hash = sha2::Sha256::digest(parts.join("\n"));
    let bytes = hash.first_chunk::<16>().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
