//! Barbican.

use super::{Id, NOUN, Noun, States};
use crate::reply::{Outcome, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::Fields;

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

/// The payload of a secret, as text.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    let ["secrets", id, "payload"] = segments else { return None };
    let noun = NOUNS.first()?;
    if request.method != "GET" {
        return None;
    }
    Some(noun.find(world, id).map(|row| Reply::text(200, row.text("payload").to_owned())))
}
