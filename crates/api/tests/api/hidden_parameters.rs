//! Values of hidden parameters are masked in all responses.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::App;

const SECRET: &str = "swordfish";

fn template(hidden: bool) -> Value {
    json!({
        "heat_template_version": "2018-08-31",
        "parameters": {
            "key": {"type": "string", "hidden": hidden, "constraints": [{"length": {"max": 9}}]},
            "pin": {"type": "number", "hidden": true, "default": 1},
        },
    })
}

async fn create(app: &App, environment: &str) -> String {
    let body = json!({
        "stack_name": "s",
        "template": template(true),
        "files": {"env.yaml": environment, "note.txt": format!("not {SECRET}")},
        "environment_files": ["env.yaml"],
    });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.header("location").trim_start_matches("http://localhost").to_owned()
}

#[tokio::test]
async fn files_do_not_show_them() {
    for section in ["parameters", "parameter_defaults"] {
        let app = App::new().await;
        let path = create(&app, &format!("{section}:\n  key: \"swo\\x72dfish\"\n")).await;
        let files = app.get(&format!("{path}/files")).await.json();
        let environment = files["env.yaml"].as_str().expect("a text");
        assert!(!environment.contains(SECRET), "{environment}");
        assert!(environment.contains("******"), "{environment}");
        assert_eq!(files["note.txt"], format!("not {SECRET}"));
        let shown = app.get(&format!("{path}/environment")).await;
        assert!(!shown.text.contains(SECRET), "{}", shown.text);
    }
}

/// Also where the text of the nested template stands by itself.
#[tokio::test]
async fn errors_of_nested_templates_do_not_show_them() {
    let app = App::new().await;
    let parent = "heat_template_version: 2018-08-31
parameters: {key: {type: string, hidden: true}}
resources: {nested: {type: child.yaml, properties: {key: {get_param: key}}}}
";
    let child = "heat_template_version: 2018-08-31
parameters: {key: {type: string}}
resources: {word: {type: OS::Heat::RandomString, properties: {length: {get_param: key}}}}
";
    let body = json!({
        "stack_name": "s", "template": parent, "files": {"child.yaml": child}, "environment": {"parameters": {"key": SECRET}},
    });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    let nested = &answer.json()["error"]["diagnostics"][0]["nested"];
    assert_eq!(nested["path"], "resources.word.properties.length", "{}", answer.text);
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
}

#[tokio::test]
async fn a_patch_does_not_reveal_them() {
    let app = App::new().await;
    let path = create(&app, &format!("parameters: {{key: {SECRET}}}")).await;
    let answer = app.json(Method::PATCH, &path, &json!({"template": template(false)})).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    let text = "The parameter key is hidden in the current template: specify its value again, or keep it hidden.";
    assert_eq!(answer.json()["error"]["message"], text);
    let given = json!({"template": template(false), "parameters": {"key": "mine"}});
    let answer = app.json(Method::PATCH, &path, &given).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    assert_eq!(app.get(&path).await.json()["stack"]["parameters"]["key"], "mine");
}

#[tokio::test]
async fn errors_do_not_show_them() {
    let app = App::new().await;
    let long = "correct horse battery";
    let pattern = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"key": {
            "type": "string", "hidden": true, "constraints": [{"allowed_pattern": "[0-9]+"}, {"length": {"max": 3}}],
        }},
    });
    let used = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"key": {"type": "string", "hidden": true}},
        "resources": {"r": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "key"}}}},
    });
    for template in [&pattern, &used] {
        let body = json!({"stack_name": "s", "template": template, "parameters": {"key": long}});
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert!(!answer.text.contains(long), "{}", answer.text);
        assert!(answer.text.contains("******"), "{}", answer.text);
    }
}

