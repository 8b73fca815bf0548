//! Updates of a server in place.
//!
//! Immediate changes are requested at once; the others form a queue of tasks.

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method, PropertyChange, Step};
use kiln_value::{Class, Map, Value, value};

use super::interfaces;
use super::networks::{self, INTERNAL_PORTS};
use super::{act, create, peek, server_path, set_tags, show, status, task_state, user_data};
use crate::call::NOVA;
use crate::path;
use crate::queue::{self, Effect, Tasks};

/// Heat's `needs_replace_with_prop_diff`.
pub(super) fn needs_replace(change: &PropertyChange) -> bool {
    let policy = |name: &str| {
        let after = change.after.get(name).filter(|policy| policy.is_truthy());
        after.or_else(|| change.before.get(name)).and_then(Value::as_str)
    };
    let is_replaced = |property: &str, by: &str| {
        change.changed.iter().any(|changed| changed == property) && policy(by) == Some("REPLACE")
    };
    is_replaced("flavor", "flavor_update_policy")
        || is_replaced("image", "image_update_policy")
        || is_replaced("user_data", "user_data_update_policy")
}

/// Whether the server is rebuilt, with a new disk.
pub(super) fn rebuilds(properties: &Map, changed: &Map) -> bool {
    changed.contains_key("image") || takes_user_data(properties, changed)
}

/// Whether the server is rebuilt with new user data.
fn takes_user_data(properties: &Map, changed: &Map) -> bool {
    let policy = properties.get("user_data_update_policy").and_then(Value::as_str);
    changed.contains_key("user_data") && policy == Some("REBUILD")
}

/// Starts an update.
pub(super) async fn start(cx: &Context<'_>, before: &Map, changed: &Map) -> Result<Step, Failure> {
    let id = cx.facts.require_id()?;
    if changed.contains_key("metadata") {
        set_metadata(cx, id).await?;
    }
    if let Some(tags) = changed.get("tags") {
        set_tags(cx, id, tags).await?;
    }
    if changed.contains_key("name") {
        let body = value!({"server": {"name": create::name(cx.facts)}});
        NOVA.put(cx, server_path(id), body).await?;
    }
    let mut tasks = Vec::new();
    let mut made = Vec::new();
    if changed.contains_key("networks") {
        let present = attached(cx, id).await?;
        let plan = interfaces::changes(cx, &present, before).await?;
        tasks.extend(plan.tasks);
        made = plan.made;
    }
    if let Some(flavor) = changed.get("flavor") {
        tasks.push(value!({"do": "resize", "flavor": flavor}));
        tasks.push(value!({"do": "confirm", "flavor": flavor}));
    }
    let properties = &cx.facts.properties;
    if rebuilds(properties, changed) {
        let with_user_data = takes_user_data(properties, changed);
        tasks.push(value!({"do": "rebuild", "user_data": with_user_data}));
    } else if let Some(password) = changed.get("admin_pass") {
        act(cx, id, value!({"changePassword": {"adminPass": password}})).await?;
    }
    let step = queue::start(tasks);
    if made.is_empty() {
        return Ok(step);
    }
    let ports = [networks::internal_ports(&cx.facts.data), made].concat();
    Ok(step.data(INTERNAL_PORTS, networks::ports_entry(&ports)))
}

/// The tasks of a server: `detach`, `attach`, `resize`, `confirm`, `rebuild`.
pub(super) struct ServerTasks;

#[async_trait]
impl Tasks for ServerTasks {
    async fn call(&self, cx: &Context<'_>, task: &Value) -> Result<Effect, Failure> {
        let id = cx.facts.require_id()?;
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        match text("do") {
            "detach" => return detach(cx, id, text("port")).await,
            "attach" => attach(cx, id, task).await?,
            "resize" => resize(cx, id, text("flavor")).await?,
            "confirm" => confirm(cx, id, text("flavor")).await?,
            "rebuild" => rebuild(cx, id, task).await?,
            other => return Err(Failure::other(Class::Error, format!("unknown task of a server: {other}"))),
        }
        Ok(Effect::default())
    }

