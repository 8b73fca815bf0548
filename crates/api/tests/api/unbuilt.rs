//! Unsupported features are rejected, before anything is stored.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::App;

fn template(kind: &str) -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": kind}}})
}

#[tokio::test]
async fn unknown_event_sinks_are_refused() {
    let app = App::new().await;
    let sink = |sink: Value| json!({"event_sinks": [sink]});
    let cases = [
        (
            sink(json!({"type": "mail", "target": "me"})),
            "Invalid event sink type 'mail', valid types are: zaqar-queue.",
        ),
        (
            sink(json!({"type": "zaqar-queue", "target": "q", "ttl": "soon"})),
            "The ttl of an event sink must be a number of seconds, not 'soon'.",
        ),
    ];
    let existing = app.create("there", template("OS::Heat::RandomString")).await;
    for (environment, text) in cases {
        let body =
            json!({"stack_name": "s", "template": template("OS::Heat::RandomString"), "environment": environment});
        let file = json!({
            "stack_name": "s",
            "template": template("OS::Heat::RandomString"),
            "files": {"env.yaml": environment.to_string()},
            "environment_files": ["env.yaml"],
        });
        for (method, path) in [
            (Method::POST, "/v1/tenant1/stacks"),
            (Method::POST, "/v1/tenant1/stacks/preview"),
            (Method::PUT, existing.as_str()),
            (Method::PATCH, existing.as_str()),
            (Method::PUT, &format!("{existing}/preview")),
        ] {
            for body in [&body, &file] {
                let answer = app.json(method.clone(), path, body).await;
                assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{method} {path}: {}", answer.text);
                assert_eq!(answer.json()["error"]["message"], text, "{method} {path}: {}", answer.text);
            }
        }
    }
    assert_eq!(app.stacks().await, 1);
}

#[tokio::test]
async fn event_sinks_are_stored_with_the_environment() {
    let app = App::new().await;
    let sinks = json!([{"type": "zaqar-queue", "target": "mine", "ttl": 120}]);
    let environment = json!({"event_sinks": sinks.clone()});
    let body = json!({"stack_name": "s", "template": template("OS::Heat::RandomString"), "environment": environment});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let lane = app.store.next_lane("").await.unwrap().expect("the first event");
    assert!(lane.name.contains(answer.json()["stack"]["id"].as_str().unwrap()), "{}", lane.name);
    let stored = app.get("/v1/tenant1/stacks/s/environment").await;
    let id = answer.json()["stack"]["id"].clone();
    let path = format!("/v1/tenant1/stacks/s/{}/environment", id.as_str().unwrap());
    let stored = if stored.status == StatusCode::OK { stored } else { app.get(&path).await };
    assert_eq!(stored.json()["event_sinks"], sinks);
}

#[tokio::test]
async fn types_without_a_driver_are_refused_first() {
    let app = App::new().await.without_driver("OS::Heat::AccessPolicy");
    let text = "HEAT-E99001 Resource type OS::Heat::AccessPolicy is not implemented by Kiln yet.";
    let template_of = template("OS::Heat::AccessPolicy");
    let body = json!({"stack_name": "s", "template": template_of});
    for path in ["stacks", "stacks/preview", "validate"] {
        let answer = app.json(Method::POST, &format!("/v1/tenant1/{path}"), &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.text);
        assert_eq!(answer.json()["error"]["message"], text);
    }
    let inside = json!({
        "stack_name": "s",
        "template": template("inner.yaml"),
        "files": {"inner.yaml": template_of.to_string()},
    });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &inside).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text.contains(text), "{}", answer.text);
    assert_eq!(app.stacks().await, 0);
    // With this parameter, callers can still validate the rest and see the type.
    let asked = app.json(Method::POST, "/v1/tenant1/validate?ignore_errors=99001", &body).await;
    assert_ne!(asked.json()["error"]["type"], "ResourceTypeUnavailable", "{}", asked.text);
    assert_eq!(app.get("/v1/tenant1/resource_types/OS::Heat::AccessPolicy").await.status, StatusCode::OK);
}

