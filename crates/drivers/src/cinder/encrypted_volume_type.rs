//! OS::Cinder::EncryptedVolumeType

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, FailureKind, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use super::volume_type::encryption;
use crate::call::CINDER;
use crate::path;

/// The encryption of a volume type, of which there is one at most. Its ID is that of the type.
pub(super) struct EncryptedVolumeType;

/// The properties of the encryption itself.
const FIELDS: [&str; 4] = ["provider", "cipher", "key_size", "control_location"];

fn provider_path(id: &str) -> String {
    format!("/v3/types/{}/encryption/provider", path::segment(id))
}

fn body(properties: &Map) -> Value {
    let entry = |name: &str| (name.to_owned(), properties.get(name).cloned().unwrap_or_default());
    value!({"encryption": (FIELDS.into_iter().map(entry).collect::<Map>())})
}

fn volume_type<'a>(cx: &Context<'a>) -> &'a str {
    cx.facts.property("volume_type").as_str().unwrap_or_default()
}

/// The current encryption. Cinder returns an empty object if there is none.
async fn show(cx: &Context<'_>, id: &str) -> Result<Option<Value>, Failure> {
    match cx.cloud.call(encryption(id)).await {
        Ok(response) => Ok(Some(response.body).filter(|object| object.str_at("volume_type_id").is_some())),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn require(cx: &Context<'_>) -> Result<Value, Failure> {
    let id = cx.facts.require_id()?;
    let text = format!("Volume type {id} has no encryption");
    let missing = Failure::new(FailureKind::NotFound, Class::NotFound, text);
    show(cx, id).await?.ok_or(missing)
}

impl TypeRules for EncryptedVolumeType {}

#[async_trait]
impl Driver for EncryptedVolumeType {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let id = volume_type(cx);
                let path = format!("/v3/types/{}/encryption", path::segment(id));
                CINDER.post(cx, path, body(&cx.facts.properties)).await?;
                Ok(Step::done().id(id))
            }
            Operation::Update { .. } => {
                CINDER.put(cx, provider_path(cx.facts.require_id()?), body(&cx.facts.properties)).await?;
                Ok(Step::done())
            }
            Operation::Delete => {
                if let Some(id) = cx.facts.physical_id.as_deref() {
                    CINDER.delete(cx, provider_path(id)).await?;
                }
                Ok(Step::done())
            }
            Operation::Check => require(cx).await.map(|_| Step::done()),
            Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    /// Cinder rejects a second encryption of a type.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let id = volume_type(cx);
        Ok(if show(cx, id).await?.is_some() { Found::Made(Step::done().id(id)) } else { Found::NotMade })
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let encryption = require(cx).await?;
        let read = |name: &str| Some((name.to_owned(), encryption.get(name)?.clone()));
        let volume_type = encryption.get("volume_type_id").map(|id| ("volume_type".to_owned(), id.clone()));
        Ok(FIELDS.into_iter().filter_map(read).chain(volume_type).collect())
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let object = match cx.facts.physical_id.as_deref() {
            Some(id) => show(cx, id).await?.unwrap_or_default(),
            None => Value::Null,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), object.clone())).collect())
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        match cx.facts.physical_id.as_deref() {
            Some(id) => Ok(show(cx, id).await?.is_none()),
            None => Ok(true),
        }
    }
}
