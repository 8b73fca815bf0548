//! OS::Manila::Share

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, Method};
use kiln_value::{Map, Value, text, value};

use super::call;
use crate::call::{absent_is_fine, is_uuid_like, items};
use crate::path::segment;
use crate::rest::{Edit, Shape};

/// A share with its access rules.
pub(super) struct Share;

/// Properties that refer to other objects, and their keys in the body.
const REFERENCES: [(&str, &str); 3] =
    [("snapshot", "snapshot_id"), ("share_network", "share_network_id"), ("share_type", "share_type")];

/// The keys of a rule.
const RULE: [&str; 3] = ["access_type", "access_to", "access_level"];

fn path_of(id: &str, what: &str) -> String {
    format!("/v2/shares/{}/{what}", segment(id))
}

/// What a rule allows. Without a level, that is both reading and writing.
fn allowed(rule: &Value) -> [String; 3] {
    RULE.map(|key| rule.get(key).filter(|value| value.is_truthy()).map_or_else(|| "rw".to_owned(), text::str))
}

/// The rules of the share.
async fn rules(cx: &Context<'_>, id: &str) -> Result<Vec<Value>, Failure> {
    let body = value!({"access_list": (Value::Null)});
    items(call(cx, Method::Post, path_of(id, "action"), Some(body)).await?, "access_list")
}

/// Removes the rules that are not wanted, and adds the missing ones.
async fn settle(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let wanted = cx.facts.property("access_rules").as_list().unwrap_or_default();
    let present = rules(cx, id).await?;
    let is_in = |rule: &Value, others: &[Value]| others.iter().any(|other| allowed(other) == allowed(rule));
    for rule in present.iter().filter(|rule| !is_in(rule, wanted)) {
        let body = value!({"deny_access": {"access_id": (rule.get("id").cloned())}});
        absent_is_fine(call(cx, Method::Post, path_of(id, "action"), Some(body)).await)?;
    }
    for rule in wanted.iter().filter(|rule| !is_in(rule, &present)) {
        let entries = RULE.iter().map(|key| ((*key).to_owned(), rule.get(key).cloned().unwrap_or_default()));
        let body = value!({"allow_access": (entries.collect::<Map>())});
        call(cx, Method::Post, path_of(id, "action"), Some(body)).await?;
    }
    Ok(())
}

#[async_trait]
impl Shape for Share {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        for (property, key) in REFERENCES {
            let id = cx.facts.property(property);
            if id.is_truthy() {
                body.insert(key.to_owned(), id.clone());
            }
        }
        Ok(())
    }

    fn name_for_update(&self, body: &mut Map) {
        for (key, other) in [("name", "display_name"), ("description", "display_description")] {
            if let Some(value) = body.shift_remove(key) {
                body.insert(other.to_owned(), value);
            }
        }
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("access_rules").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        if !self.has_more(cx.facts) {
            return Ok(());
        }
        settle(cx, id).await.map_err(|failure| {
            if failure.is_passing() {
                return failure;
            }
            let text = format!(
                "Error during applying access rules to share \"{id}\". The root cause of the problem is the \
                 following: {}.",
                failure.message
            );
            Failure::in_error("available", &text)
        })
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        if let Some(metadata) = edit.changed.get("metadata") {
            let metadata = metadata.as_map().cloned().unwrap_or_default();
            call(cx, Method::Put, path_of(id, "metadata"), Some(value!({"metadata": metadata}))).await?;
        }
        if edit.changed.contains_key("access_rules") { settle(cx, id).await } else { Ok(()) }
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("metadata");
        Ok(())
    }

    fn reason(&self, _facts: &Facts, object: &Value) -> Option<String> {
        let what = if object.str_at("status") == Some("error_deleting") { "deleting" } else { "creation of" };
        Some(format!("Error during {what} share \"{}\"", object.str_at("id").unwrap_or_default()))
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name == "show" {
            return Ok(None);
        }
        if name != "export_locations" {
            return Ok(Some(text::str(object.get(name).unwrap_or(&Value::Null)).into()));
        }
        let path = path_of(object.str_at("id").unwrap_or_default(), "export_locations");
        let places = items(call(cx, Method::Get, path, None).await?, "export_locations")?;
        Ok(Some(places.iter().map(|place| place.get("path").cloned().unwrap_or_default()).collect()))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let given = cx.facts.property("access_rules").as_list().unwrap_or_default();
        let present = rules(cx, object.str_at("id").unwrap_or_default()).await?;
        // In the order and with the words of the template, as far as they are the same.
        let kept = given.iter().filter(|rule| present.iter().any(|own| allowed(own) == allowed(rule))).cloned();
        let others = present.iter().filter(|own| !given.iter().any(|rule| allowed(own) == allowed(rule)));
        let plain = |rule: &Value| -> Value {
            RULE.iter().map(|key| ((*key).to_owned(), rule.get(key).cloned().unwrap_or_default())).collect()
        };
        for (property, key) in REFERENCES {
            // Old versions of Manila show the name of the type.
            let id = object.get(key).filter(|id| key != "share_type" || id.as_str().is_some_and(is_uuid_like));
            live.extend(id.map(|id| (property.to_owned(), id.clone())));
        }
        live.insert("access_rules".to_owned(), kept.chain(others.map(plain)).collect());
        if cx.facts.property("metadata").is_null() && live.get("metadata").is_none_or(|own| !own.is_truthy()) {
            live.insert("metadata".to_owned(), Value::Null);
        }
        Ok(())
    }
}