/// The instances of a group of CFN are instances of EC2, unless the environment maps these to something else. Load
/// balancers are resources of the stack, of one type.
#[tokio::test]
async fn groups_of_instances_name_load_balancers_of_the_stack() {
    let app = App::new().await;
    let configuration = json!({"ImageId": "i", "InstanceType": "t"});
    let group = json!({"AvailabilityZones": [], "Size": 1, "LaunchConfigurationName": {"get_resource": "lc"}});
    let template = json!({"heat_template_version": "2018-08-31", "resources": {
        "lc": {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": configuration},
        "g": {"type": "OS::Heat::InstanceGroup", "properties": group},
    }});
    let mut body = json!({"stack_name": "s", "template": template});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let mut balanced = body.clone();
    balanced["template"]["resources"]["g"]["properties"]["LoadBalancerNames"] = json!(["b"]);
    balanced["stack_name"] = json!("balanced");
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &balanced).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert!(answer.text.contains("(b) in LoadBalancerNames could not be found."), "{}", answer.text);
    body["stack_name"] = json!("mapped");
    body["environment"] = json!({"resource_registry": {"AWS::EC2::Instance": "i.yaml"}});
    body["files"] = json!({"i.yaml": "heat_template_version: 2018-08-31\nparameters: {ImageId: {type: string}, \
        InstanceType: {type: string}, Tags: {type: comma_delimited_list}}\n"});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

/// Keys of an update policy that its type does not have are refused as by Heat.
#[tokio::test]
async fn update_policies_are_refused() {
    let app = App::new().await;
    let template = |resource: Value| json!({"heat_template_version": "2018-08-31", "resources": {"one": resource}});
    let group = |policy: Value| {
        let properties = json!({"resource_def": {"type": "OS::Heat::RandomString"}});
        template(json!({"type": "OS::Heat::ResourceGroup", "properties": properties, "update_policy": policy}))
    };
    let random = |policy: Value| template(json!({"type": "OS::Heat::RandomString", "update_policy": policy}));
    let at = "Property error: resources.one.update_policy";
    for (template, text) in [
        (random(json!({"foo": 1})), format!("{at}: Unknown Property foo")),
        (group(json!({"rolling_update": {"foo": 1}})), format!("{at}.rolling_update: Unknown Property foo")),
        (
            group(json!({"rolling_update": {"max_batch_size": 0}})),
            format!("{at}.rolling_update.max_batch_size: 0 is out of range (min: 1, max: None)"),
        ),
    ] {
        let body = json!({"stack_name": "s", "template": template});
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        // The API doubles colons.
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().replace(": : ", ": ");
        assert_eq!(message, text);
        let answer = app.json(Method::POST, "/v1/tenant1/validate", &json!({"template": template})).await;
        assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    }
    let policy = json!({"rolling_update": {}, "batch_create": {"pause_time": 1}});
    let body = json!({"stack_name": "s", "template": group(policy)});
    assert_eq!(app.json(Method::POST, "/v1/tenant1/stacks", &body).await.status, StatusCode::CREATED);
}

/// As in Heat: policies come before properties, and a resource after those that it requires.
#[tokio::test]
async fn errors_come_in_the_order_of_heat() {
    let app = App::new().await;
    let first = async |resources: Value| {
        let body =
            json!({"stack_name": "s", "template": {"heat_template_version": "2018-08-31", "resources": resources}});
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        answer.json()["error"]["message"].as_str().unwrap_or_default().replace(": : ", ": ")
    };
    let kind = "OS::Heat::RandomString";
    let bad = json!({"length": 1000});
    let resource = json!({"type": kind, "properties": bad, "update_policy": {"foo": 1}, "deletion_policy": "Snapshot"});
    let text = "resources.a.deletion_policy: \"Snapshot\" deletion policy not supported";
    assert_eq!(first(json!({"a": resource})).await, text);
    let resource = json!({"type": kind, "properties": bad, "update_policy": {"foo": 1}});
    assert_eq!(first(json!({"a": resource})).await, "Property error: resources.a.update_policy: Unknown Property foo");
    let resources = json!({
        "a": {"type": kind, "properties": bad, "depends_on": "b"},
        "b": {"type": kind, "properties": bad, "depends_on": "c"},
        "c": {"type": kind, "properties": bad},
    });
    let text = "Property error: resources.c.properties.length: 1000 is out of range (min: 1, max: 512)";
    assert_eq!(first(resources).await, text);
}
