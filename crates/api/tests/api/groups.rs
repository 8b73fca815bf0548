//! Validation of groups.

use http::{Method, StatusCode};
use kiln_service::Limits;
use serde_json::{Value, json};

use crate::support::{Answer, App, user};

async fn create(app: &App, name: &str, resources: Value) -> Answer {
    let template = json!({ "heat_template_version": "2018-08-31", "resources": resources });
    let body = json!({ "stack_name": name, "template": template });
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

fn group(count: u64, member: &Value) -> Value {
    json!({ "type": "OS::Heat::ResourceGroup", "properties": { "count": count, "resource_def": member } })
}

#[tokio::test]
async fn a_required_property_of_a_member_may_be_known_only_later() {
    // A caller who is denied any type may not leave types open.
    let store = App::new().await.store;
    let app = App::on(store, user(&["admin", "member"]), Limits::default());
    let chain =
        json!({ "type": "OS::Heat::ResourceChain", "properties": { "resources": { "get_attr": ["v", "value"] } } });
    let resources = json!({ "v": { "type": "OS::Heat::Value", "properties": { "value": ["OS::Heat::None"] } }, "g": group(2, &chain) });
    let answer = create(&app, "known-later", resources).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

#[tokio::test]
async fn one_member_is_validated_for_all_and_none_for_an_empty_group() {
    let app = App::new().await;
    let wrong = || json!({ "type": "OS::Heat::RandomString", "properties": { "length": "x" } });
    let answer = create(&app, "wrong", json!({ "g": group(30, &wrong()) })).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert_eq!(answer.json()["error"]["diagnostics"].as_array().map(Vec::len), Some(1), "{}", answer.text);
    let answer = create(&app, "empty", json!({ "g": group(0, &wrong()) })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

/// The limit applies to the whole tree, which is not built to count it: a small request cannot require millions of
/// members.
#[tokio::test]
async fn the_limit_of_resources_counts_the_whole_tree() {
    let app = App::new().await;
    let value = || json!({ "type": "OS::Heat::Value", "properties": { "value": "%index%" } });
    let text = "Request limit exceeded: Maximum resources per stack exceeded.";
    let four_levels = group(18, &group(18, &group(18, &group(18, &value()))));
    for (name, resource) in
        [("wide", group(10_000_000, &value())), ("deep", four_levels), ("one-too-many", group(1000, &value()))]
    {
        let answer = create(&app, name, json!({ "g": resource })).await;
        assert_eq!(answer.json()["error"]["message"], text, "{name}: {}", answer.text);
    }
    let answer = create(&app, "full", json!({ "g": group(999, &value()) })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let answer = create(&app, "square", json!({ "g": group(30, &group(30, &value())) })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

/// Heat's texts.
#[tokio::test]
async fn refusals_read_as_those_of_heat() {
    let app = App::new().await;
    let unknown = group(2, &json!({ "type": "OS::Heat::Nothing" }));
    let answer = create(&app, "unknown", json!({ "g": unknown })).await;
    let text = "The Resource Type (OS::Heat::Nothing) could not be found.";
    assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    let kept = json!({ "type": "OS::Heat::RandomString", "deletion_policy": "Snapshot" });
    let answer = create(&app, "kept", json!({ "r": kept })).await;
    let text = "resources.r.deletion_policy: : \"Snapshot\" deletion policy not supported";
    assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
}