#[tokio::test]
async fn previews_do_not_show_them() {
    let app = App::new().await;
    let template = |more: &str| {
        json!({
            "heat_template_version": "2018-08-31",
            "parameters": {"key": {"type": "string", "hidden": true}},
            "resources": {"v": {"type": "OS::Heat::Value", "properties": {"value": {"list_join": [more, ["a", {"get_param": "key"}]]}}}},
        })
    };
    let body = json!({"stack_name": "s", "template": template("-"), "parameters": {"key": SECRET}});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    let path = answer.header("location").trim_start_matches("http://localhost").to_owned();
    let changed = json!({"template": template("+"), "parameters": {"key": SECRET}});
    let answer = app.json(Method::PUT, &format!("{path}/preview"), &changed).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
}

/// Heat shows them.
#[tokio::test]
async fn events_do_not_show_them() {
    let app = App::new().await;
    let path = create(&app, &format!("parameters: {{key: {SECRET}}}")).await;
    let stack = app.settle("s").await;
    let event = kiln_store::Event {
        operation: None,
        id: kiln_store::EventId(uuid::Uuid::from_u128(1)),
        stack: stack.id,
        root: stack.id,
        resource_name: "one".to_owned(),
        resource_type: "OS::Nova::Server".to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status: kiln_resource::Status::Complete,
        reason: String::new(),
        properties: kiln_value::value!({ "admin_pass": SECRET, "user_data": (format!("--key {SECRET};")), "name": "n" }),
        time: stack.created,
    };
    let shown = format!("{path}/resources/one/events/{}", event.id);
    app.commit(stack.id, kiln_store::Batch { events: vec![event], ..kiln_store::Batch::default() }).await;
    let expected = json!({"admin_pass": "******", "user_data": "--key ******;", "name": "n"});
    assert_eq!(app.get(&shown).await.json()["event"]["resource_properties"], expected);
    // After an update, those of the value before it too.
    let body = json!({"parameters": {"key": "marlin"}});
    assert_eq!(app.json(Method::PATCH, &path, &body).await.status, StatusCode::ACCEPTED);
    assert_eq!(app.get(&shown).await.json()["event"]["resource_properties"], expected);
}

/// The template of a nested stack does not know that a value is hidden.
#[tokio::test]
async fn nested_stacks_do_not_show_what_the_stacks_above_them_hide() {
    let app = App::new().await;
    create(&app, &format!("parameters: {{key: {SECRET}}}")).await;
    let above = app.settle("s").await;
    let template = json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string"}, "name": {"type": "string"}},
    });
    let environment = json!({"parameters": {"word": format!("<{SECRET}>"), "name": "n"}});
    let id = kiln_resource::StackId(uuid::Uuid::from_u128(9));
    let resource = kiln_resource::ResourceId(uuid::Uuid::from_u128(8));
    let nested = kiln_store::NewStack {
        operation: None,
        preflight: false,
        planned: None,
        id,
        name: "s-part".to_owned(),
        project: above.project.clone(),
        parent: Some(kiln_store::Parent { stack: above.id, resource, resource_name: "part".to_owned() }),
        root: above.id,
        depth: 1,
        action: kiln_resource::Action::Create,
        desired: kiln_store::DesiredText {
            template: template.to_string(),
            environment: environment.to_string(),
            files: "{}".to_owned(),
        },
        disable_rollback: true,
        timeout_mins: None,
        tags: Vec::new(),
        username: above.username.clone(),
        user_id: above.user_id.clone(),
        credentials: None,
        user_project: None,
        adopt: None,
        now: above.created,
    };
    app.store.create_stack(nested).await.expect("stored");
    let path = format!("/v1/tenant1/stacks/s-part/{id}");
    let shown = app.get(&path).await.json();
    assert_eq!(shown["stack"]["parameters"]["word"], "<******>", "{shown}");
    assert_eq!(shown["stack"]["parameters"]["name"], "n");
    let shown = app.get(&format!("{path}/environment")).await.json();
    assert_eq!(shown["parameters"], json!({"word": "<******>", "name": "n"}));
}
