//! Barbican.

use super::{Id, NOUN, Noun, States};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row};

const STATES: Option<States> =
    Some(States { field: "status", making: "PENDING", made: "ACTIVE", changing: "", deleting: "", failed: "ERROR" });

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::KeyManager,
        path: &["secrets"],
        many: "secrets",
        id: Id::Href("secret_ref"),
        optional: &[
            "name",
            "payload",
            "secret_type",
            "payload_content_type",
            "payload_content_encoding",
            "expiration",
            "algorithm",
            "bit_length",
            "mode",
        ],
        defaults: r#"{"status": "ACTIVE", "name": null}"#,
        ..NOUN
    },
    Noun {
        service: Service::KeyManager,
        path: &["containers"],
        many: "containers",
        id: Id::Href("container_ref"),
        required: &["type", "secret_refs"],
        optional: &["name"],
        defaults: r#"{"status": "ACTIVE", "consumers": []}"#,
        ..NOUN
    },
    Noun {
        service: Service::KeyManager,
        path: &["orders"],
        many: "orders",
        id: Id::Href("order_ref"),
        required: &["type", "meta"],
        defaults: r#"{"secret_ref": "http://testcloud/key-manager/v1/secrets/none"}"#,
        states: STATES,
        ..NOUN
    },
];

/// The payload of a secret, as text; and the secrets of a container.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    let [secrets, containers, _] = NOUNS else { return None };
    match (segments, request.method.as_str()) {
        (["secrets", id, "payload"], "GET") => {
            Some(secrets.find(world, id).map(|row| Reply::text(200, row.text("_payload").to_owned())))
        }
        (["containers", id, "secrets"], "POST" | "DELETE") => Some(change(world, request, containers, id)),
        _ => None,
    }
}

/// Adds or removes a secret. Other containers than generic ones have fixed secrets.
fn change(world: &mut CloudState, request: &ServiceCall, noun: &Noun, id: &str) -> Outcome {
    let reference = request.json("The body is not valid JSON")?;
    let row = noun.find(world, id)?;
    let (key, shown) = (row.text("id").to_owned(), row.text("container_ref").to_owned());
    if row.text("type") != "generic" {
        return Err(Refusal::bad("Only 'generic' containers can be modified."));
    }
    let is_it = |own: &serde_json::Value| own["secret_ref"] == reference["secret_ref"];
    let has = row.list("secret_refs").iter().any(is_it);
    if request.method == "DELETE" {
        world.nouns.rows.edit(&key, |row| row.drop_from("secret_refs", is_it));
        return Ok(Reply::empty(204));
    }
    if has {
        return Err(Refusal::conflict("Conflict. A secret with that name and ID is already stored in this container."));
    }
    world.nouns.rows.edit(&key, |row| row.push("secret_refs", reference));
    Ok(Reply::created(serde_json::json!({"container_ref": shown})))
}

/// A secret is shown without its payload, and with the type of that.
pub(super) fn hide_payload(row: &mut Row) {
    let kind = row.shift_remove("payload_content_type").unwrap_or_default();
    row.shift_remove("payload_content_encoding");
    if let Some(payload) = row.shift_remove("payload") {
        row.put("_payload", payload);
        row.put("content_types", serde_json::json!({"default": kind}));
    }
}
