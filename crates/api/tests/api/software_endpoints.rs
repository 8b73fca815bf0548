//! Software configs and deployments.

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_service::Limits;
use serde_json::{Value, json};

use crate::support::{App, PROJECT, user};

const CONFIGS: &str = "/v1/tenant1/software_configs";
const DEPLOYMENTS: &str = "/v1/tenant1/software_deployments";

async fn config(app: &App, body: Value) -> Value {
    let answer = app.json(Method::POST, CONFIGS, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()["software_config"].clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn configs_as_heat_stores_them() {
    let app = App::new().await;
    let inputs = json!([
        {"name": "a", "type": "Number", "default": "3"},
        {"name": "b", "default": [1]},
        {"name": "c", "type": "Json", "default": {"a": 1}},
        {"name": "d", "replace_on_change": true, "type": "Boolean", "default": ""},
        {"name": "e", "type": "CommaDelimitedList", "default": "x,y", "description": "list"},
    ]);
    let body = json!({"name": "n", "inputs": inputs, "outputs": [{"name": "o", "error_output": "true"}]});
    let made = config(&app, body).await;
    let expected = json!({
        "id": made["id"], "name": "n", "group": null, "creation_time": "2026-11-20T06:52:45Z",
        "config": null, "options": {},
        "inputs": [
            {"name": "a", "type": "Number", "default": 3},
            {"name": "b", "type": "String", "default": [1]},
            {"name": "c", "type": "Json", "default": {"a": 1}},
            {"name": "d", "type": "Boolean", "default": "", "replace_on_change": true},
            {"name": "e", "description": "list", "type": "CommaDelimitedList", "default": ["x", "y"]},
        ],
        "outputs": [{"name": "o", "type": "String", "error_output": true}],
    });
    assert_eq!(made, expected);
    let path = format!("{CONFIGS}/{}", text(&made["id"]));
    assert_eq!(app.get(&path).await.json(), json!({ "software_config": made }));
    let entry = json!({"id": made["id"], "name": "n", "group": null, "creation_time": "2026-11-20T06:52:45Z"});
    assert_eq!(app.get(CONFIGS).await.json(), json!({ "software_configs": [entry] }));
    assert_eq!(app.get(&format!("{CONFIGS}?limit=0")).await.json(), json!({ "software_configs": [] }));

    let deleted = app.send(Method::DELETE, &path, None, None).await;
    assert_eq!((deleted.status, deleted.text.as_str()), (StatusCode::NO_CONTENT, ""));
    let missing = app.get(&path).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(missing.json()["error"]["type"], "NotFound");
    assert_eq!(missing.json()["error"]["message"], format!("Software config with id {} not found", text(&made["id"])));
}

#[tokio::test]
async fn invalid_configs_are_refused() {
    let app = App::new().await;
    let silent = [
        json!({"inputs": [{"foo": 1}]}),
        json!({"inputs": [{"name": "a", "nane": 1}]}),
        json!({"inputs": [{"name": "a", "type": "Foo"}]}),
        json!({"inputs": [{"name": "a", "type": "Number", "default": "x"}]}),
        json!({"outputs": [{"name": "a", "error_output": "maybe"}]}),
    ];
    for body in silent {
        let answer = app.json(Method::POST, CONFIGS, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.text);
        assert_eq!(answer.json()["error"]["type"], "ValueError", "{body}");
    }
    let answer = app.json(Method::POST, CONFIGS, &json!({"inputs": ["x"]})).await;
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (StatusCode::BAD_REQUEST, &json!("HTTPBadRequest")));
    let answer = app.get(&format!("{CONFIGS}?limit=-1")).await;
    let expected = "Value '-1' is invalid for 'limit' which only accepts non-negative integer.";
    assert_eq!(answer.json()["error"]["message"], expected);
    let answer = app.get(&format!("{CONFIGS}?global_tenant=true")).await;
    assert_eq!(answer.json()["error"]["message"], "You are not authorized to use software_configs:global_index.");
    // An empty value is no value.
    let made = config(&app, json!({"inputs": {}, "options": null})).await;
    assert_eq!((&made["inputs"], &made["options"], &made["name"]), (&json!([]), &json!({}), &Value::Null));
}

#[tokio::test]
async fn deployments_as_heat_stores_them() {
    let app = App::new().await;
    let first = config(&app, json!({"name": "z", "config": "x"})).await;
    let second = config(&app, json!({"name": "b", "config": "y"})).await;
    let body = json!({"config_id": first["id"], "server_id": "s1"});
    let made = app.json(Method::POST, DEPLOYMENTS, &body).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let made = made.json()["software_deployment"].clone();
    let expected = json!({
        "id": made["id"], "server_id": "s1", "input_values": {}, "output_values": null, "action": null,
        "status": null, "status_reason": "None", "config_id": first["id"], "creation_time": "2026-11-20T06:52:45Z",
    });
    assert_eq!(made, expected);
    let body = json!({"config_id": second["id"], "server_id": "s1", "status": "IN_PROGRESS", "action": "CREATE"});
    assert_eq!(app.json(Method::POST, DEPLOYMENTS, &body).await.status, StatusCode::OK);

    let metadata = app.get(&format!("{DEPLOYMENTS}/metadata/s1")).await.json();
    assert_eq!(metadata, json!({ "metadata": [second, first] }));
    assert_eq!(app.get(&format!("{DEPLOYMENTS}/metadata/s2")).await.json(), json!({ "metadata": [] }));
    let listed = app.get(&format!("{DEPLOYMENTS}?server_id=s1")).await.json();
    assert_eq!(listed["software_deployments"].as_array().map(Vec::len), Some(2));
    assert_eq!(app.get(&format!("{DEPLOYMENTS}?server_id=s2")).await.json(), json!({ "software_deployments": [] }));

    let path = format!("{DEPLOYMENTS}/{}", text(&made["id"]));
    let change = json!({"status": "COMPLETE", "output_values": {"r": 1}, "input_values": {}, "status_reason": ""});
    let changed = app.json(Method::PUT, &path, &change).await.json()["software_deployment"].clone();
    assert_eq!((&changed["status"], &changed["output_values"]), (&json!("COMPLETE"), &json!({"r": 1})));
    assert_eq!((&changed["status_reason"], &changed["config_id"]), (&json!("None"), &first["id"]));
    assert_eq!(changed["updated_time"], "2026-11-20T06:52:45Z");
    assert_eq!(app.get(&path).await.json(), json!({ "software_deployment": changed }));

    let held = app.send(Method::DELETE, &format!("{CONFIGS}/{}", text(&first["id"])), None, None).await;
    assert_eq!(held.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(held.json()["error"]["type"], "InvalidRestrictedAction");
    assert_eq!(app.send(Method::DELETE, &path, None, None).await.status, StatusCode::NO_CONTENT);
    let missing = app.send(Method::DELETE, &path, None, None).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let message = format!("Deployment with id {} not found", text(&made["id"]));
    assert_eq!(missing.json()["error"]["message"], message);
}

#[tokio::test]
async fn deployments_need_a_config_of_the_project() {
    let app = App::new().await;
    let made = config(&app, json!({"config": "x"})).await;
    let no_server = app.json(Method::POST, DEPLOYMENTS, &json!({"config_id": made["id"]})).await;
    assert_eq!(no_server.status, StatusCode::BAD_REQUEST, "{}", no_server.text);
    let foreign = Caller { project_id: "tenant2".into(), ..user(&["member", "reader"]) };
    let other = App::on(app.store.clone(), foreign, Limits::default());
    for (app, path, config) in
        [(&app, DEPLOYMENTS, json!("none")), (&other, "/v1/tenant2/software_deployments", made["id"].clone())]
    {
        let body = json!({"config_id": config, "server_id": "s"});
        let answer = app.json(Method::POST, path, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let text = format!("Data supplied was not valid: Config with id {} not found", text(&config));
        assert_eq!(answer.json()["error"]["message"], text);
    }
    let seen = other.get(&format!("/v1/tenant2/software_configs/{}", text(&made["id"]))).await;
    assert_eq!(seen.status, StatusCode::NOT_FOUND);
    assert_eq!(other.get("/v1/tenant2/software_configs").await.json(), json!({ "software_configs": [] }));
}

/// The agent in a server reads deployments as a user of the stack.
#[tokio::test]
async fn stack_users_read_only_the_metadata() {
    let app = App::new().await;
    let made = config(&app, json!({"config": "x"})).await;
    let users = "users-of-the-stack";
    let body = json!({"config_id": made["id"], "server_id": "s1", "stack_user_project_id": users});
    assert_eq!(app.json(Method::POST, DEPLOYMENTS, &body).await.status, StatusCode::OK);
    let agent = Caller { project_id: users.into(), ..user(&["heat_stack_user"]) };
    let agent = App::on(app.store.clone(), agent, Limits::default());
    let read = agent.get(&format!("/v1/{users}/software_deployments/metadata/s1")).await;
    assert_eq!(read.json(), json!({ "metadata": [made] }));
    for path in ["software_deployments", "software_configs", "software_deployments/x", "software_configs/x"] {
        assert_eq!(agent.get(&format!("/v1/{users}/{path}")).await.status, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn projects_have_limits() {
    let app = App::new().await;
    let limits = Limits { configs_per_project: Some(1), deployments_per_project: Some(1), ..Limits::default() };
    let limited = App::on(app.store.clone(), user(&["member"]), limits.clone());
    let made = config(&limited, json!({"config": "x"})).await;
    let deployment = json!({"config_id": made["id"], "server_id": "s"});
    assert_eq!(limited.json(Method::POST, DEPLOYMENTS, &deployment).await.status, StatusCode::OK);
    for (path, body, what) in
        [(CONFIGS, &json!({}), "software configs"), (DEPLOYMENTS, &deployment, "software deployments")]
    {
        let answer = limited.json(Method::POST, path, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let start = format!("Request limit exceeded: You have reached the maximum {what} per tenant, 1.");
        assert!(text(&answer.json()["error"]["message"]).starts_with(&start), "{}", answer.text);
    }
    let admin = App::on(app.store.clone(), user(&["admin", "member", "reader"]), limits);
    let listed = admin.get(CONFIGS).await.json();
    assert_eq!(listed["software_configs"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["software_configs"][0]["project"], PROJECT);
    assert_eq!(admin.json(Method::POST, DEPLOYMENTS, &deployment).await.status, StatusCode::OK);
    assert_eq!(made.get("project"), None);
}

#[tokio::test]
async fn deployments_need_a_server_with_an_agent() {
    let app = App::new().await;
    let template = |server: Value| {
        json!({"heat_template_version": "2018-08-31", "resources": {
            "server": {"type": "OS::Nova::Server", "properties": server},
            "deployment": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {"server": {"get_resource": "server"}, "signal_transport": "NO_SIGNAL"},
            },
        }})
    };
    let error = async |server: Value| {
        let body = json!({"stack_name": "s", "template": template(server)});
        app.json(Method::POST, "/v1/tenant1/stacks", &body).await
    };
    let plain = json!({"image": "i", "flavor": "f"});
    let with = |format: &str| json!({"image": "i", "flavor": "f", "user_data_format": format});
    for server in [plain, with("RAW")] {
        let answer = error(server).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let text = "Resource server's property user_data_format should be set to SOFTWARE_CONFIG since there are \
                    software deployments on it.";
        assert!(answer.text.contains(text), "{}", answer.text);
    }
    let answer = error(with("SOFTWARE_CONFIG")).await;
    assert!(!answer.text.contains("user_data_format"), "{}", answer.text);
}
