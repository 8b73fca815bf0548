//! Resource types that the policy restricts to administrators, in all places that can refer to them.

use http::{Method, StatusCode};
use kiln_service::Limits;
use serde_json::{Value, json};

use crate::support::{Answer, App, user};

/// A type for administrators.
const FLAVOR: &str = "OS::Nova::Flavor";

fn template(resources: &Value) -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": resources})
}

fn flavor() -> Value {
    json!({"type": FLAVOR, "properties": {"ram": 1, "vcpus": 1}})
}

fn group(kind: &Value, count: u32) -> Value {
    let definition = json!({"type": kind, "properties": {"ram": 1, "vcpus": 1}});
    json!({"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": definition}})
}

async fn create(app: &App, resources: &Value, environment: Value, files: Value) -> Answer {
    let mut body = json!({"stack_name": "one", "template": template(resources)});
    body["environment"] = environment;
    body["files"] = files;
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

#[track_caller]
fn forbidden(answer: &Answer, what: &str) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what}: {}", answer.text);
    assert_eq!(answer.json()["error"]["type"], "Forbidden", "{what}");
}

#[tokio::test]
async fn no_way_leads_to_a_type_that_is_denied() {
    let app = App::new().await;
    let alias = || json!({"resource_registry": {"My::Flavor": FLAVOR}});
    let aliased = json!({"a": {"type": "My::Flavor", "properties": {"ram": 1, "vcpus": 1}}});
    let inner = || template(&json!({"a": flavor()})).to_string();
    let maybe = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"with": {"type": "string", "default": "no"}},
        "conditions": {"wanted": {"equals": [{"get_param": "with"}, "yes"]}},
        "resources": {"a": {"type": FLAVOR, "condition": "wanted", "properties": {"ram": 1, "vcpus": 1}}},
    });
    let word = json!({"type": "OS::Heat::Value", "properties": {"value": "yes"}});
    let read = json!({"get_attr": ["v", "value"]});
    let chain = json!({
        "type": "OS::Heat::ResourceChain",
        "properties": {"resources": [FLAVOR], "resource_properties": {"ram": 1, "vcpus": 1}},
    });
    let given_type = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"kind": {"type": "string", "default": "OS::Heat::Value"}},
        "resources": {"g": group(&json!({"get_param": "kind"}), 1)},
    });
    let none = || json!({});
    let cases = [
        ("itself", json!({"a": flavor()}), none(), none()),
        ("an alias", aliased, alias(), none()),
        (
            "a wildcard",
            json!({"a": {"type": "My::Flavor"}}),
            json!({"resource_registry": {"My::*": "OS::Nova::*"}}),
            none(),
        ),
        (
            "an alias of one resource",
            json!({"a": {"type": "My::Thing", "properties": {"ram": 1, "vcpus": 1}}}),
            json!({"resource_registry": {"resources": {"a": {"My::Thing": FLAVOR}}}}),
            none(),
        ),
        ("a group", json!({"g": group(&json!(FLAVOR), 1)}), none(), none()),
        ("a group without members yet", json!({"g": group(&json!(FLAVOR), 0)}), none(), none()),
        ("a group of an alias", json!({"g": group(&json!("My::Flavor"), 1)}), alias(), none()),
        ("a group of a type that is read", json!({"v": word, "g": group(&read, 1)}), none(), none()),
        ("a chain", json!({"c": chain}), none(), none()),
        ("a template", json!({"t": {"type": "inner.yaml"}}), none(), json!({"inner.yaml": inner()})),
        (
            "a template of a template",
            json!({"t": {"type": "outer.yaml"}}),
            none(),
            json!({"outer.yaml": template(&json!({"t": {"type": "inner.yaml"}})).to_string(), "inner.yaml": inner()}),
        ),
        ("a group of templates", json!({"g": group(&json!("inner.yaml"), 2)}), none(), json!({"inner.yaml": inner()})),
        (
            "a condition that will hold",
            json!({"v": word, "t": {"type": "maybe.yaml", "properties": {"with": read}}}),
            none(),
            json!({"maybe.yaml": maybe.to_string()}),
        ),
        (
            "a group's type by a parameter that is not known yet",
            json!({"v": word, "t": {"type": "kind.yaml", "properties": {"kind": read}}}),
            none(),
            json!({"kind.yaml": given_type.to_string()}),
        ),
    ];
    for (what, resources, environment, files) in cases {
        forbidden(&create(&app, &resources, environment, files).await, what);
    }
    assert_eq!(app.stacks().await, 0);
}

#[tokio::test]
async fn an_update_and_a_preview_are_refused_too() {
    let app = App::new().await;
    let path = app.create("one", template(&json!({}))).await;
    let body = json!({"template": template(&json!({"g": group(&json!(FLAVOR), 1)}))});
    forbidden(&app.json(Method::PUT, &path, &body).await, "update");
    forbidden(&app.json(Method::PUT, &format!("{path}/preview"), &body).await, "preview of an update");
    let mut body = body;
    body["stack_name"] = "two".into();
    forbidden(&app.json(Method::POST, "/v1/tenant1/stacks/preview", &body).await, "preview");
}

#[tokio::test]
async fn what_is_allowed_stays_allowed() {
    let app = App::new().await;
    let read = json!({"get_attr": ["v", "value"]});
    let inner = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"x": {"type": "string"}, "kind": {"type": "string"}},
        "resources": {
            "g": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"resource_def": {
                    "type": {"get_param": "kind"},
                    "properties": {"value": {"get_param": "x"}},
                }},
            },
        },
    });
    let resources = json!({
        "v": {"type": "OS::Heat::Value", "properties": {"value": "yes"}},
        "t": {"type": "inner.yaml", "properties": {"x": read, "kind": "OS::Heat::Value"}},
    });
    let answer = create(&app, &resources, json!({}), json!({"inner.yaml": inner.to_string()})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let admin = App::on(app.store, user(&["admin", "member", "reader"]), Limits::default());
    let body = json!({"stack_name": "two", "template": template(&json!({"g": group(&json!(FLAVOR), 1)}))});
    let answer = admin.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}