    async fn is_complete(&self, cx: &Context<'_>, task: &Value) -> Result<bool, Failure> {
        let id = cx.facts.require_id()?;
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        match text("do") {
            "detach" => return Ok(!attached(cx, id).await?.iter().any(|i| i.str_at("port_id") == task.str_at("port"))),
            "attach" => {
                let interfaces = attached(cx, id).await?;
                return Ok(match task.str_at("port") {
                    Some(port) => interfaces.iter().any(|i| i.str_at("port_id") == Some(port)),
                    None => has_more(task, &interfaces),
                });
            }
            _ => {}
        }
        let Some(server) = peek(cx, id).await? else { return Ok(false) };
        match text("do") {
            "resize" => is_resized(&server, text("flavor")),
            "confirm" => is_confirmed(&server, id),
            _ => is_rebuilt(&server),
        }
    }
}

async fn resize(cx: &Context<'_>, id: &str, wanted: &str) -> Result<(), Failure> {
    let server = show(cx, id).await?;
    // The engine may have failed between the call and the storing of its result.
    let is_asked = task_state(&server).is_some_and(|task| task.starts_with("resize_"));
    if !is_asked && !matches!(status(&server), "RESIZE" | "VERIFY_RESIZE") && flavor(&server) != Some(wanted) {
        let mut request = Map::from([("flavorRef".to_owned(), wanted.into())]);
        // Without it, Nova sets it to MANUAL.
        if let Some(config) = cx.facts.property("diskConfig").as_str() {
            request.insert("OS-DCF:diskConfig".to_owned(), config.into());
        }
        act(cx, id, value!({ "resize": request })).await?;
    }
    Ok(())
}

fn is_resized(server: &Value, wanted: &str) -> Result<bool, Failure> {
    match status(server) {
        "VERIFY_RESIZE" => Ok(true),
        // Nova may be configured to confirm automatically.
        "ACTIVE" => Ok(task_state(server).is_none() && flavor(server) == Some(wanted)),
        "RESIZE" => Ok(false),
        status => Err(Failure::other(Class::Error, format!("Resizing to '{wanted}' failed, status '{status}'"))),
    }
}

async fn confirm(cx: &Context<'_>, id: &str, wanted: &str) -> Result<(), Failure> {
    let server = show(cx, id).await?;
    match status(&server) {
        "VERIFY_RESIZE" => act(cx, id, value!({"confirmResize": null})).await.map(|_| ()),
        "ACTIVE" if flavor(&server) == Some(wanted) => Ok(()),
        status => {
            let what = format!("Could not confirm resize of server {id}");
            Err(Failure::unknown_status(&what, status, "Unknown"))
        }
    }
}

fn is_confirmed(server: &Value, id: &str) -> Result<bool, Failure> {
    match status(server) {
        "ACTIVE" => Ok(true),
        "VERIFY_RESIZE" => Ok(false),
        _ if task_state(server).is_some_and(|task| task.contains("resize")) => Ok(false),
        status => {
            let what = format!("Confirm resize for server {id} failed");
            Err(Failure::unknown_status(&what, status, "Unknown"))
        }
    }
}

fn is_rebuilt(server: &Value) -> Result<bool, Failure> {
    match status(server) {
        "REBUILD" => Ok(false),
        "ERROR" => Err(Failure::other(Class::Error, "Rebuilding server failed, status 'ERROR'")),
        _ => Ok(task_state(server).is_none_or(|task| !task.contains("rebuild"))),
    }
}

fn flavor(server: &Value) -> Option<&str> {
    server.get("flavor")?.str_at("id")
}

/// Sets the metadata to exactly that of the template.
async fn set_metadata(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let empty = Map::new();
    let given = cx.facts.property("metadata").as_map().unwrap_or(&empty);
    let path = format!("{}/metadata", server_path(id));
    NOVA.put(cx, path, value!({"metadata": create::metadata_texts(given)})).await.map(|_| ())
}

