//! The API compared with observations of the real service (reference/rest_api.json).

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{App, PROJECT};

#[derive(Deserialize)]
struct Reference {
    observed_edge_cases: BTreeMap<String, EdgeCase>,
    observed_body_by_accept_header: BTreeMap<String, BTreeMap<String, Page>>,
    version_document: Observed,
    routes: Vec<Route>,
    stack_list_entry_keys: Vec<String>,
    event_summary_keys: Vec<String>,
}

#[derive(Deserialize)]
struct EdgeCase {
    request: String,
    request_body: Option<Value>,
    status: u16,
    content_type: Option<String>,
    body: Option<Value>,
    body_text: Option<String>,
    allow: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    body_text: String,
    content_type: Option<String>,
    status: u16,
}

#[derive(Deserialize)]
struct Observed {
    status: u16,
    body: Value,
}

#[derive(Deserialize)]
struct Route {
    method: String,
    path: String,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../data/rest_api.json")).expect("the reference is JSON")
}

fn method(name: &str) -> Method {
    name.parse().expect("a method")
}

/// Removes fields that are not in the observations.
fn without_traceback(mut body: Value) -> Value {
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("traceback");
        error.remove("diagnostics");
    }
    body
}

#[tokio::test]
async fn edge_cases() {
    let app = App::new().await;
    let mut wrong = Vec::new();
    for (name, case) in reference().observed_edge_cases {
        let (verb, path) = case.request.split_once(' ').expect("method and path");
        let body = case.request_body.as_ref().map(Value::to_string);
        let answer = app.send(method(verb), path, None, body.as_deref()).await;
        let kind = answer.header("content-type").split(';').next().unwrap_or_default().to_owned();
        let mut problems = Vec::new();
        if answer.status.as_u16() != case.status {
            problems.push(format!("status {} instead of {}", answer.status, case.status));
        }
        if kind != case.content_type.unwrap_or_default() {
            problems.push(format!("content type {kind}"));
        }
        if let Some(expected) = case.body
            && without_traceback(answer.json()) != expected
        {
            problems.push(format!("body {} instead of {expected}", answer.text));
        }
        if case.body_text.is_some_and(|expected| answer.text != expected) {
            problems.push(format!("body {:?}", answer.text));
        }
        if case.allow.is_some_and(|expected| answer.header("allow") != expected) {
            problems.push(format!("allow {:?}", answer.header("allow")));
        }
        if !problems.is_empty() {
            wrong.push(format!("{name}: {}", problems.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(app.stacks().await, 0, "bad requests leave nothing behind");
}

#[tokio::test]
async fn pages_by_accept_header() {
    let app = App::new().await;
    let template = serde_json::json!({ "heat_template_version": "2018-08-31" });
    let path = app.create("teststack", template.clone()).await;
    let location = format!("http://localhost{path}");
    let mut doomed = 0;
    for (what, pages) in reference().observed_body_by_accept_header {
        for (accept, page) in pages {
            let header = (accept != "(no Accept header)").then_some(accept.as_str());
            let by_name = format!("/v1/{PROJECT}/stacks/teststack");
            let answer = match what.as_str() {
                "302 on GET stack by name" => app.send(Method::GET, &by_name, header, None).await,
                "202 on PUT stack" => {
                    let body = serde_json::json!({ "template": template }).to_string();
                    app.send(Method::PUT, &path, header, Some(&body)).await
                }
                _ => {
                    doomed += 1;
                    let path = app.create(&format!("doomed-{doomed}"), template.clone()).await;
                    app.send(Method::DELETE, &path, header, None).await
                }
            };
            let expected = page.body_text.replace("http://localhost/tenant1/stacks/teststack/uuid-1", &location);
            assert_eq!(answer.status.as_u16(), page.status, "{what}, {accept}: {}", answer.text);
            assert_eq!(answer.text, expected, "{what}, {accept}");
            assert_eq!(answer.header("content-type"), page.content_type.unwrap_or_default(), "{what}, {accept}");
        }
    }
}

#[tokio::test]
async fn versions() {
    let app = App::new().await;
    let expected = reference().version_document;
    for path in ["/", "/versions", "/v2/anything"] {
        let answer = app.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (expected.status, expected.body.clone()), "{path}");
    }
    assert_eq!(app.get("/healthcheck").await.status, StatusCode::OK);
    assert_eq!(app.get("/tenant1/stacks").await.status, StatusCode::NOT_FOUND);
    // In addition to Heat: the methods of the path, as HTTP requires.
    let refused = app.send(Method::PUT, "/v1/tenant1/stacks", None, None).await;
    assert_eq!((refused.status, refused.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET,POST"));
}

#[tokio::test]
async fn every_route_is_known() {
    let app = App::new().await;
    for route in reference().routes {
        let parts = route.path.split('/').map(|part| match part.strip_prefix('{') {
            None => part,
            Some("tenant_id}") => PROJECT,
            Some(rest) if rest.contains("arn") => "arn:x",
            Some(rest) if rest.starts_with("path:") => "resources",
            Some(_) => "x",
        });
        let path = parts.collect::<Vec<_>>().join("/");
        let answer = app.send(method(&route.method), &path, None, None).await;
        let is_page = answer.status == StatusCode::NOT_FOUND && answer.header("content-type").starts_with("text/");
        assert!(
            !is_page && answer.status != StatusCode::METHOD_NOT_ALLOWED,
            "{} {path}: {}",
            route.method,
            answer.text
        );
        assert!(!answer.status.is_server_error() || answer.status == StatusCode::NOT_IMPLEMENTED, "{path}");
        assert!(answer.header("x-openstack-request-id").starts_with("req-"));
    }
}

#[tokio::test]
async fn keys_of_list_entries() {
    let app = App::new().await;
    let path = app.create("s", serde_json::json!({ "heat_template_version": "2018-08-31" })).await;
    let keys = |entry: &Value| -> Vec<String> {
        let mut keys: Vec<String> = entry.as_object().expect("a map").keys().cloned().collect();
        keys.sort();
        keys
    };
    let sorted = |mut keys: Vec<String>| {
        keys.retain(|key| !key.contains(' '));
        keys.sort();
        keys
    };
    let stacks = app.get("/v1/tenant1/stacks").await.json();
    assert_eq!(keys(&stacks["stacks"][0]), sorted(reference().stack_list_entry_keys));
    let events = app.get(&format!("{path}/events")).await.json();
    assert_eq!(keys(&events["events"][0]), sorted(reference().event_summary_keys));
}
