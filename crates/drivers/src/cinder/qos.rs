//! OS::Cinder::QoSSpecs and OS::Cinder::QoSAssociation

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Map, Value, value};

use crate::call::{CINDER, absent_is_fine};
use crate::rest::{Edit, Shape};
use crate::{path, queue};

/// QoS specs: a map of limits for volumes.
pub(super) struct QosSpecs;

fn path_of(id: &str, action: &str) -> String {
    format!("/v3/qos-specs/{}/{action}", path::segment(id))
}

#[async_trait]
impl Shape for QosSpecs {
    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let Some(after) = edit.changed.get("specs") else { return Ok(()) };
        let before = edit.before.get("specs").and_then(Value::as_map);
        let gone = before.into_iter().flat_map(Map::keys).filter(|key| after.get(key).is_none());
        let gone: Vec<Value> = gone.map(|key| key.as_str().into()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        // A repeated call may find that the keys are gone.
        absent_is_fine(CINDER.put(cx, path_of(id, "delete_keys"), value!({"keys": gone})).await)
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        live.insert("specs".to_owned(), object.get("specs").cloned().unwrap_or_default());
        Ok(())
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        absent_is_fine(CINDER.get(cx, path_of(id, "disassociate_all")).await)
    }
}

/// The volume types that have QoS specs. It is no object: its ID is that of the resource, as in Heat.
pub(super) struct QosAssociation;

/// Associates or disassociates types. Idempotent.
async fn call(cx: &Context<'_>, action: &str, types: &[Value]) -> Result<(), Failure> {
    let specs = kiln_value::text::str(cx.facts.property("qos_specs"));
    for volume_type in types.iter().filter_map(Value::as_str) {
        let query = [("vol_type_id", volume_type)];
        let request = kiln_resource::CloudRequest::new(CINDER.0, kiln_resource::Method::Get, path_of(&specs, action));
        let request = query.into_iter().fold(request, |request, (key, value)| request.query(key, value));
        let outcome = cx.cloud.call(request).await;
        if action == "disassociate" { absent_is_fine(outcome)? } else { drop(outcome?) }
    }
    Ok(())
}

/// The items of a list that another one lacks.
fn unlike(list: Option<&Value>, other: Option<&Value>) -> Vec<Value> {
    let items = |list: Option<&Value>| list.and_then(Value::as_list).unwrap_or_default().to_vec();
    let other = items(other);
    items(list).into_iter().filter(|item| !other.contains(item)).collect()
}

impl TypeRules for QosAssociation {}

#[async_trait]
impl Driver for QosAssociation {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, so that a delete disassociates the types.
            Operation::Create => Ok(queue::now("associate").id(cx.facts.id.as_str())),
            Operation::Update { before, .. } => {
                let (before, after) = (before.get("volume_types"), cx.facts.properties.get("volume_types"));
                call(cx, "associate", &unlike(after, before)).await?;
                call(cx, "disassociate", &unlike(before, after)).await?;
                Ok(Step::done())
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    call(cx, "disassociate", &unlike(cx.facts.properties.get("volume_types"), None)).await?;
                }
                Ok(Step::done())
            }
            Operation::Check | Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => {
                Ok(Step::done())
            }
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        call(cx, "associate", &unlike(cx.facts.properties.get("volume_types"), None)).await?;
        Ok(Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    /// Other types may have the same specs.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let specs = cx.facts.property("qos_specs").clone();
        let path = path_of(&kiln_value::text::str(&specs), "associations");
        let held = CINDER.list(cx, path, &[], "qos_associations").await?;
        let is_held = |own: &&Value| held.iter().any(|held| held.get("id") == Some(own));
        let own = cx.facts.property("volume_types").as_list().unwrap_or_default();
        let types = own.iter().filter(is_held).cloned().collect();
        Ok(Map::from([("qos_specs".to_owned(), specs), ("volume_types".to_owned(), types)]))
    }
}