async fn rebuild(cx: &Context<'_>, id: &str, task: &Value) -> Result<(), Failure> {
    let server = show(cx, id).await?;
    let present = server.get("image").and_then(|image| image.str_at("id")).unwrap_or_default();
    let image = cx.facts.property("image").as_str().unwrap_or(present);
    let with_user_data = task.get("user_data").is_some_and(Value::is_truthy);
    // The engine may have failed between the call and the storing of its result. Nova shows a new image from the call
    // on, but never new user data; repeating a rebuild is harmless.
    let is_asked = status(&server) == "REBUILD" || task_state(&server).is_some_and(|task| task.starts_with("rebuild"));
    if is_asked || (!with_user_data && image == present) {
        return Ok(());
    }
    let mut request = Map::new();
    request.insert("imageRef".into(), image.into());
    let mut version = "2.1";
    if cx.facts.property("image_update_policy").as_str() == Some("REBUILD_PRESERVE_EPHEMERAL") {
        request.insert("preserve_ephemeral".into(), true.into());
    }
    if let Some(password) = cx.facts.property("admin_pass").as_str().filter(|p| !p.is_empty()) {
        request.insert("adminPass".into(), password.into());
    }
    if let Some(metadata) = cx.facts.property("metadata").as_map().filter(|m| !m.is_empty()) {
        request.insert("metadata".into(), create::metadata_texts(metadata));
    }
    if with_user_data {
        let text = create::user_data(cx).await?;
        request.insert("user_data".into(), user_data::encode(&text).into());
        version = "2.57";
    } else if let Some(files) = create::personality(cx.facts) {
        request.insert("personality".into(), files);
    }
    let path = format!("{}/action", server_path(id));
    let call = CloudRequest::new(NOVA.0, Method::Post, path).body(value!({"rebuild": request})).microversion(version);
    cx.cloud.call(call).await.map(|_| ())
}

async fn attached(cx: &Context<'_>, id: &str) -> Result<Vec<Value>, Failure> {
    NOVA.list(cx, format!("{}/os-interface", server_path(id)), &[], "interfaceAttachments").await
}

/// Whether there are more interfaces than before the task, which indicates an attach by network.
fn has_more(task: &Value, interfaces: &[Value]) -> bool {
    let before = task.get("before").and_then(Value::as_i64).and_then(|n| usize::try_from(n).ok());
    before.is_some_and(|before| interfaces.len() > before)
}

/// Detaches an interface, and deletes its port if Kiln created it.
async fn detach(cx: &Context<'_>, id: &str, port: &str) -> Result<Effect, Failure> {
    NOVA.delete(cx, format!("{}/os-interface/{}", server_path(id), path::segment(port))).await?;
    let mut internal = networks::internal_ports(&cx.facts.data);
    let mut effect = Effect::default();
    if let Some(at) = internal.iter().position(|known| known == port) {
        internal.remove(at);
        match networks::delete_port(cx, port).await {
            // Nova still uses it: it is deleted with the server.
            Err(failure) if failure.kind == FailureKind::Conflict => {}
            outcome => {
                outcome?;
                effect.data.insert(INTERNAL_PORTS.into(), networks::ports_entry(&internal));
            }
        }
    }
    Ok(effect)
}

async fn attach(cx: &Context<'_>, id: &str, task: &Value) -> Result<(), Failure> {
    let present = attached(cx, id).await?;
    let body = match task.str_at("port") {
        Some(port) if present.iter().any(|i| i.str_at("port_id") == Some(port)) => return Ok(()),
        Some(port) => value!({"port_id": port}),
        // One more than before: an attach whose response was lost.
        None if has_more(task, &present) => return Ok(()),
        None => {
            let mut body = Map::new();
            if let Some(network) = task.str_at("network") {
                body.insert("net_id".into(), network.into());
            }
            if let Some(address) = task.str_at("fixed_ip") {
                body.insert("fixed_ips".into(), value!([{"ip_address": address}]));
            }
            Value::Map(body)
        }
    };
    let path = format!("{}/os-interface", server_path(id));
    NOVA.post(cx, path, value!({"interfaceAttachment": body})).await.map(|_| ())
}
