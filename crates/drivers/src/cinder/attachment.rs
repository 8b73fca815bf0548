//! OS::Cinder::VolumeAttachment

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, FailureKind, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use super::{attach, attachment_of, detach, is_attached, is_detached};
use crate::queue::{self, Effect, Tasks, again, wait};

/// A volume attached to a server.
pub(crate) struct VolumeAttachment;

fn text<'a>(properties: &'a Map, name: &str) -> &'a str {
    properties.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Server, volume and device in properties.
fn parts(properties: &Map) -> (&str, &str, Option<&str>) {
    let device = properties.get("mountpoint").and_then(Value::as_str);
    (text(properties, "instance_uuid"), text(properties, "volume_id"), device)
}

fn not_attached(server: &str, volume: &str) -> Failure {
    let message = format!("Volume {volume} is not attached to server {server}.");
    Failure::new(FailureKind::NotFound, Class::NotFound, message)
}

impl TypeRules for VolumeAttachment {}

#[async_trait]
impl Driver for VolumeAttachment {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let (server, volume, device) = parts(&cx.facts.properties);
        match operation {
            Operation::Create => {
                let id = attach(cx, server, volume, device).await?;
                Ok(wait("attach").id(id))
            }
            Operation::Update { before, .. } => {
                let (old_server, old_volume, _) = parts(before);
                Ok(queue::start(vec![
                    value!({"do": "detach", "server": old_server, "volume": old_volume,
                        "attachment": cx.facts.require_id()?}),
                    value!({"do": "attach", "server": server, "volume": volume, "device": device}),
                ]))
            }
            Operation::Delete => {
                let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(Step::done()) };
                detach(cx, server, id).await?;
                Ok(wait("detach"))
            }
            Operation::Check if attachment_of(cx, server, volume).await?.is_some() => Ok(Step::done()),
            Operation::Check => Err(not_attached(server, volume)),
            Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let (server, volume, _) = parts(&cx.facts.properties);
        match state.str_at("stage") {
            Some(queue::STAGE) => queue::poll(self, cx, state).await,
            Some("detach") => {
                let is_done = is_detached(cx, server, volume, cx.facts.require_id()?).await?;
                Ok(if is_done { Step::done() } else { again(cx, state, "the end of the detach") })
            }
            _ => {
                let is_done = is_attached(cx, server, volume).await?;
                Ok(if is_done { Step::done() } else { again(cx, state, "the end of the attach") })
            }
        }
    }

    /// The device is left out: the server names it as it likes.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let (server, volume, _) = parts(&cx.facts.properties);
        attachment_of(cx, server, volume).await?.ok_or_else(|| not_attached(server, volume))?;
        Ok(Map::from([("instance_uuid".to_owned(), server.into()), ("volume_id".to_owned(), volume.into())]))
    }

    /// Server and volume identify the attachment.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let (server, volume, _) = parts(&cx.facts.properties);
        let found = attachment_of(cx, server, volume).await?;
        Ok(found.map_or(Found::NotMade, |id| Found::Made(wait("attach").id(id))))
    }
}

#[async_trait]
impl Tasks for VolumeAttachment {
    async fn call(&self, cx: &Context<'_>, task: &Value) -> Result<Effect, Failure> {
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        if text("do") == "detach" {
            detach(cx, text("server"), text("attachment")).await?;
            return Ok(Effect::default());
        }
        let id = match attachment_of(cx, text("server"), text("volume")).await? {
            Some(id) => id,
            None => attach(cx, text("server"), text("volume"), task.str_at("device")).await?,
        };
        Ok(Effect { physical_id: Some(id), ..Effect::default() })
    }

    async fn is_complete(&self, cx: &Context<'_>, task: &Value) -> Result<bool, Failure> {
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        match text("do") {
            "detach" => is_detached(cx, text("server"), text("volume"), text("attachment")).await,
            _ => is_attached(cx, text("server"), text("volume")).await,
        }
    }
}
