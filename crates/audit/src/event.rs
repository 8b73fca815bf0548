//! The event of a request, in CADF.

use std::net::IpAddr;

use jiff::Timestamp;
use kiln_cloud::{Catalog, CatalogService};
use kiln_value::{Map, Value, value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use uuid::Uuid;

use crate::map::AuditMap;

/// What CADF says when nothing is known.
const UNKNOWN: &str = "unknown";
/// What replaces the middle of a token.
const MASK: &str = "xxxxxxxx";
/// The part of a token that is shown at each end, as a divisor of its length.
const SHOWN: usize = 8;
/// The longest such part, in characters.
const LONGEST: usize = 32;

/// The characters that stay as they are in a path, as webob writes it.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b';');

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    /// ID of the user.
    pub user_id: &'a str,
    /// Name of the user.
    pub username: &'a str,
    /// ID of the project; empty: none.
    pub project_id: &'a str,
    /// The service catalog of the token.
    pub catalog: Option<&'a Catalog>,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path as it was sent.
    pub path: &'a str,
    /// The query as it was sent.
    pub query: Option<&'a str>,
    /// The host that the client named, with its port: `heat.example:8004`.
    pub host: &'a str,
    /// The address of the client.
    pub client: Option<IpAddr>,
    /// The header `User-Agent`.
    pub agent: Option<&'a str>,
    /// The token; only its ends are shown.
    pub token: &'a str,
    /// Who sent it; `None`: nobody whom Keystone knows.
    pub requester: Option<Requester<'a>>,
    /// The ID of the request.
    pub request_id: &'a str,
    /// The ID that another service gave to the request that this one is a part of.
    pub global_request_id: Option<&'a str>,
}

/// What Kiln adds to the event of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What it is: `stack`, `action`.
    pub name: &'static str,
    /// Its value.
    pub content: String,
}

impl Request<'_> {
    /// The path, decoded.
    pub(crate) fn decoded_path(&self) -> String {
        percent_decode_str(self.path).decode_utf8_lossy().into_owned()
    }

    /// The event before the work, without what differs in each: `id`, `eventTime`, `tags`.
    pub(crate) fn event(&self, map: &AuditMap) -> Map {
        let path = utf8_percent_encode(&self.decoded_path(), PATH).to_string();
        let mut host = Map::new();
        if let Some(client) = self.client {
            host.insert("address".to_owned(), client.to_string().into());
        }
        if let Some(agent) = self.agent {
            host.insert("agent".to_owned(), agent.into());
        }
        let of = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or(UNKNOWN).to_owned();
        let requester = self.requester.as_ref();
        let status = if requester.is_some() { "Confirmed" } else { "Invalid" };
        let mut initiator = value!({
            "typeURI": "service/security/account/user",
            "id": (of(requester.map(|who| who.user_id))),
            "name": (of(requester.map(|who| who.username))),
            "credential": { "token": (masked(self.token)), "identity_status": status },
            "host": (Value::Map(host)),
            "project_id": (of(requester.map(|who| who.project_id))),
            "request_id": (self.request_id),
        });
        if let (Some(initiator), Some(id)) = (initiator.as_map_mut(), self.global_request_id) {
            initiator.insert("global_request_id".to_owned(), id.into());
        }
        let query = self.query.map(|query| format!("?{query}")).unwrap_or_default();
        let event = value!({
            "typeURI": "http://schemas.dmtf.org/cloud/audit/1.0/event",
            "eventType": "activity",
            "action": (map.action(self.method, &path)),
            "outcome": "pending",
            "observer": { "id": "target" },
            "initiator": initiator,
            "target": (self.target(map, &path)),
            "requestPath": (format!("{path}{query}")),
        });
        match event {
            Value::Map(event) => event,
            _ => Map::new(),
        }
    }

    /// The service in the catalog, and what of it the request is about.
    fn target(&self, map: &AuditMap, path: &str) -> Value {
        let catalog = self.requester.as_ref().and_then(|who| who.catalog);
        let services: Vec<CatalogService<'_>> = catalog.map(|catalog| catalog.services().collect()).unwrap_or_default();
        let has_port = self.host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let is_named = |service: &&CatalogService<'_>| {
            let names = |url: Option<&str>| url.is_some_and(|url| authority(url) == self.host);
            has_port && (names(service.admin) || names(service.public))
        };
        let of_type = |service: &&CatalogService<'_>| map.service.as_deref() == Some(service.kind);
        let found = services.iter().find(is_named).or_else(|| services.iter().rev().find(of_type));
        let Some(service) = found else {
            return value!({ "id": UNKNOWN, "name": UNKNOWN, "typeURI": UNKNOWN });
        };
        let kind = match map.services.get(service.kind) {
            Some(kind) => map.target_type(kind, path),
            None => UNKNOWN.to_owned(),
        };
        let address =
            |name: &str, url: Option<&str>| value!({ "name": name, "url": (url.unwrap_or(UNKNOWN).to_owned()) });
        value!({
            "id": (service.name),
            "name": (service.name),
            "typeURI": kind,
            "addresses": [
                (address("admin", service.admin)),
                (address("private", service.internal)),
                (address("public", service.public)),
            ],
        })
    }
}

/// `heat.example:8004` of `http://heat.example:8004/v1/…`.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A token of which only the ends are shown. The filter shows all of a token that is very short; Kiln shows nothing of it.
fn masked(token: &str) -> String {
    if token.is_empty() {
        return String::new();
    }
    let characters: Vec<char> = token.chars().collect();
    // Rounded to the nearest, halves to even, as in Python.
    let (whole, rest) = (characters.len() / SHOWN, characters.len() % SHOWN);
    let up = rest * 2 > SHOWN || (rest * 2 == SHOWN && whole % 2 == 1);
    let shown = (whole + usize::from(up)).min(LONGEST);
    let start: String = characters[..shown].iter().collect();
    let end: String = characters[characters.len() - shown..].iter().collect();
    format!("{start} {MASK} {end}")
}

/// What differs in each event: its ID, time, and the ID that its two notifications have in common.
pub(crate) fn identified(event: &mut Map, id: Uuid, correlation: Uuid, time: Timestamp) {
    event.insert("id".to_owned(), id.to_string().into());
    event.insert("eventTime".to_owned(), written(time).into());
    event.insert("tags".to_owned(), value!([(format!("correlation_id?value={correlation}"))]));
}

/// The event of a request whose client has gone away, as the filter writes it after an exception.
pub(crate) fn abandoned(event: &mut Map, time: Timestamp) {
    event.insert("outcome".to_owned(), UNKNOWN.into());
    event.insert("reporterchain".to_owned(), value!([(reporter(time))]));
}

fn reporter(time: Timestamp) -> Value {
    value!({ "role": "modifier", "reporter": { "id": "target" }, "reporterTime": (written(time)) })
}

/// The event after the work.
pub(crate) fn ended(event: &mut Map, status: u16, attachments: Vec<Attachment>, time: Timestamp) {
    let outcome = if (200..400).contains(&status) { "success" } else { "failure" };
    event.insert("outcome".to_owned(), outcome.into());
    event.insert("reason".to_owned(), value!({ "reasonType": "HTTP", "reasonCode": (status.to_string()) }));
    event.insert("reporterchain".to_owned(), value!([(reporter(time))]));
    if !attachments.is_empty() {
        let written =
            |Attachment { name, content }| value!({ "typeURI": "text/plain", "name": name, "content": content });
        event.insert("attachments".to_owned(), attachments.into_iter().map(written).collect());
    }
}

/// `2026-01-01T00:00:00.000000+0000`.
fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6f+0000").to_string()
}
