//! The events are those of the audit filter of keystonemiddleware: `tests/audit/record.py` has recorded what it says of all
//! routes of Heat's API and of cases of their own.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::IpAddr;
use std::path::Path;

use kiln_audit::{AuditMap, Auditor, Destination, Notification, OnFailure, Request, Requester, Rules, Spool, Trail};
use kiln_cloud::Catalog;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use uuid::Uuid;

/// Keeps what it gets.
#[derive(Default)]
struct Kept(Mutex<Vec<Notification>>);

#[async_trait::async_trait]
impl Destination for Kept {
    async fn deliver(&self, notifications: &[Notification]) -> Result<(), String> {
        self.0.lock().unwrap().extend_from_slice(notifications);
        Ok(())
    }
}

/// The catalog as Keystone's version 3 writes it, from what auth_token makes of it.
fn catalog(of_filter: &Value) -> Option<Catalog> {
    let services = of_filter.as_array()?.iter().map(|service| {
        let endpoints = service["endpoints"].as_array().unwrap().iter().flat_map(|endpoint| {
            let urls =
                endpoint.as_object().unwrap().iter().filter_map(|(key, url)| Some((key.strip_suffix("URL")?, url)));
            urls.map(|(interface, url)| json!({"interface": interface, "url": url, "region": endpoint["region"]}))
        });
        json!({"type": service["type"], "name": service["name"], "endpoints": endpoints.collect::<Vec<_>>()})
    });
    Some(serde_json::from_value(services.collect()).unwrap())
}

#[tokio::test]
async fn events_are_those_of_the_filter() {
    let folder = TempDir::new().unwrap();
    let data: Value = serde_json::from_str(include_str!("data/real.json")).unwrap();
    let usual = &data["usual"];
    let cases = data["cases"].as_array().unwrap();
    assert!(cases.len() > 80);
    for (number, case) in cases.iter().enumerate() {
        let name = case["name"].as_str().unwrap();
        let given = |key: &str| case.get(key).unwrap_or(&usual[key]);
        let list = |key: &str| -> Vec<String> {
            case.get(key).map(|list| list.as_str().unwrap().split(',').map(str::to_owned).collect()).unwrap_or_default()
        };
        let map = match case["map"].as_str().unwrap() {
            "" => AuditMap::parse("").unwrap(),
            file => AuditMap::read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audit")).join(file))
                .unwrap(),
        };
        let url = url::Url::parse(case["url"].as_str().unwrap()).unwrap();
        let header = |name: &str| given("headers")[name].as_str();
        let catalog = catalog(given("catalog"));
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str().unwrap()),
            None => url.host_str().unwrap().to_owned(),
        };
        let request = Request {
            method: case["method"].as_str().unwrap(),
            path: url.path(),
            query: url.query(),
            host: &host,
            client: Some(usual["client"].as_str().unwrap().parse::<IpAddr>().unwrap()),
            agent: header("User-Agent"),
            token: header("X-Auth-Token").unwrap(),
            requester: Some(Requester {
                user_id: header("X-User-Id").unwrap(),
                username: header("X-User-Name").unwrap(),
                project_id: header("X-Project-Id").unwrap(),
                catalog: catalog.as_ref(),
            }),
            request_id: usual["request_id"].as_str().unwrap(),
            global_request_id: None,
        };
        let spool = Arc::new(Spool::open(folder.path(), &number.to_string(), u64::MAX).unwrap());
        let trail = Trail::Spool(Arc::clone(&spool));
        let rules = Rules::new(&list("ignore_req_list"), &list("ignore_path_list"));
        let auditor = Auditor::new(rules, map, trail, OnFailure::Refuse);
        let (mut ids, now) = (0, "2026-11-29T00:00:00Z".parse().unwrap());
        let mut uuid = || {
            ids += 1;
            Uuid::from_u128(ids)
        };
        if let Some(entry) = auditor.begin(&request, &mut uuid, now).unwrap() {
            let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
            auditor.end(entry, status, Vec::new(), uuid(), now);
        }
        let kept = Kept::default();
        spool.flush(&kept, std::time::Duration::from_secs(5)).await;
        let mut made = Vec::new();
        for notification in kept.0.into_inner().unwrap() {
            let mut payload = serde_json::to_value(&notification.payload).unwrap();
            let event = payload.as_object_mut().unwrap();
            assert_eq!(event.remove("id").unwrap(), Uuid::from_u128(1).to_string(), "{name}");
            assert_eq!(event.remove("eventTime").unwrap(), "2026-11-29T00:00:00.000000+0000");
            assert_eq!(event.remove("tags").unwrap(), json!([format!("correlation_id?value={}", Uuid::from_u128(2))]));
            if let Some(chain) = event.get_mut("reporterchain") {
                assert!(chain[0].as_object_mut().unwrap().remove("reporterTime").is_some());
            }
            made.push(json!({"event_type": notification.event_type, "payload": payload}));
        }
        let mut expected = case["events"].clone();
        if name == "a short token" {
            // The filter shows all of it.
            for event in expected.as_array_mut().unwrap() {
                event["payload"]["initiator"]["credential"]["token"] = " xxxxxxxx ".into();
            }
        }
        assert_eq!(Value::Array(made), expected, "{name}");
    }
}
