//! Stacks: create, show, update, errors.

use std::sync::Arc;

use http::{Method, StatusCode};
use kiln_api::{Options, Reporter};
use kiln_service::Limits;
use kiln_store::{Cancel, HealthMark, MessageBody};
use serde_json::{Value, json};

use crate::support::{App, user};

fn template() -> Value {
    json!({
        "heat_template_version": "2018-08-31",
        "description": "Two values.",
        "parameters": {
            "word": { "type": "string", "default": "v" },
            "key": { "type": "string", "hidden": true, "default": "swordfish" },
        },
        "resources": {
            "first": { "type": "OS::Heat::Value", "properties": { "value": { "get_param": "word" } } },
            "second": { "type": "OS::Heat::RandomString", "depends_on": "first" },
        },
        "outputs": {
            "word": { "value": { "get_param": "word" } },
            "missing": { "description": "Not there.", "value": { "get_param": "nope" } },
        },
    })
}

#[tokio::test]
async fn a_stack_from_create_to_delete() {
    let app = App::new().await;
    let body = json!({ "stack_name": "s", "template": template(), "tags": "a,b", "timeout_mins": "0" });
    let created = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(created.status, StatusCode::CREATED);
    insta::assert_json_snapshot!("created", created.json());
    let path = created.header("location").trim_start_matches("http://localhost").to_owned();
    insta::assert_json_snapshot!("shown", app.get(&path).await.json());
    insta::assert_json_snapshot!("listed", app.get("/v1/tenant1/stacks?limit=1&with_count=true").await.json());
    insta::assert_json_snapshot!("resources", app.get(&format!("{path}/resources?with_detail=true")).await.json());
    insta::assert_json_snapshot!("environment", app.get(&format!("{path}/environment")).await.json());
    insta::assert_json_snapshot!("outputs", app.get(&format!("{path}/outputs")).await.json());
    assert_eq!(app.get(&format!("{path}/template")).await.json(), template());
    assert_eq!(app.get(&format!("{path}/files")).await.json(), json!({}));
    assert_eq!(app.get(&format!("{path}/resources/first/metadata")).await.json(), json!({ "metadata": {} }));
    let events = app.get(&format!("{path}/events")).await.json();
    assert_eq!(events["events"][0]["resource_status"], "CREATE_IN_PROGRESS");
    let again = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!((again.status, &again.json()["error"]["type"]), (StatusCode::CONFLICT, &json!("StackExists")));
    assert_eq!(app.send(Method::DELETE, &path, None, None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "DELETE_IN_PROGRESS");
}

/// Who does not use a feature does not ask the database for it.
#[tokio::test]
async fn a_change_of_a_stack_asks_the_store_no_more_than_before() {
    let store = kiln_store::MemoryStore::new(Arc::new(|| "2026-11-20T06:52:46Z".parse().expect("a time")));
    let app = App::on(Arc::new(store.clone()), user(&["member", "reader"]), Limits::default());
    let body = json!({ "stack_name": "s", "template": template() });
    let path = app.create("s", template()).await;
    let mut asked = Vec::new();
    for (method, path, body) in [
        (Method::POST, "/v1/tenant1/stacks", Some(json!({ "stack_name": "t", "template": template() }))),
        (Method::PUT, path.as_str(), Some(body.clone())),
        (Method::PATCH, path.as_str(), Some(json!({ "parameters": { "word": "w" } }))),
        (Method::DELETE, path.as_str(), None),
    ] {
        let before = store.calls();
        let answer = match &body {
            Some(body) => app.json(method.clone(), path, body).await,
            None => app.send(method.clone(), path, None, None).await,
        };
        assert!(answer.status.is_success(), "{method} {path}: {}", answer.text);
        asked.push((method.to_string(), store.calls() - before));
    }
    let before_plans = [("POST", 5), ("PUT", 5), ("PATCH", 5), ("DELETE", 5)];
    assert_eq!(asked, before_plans.map(|(method, count)| (method.to_owned(), count)));
}

#[tokio::test]
async fn names_lead_to_addresses() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let id = path.rsplit('/').next().unwrap_or_default().to_owned();
    for (asked, given) in [
        ("s".to_owned(), path.clone()),
        (id.clone(), path.clone()),
        ("s/resources?nested_depth=2".to_owned(), format!("{path}/resources?nested_depth=2")),
        (format!("arn:openstack:heat::tenant1:stacks/s/{id}"), path.clone()),
    ] {
        let answer = app.get(&format!("/v1/tenant1/stacks/{asked}")).await;
        assert_eq!(answer.status, StatusCode::FOUND, "{asked}");
        assert_eq!(answer.header("location"), format!("http://localhost{given}"), "{asked}");
    }
    let other_name = path.replace("/s/", "/t/");
    let answer = app.get(&other_name).await;
    assert_eq!(answer.json()["error"]["message"], "The Stack (t) could not be found.");
}

#[tokio::test]
async fn what_is_wrong_is_said_and_leaves_nothing() {
    let app = App::new().await;
    let with = |resources: Value| json!({ "heat_template_version": "2018-08-31", "resources": resources });
    let value = |value: Value| json!({ "a": { "type": "OS::Heat::Value", "properties": { "value": value } } });
    let circle = json!({
        "a": { "type": "OS::Heat::Value", "properties": { "value": { "get_resource": "b" } } },
        "b": { "type": "OS::Heat::Value", "properties": { "value": { "get_resource": "a" } } },
    });
    let mut bomb = "heat_template_version: 2018-08-31\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = format!("*a{}", n - 1);
        bomb = format!("{bomb}a{n}: &a{n} [{}]\n", vec![before; 10].join(", "));
    }
    let big = format!("heat_template_version: 2018-08-31\ndescription: {}\n", "x".repeat(600_000));
    let cases = [
        ("broken YAML", json!("heat_template_version: 2018-08-31\nresources: [1"), "HTTPBadRequest"),
        ("no map", json!("[]"), "HTTPBadRequest"),
        ("version", json!({ "heat_template_version": "2018-08-32" }), "InvalidTemplateVersion"),
        ("section", json!({ "heat_template_version": "2018-08-31", "foo": 1 }), "StackValidationFailed"),
        ("type", with(json!({ "a": { "type": "OS::Heat::Valu" } })), "StackValidationFailed"),
        (
            "property",
            with(json!({ "a": { "type": "OS::Heat::Value", "properties": { "vale": 1 } } })),
            "StackValidationFailed",
        ),
        ("reference", with(value(json!({ "get_resource": "zz" }))), "InvalidTemplateReference"),
        ("argument", with(value(json!({ "get_param": {} }))), "StackValidationFailed"),
        (
            "value",
            with(json!({ "a": { "type": "OS::Heat::RandomString", "properties": { "length": "x" } } })),
            "StackValidationFailed",
        ),
        ("circle", with(circle), "CircularDependencyException"),
        ("bomb", json!(bomb), "HTTPBadRequest"),
        ("size", json!(big), "RequestLimitExceeded"),
    ];
    let mut seen = Vec::new();
    for (what, template, class) in cases {
        let body = json!({ "stack_name": "s", "template": template });
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{what}: {}", answer.text);
        let error = &answer.json()["error"];
        assert_eq!(error["type"], class, "{what}: {}", answer.text);
        if !matches!(what, "bomb" | "circle") {
            seen.push(json!({ "what": what, "message": error["message"], "diagnostics": error["diagnostics"] }));
        }
    }
    insta::assert_json_snapshot!("refused", seen);
    let unknown = json!({ "stack_name": "s", "template": template(), "parameters": { "u": 1 } });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &unknown).await;
    assert_eq!(answer.json()["error"]["type"], "UnknownUserParameter");
    let huge = format!(r#"{{"stack_name": "s", "template": "{}"}}"#, "x".repeat(1_048_577));
    let answer = app.send(Method::POST, "/v1/tenant1/stacks", None, Some(&huge)).await;
    assert_eq!(answer.json()["error"]["type"], "RequestLimitExceeded");
    for name in ["1x", "a b", "a/b", "", &"x".repeat(256)] {
        let body = json!({ "stack_name": name, "template": template() });
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.json()["error"]["type"], "StackValidationFailed", "{name}");
    }
    assert_eq!(app.stacks().await, 0);
}

#[tokio::test]
async fn what_no_database_can_hold_is_refused() {
    let app = App::new().await;
    let (fits, too_long) = ("é".repeat(255), "é".repeat(256));
    let of = |name: &str| json!({ "heat_template_version": "2018-08-31", "resources": { name: { "type": "OS::Heat::None" } } });
    let text = "Resource name may not be longer than 255 characters";
    let inner = json!({ "inner.yaml": of(&too_long).to_string() });
    for (what, template, files) in [
        ("plain", of(&too_long), json!({})),
        (
            "nested",
            json!({
                "heat_template_version": "2018-08-31", "resources": { "a": { "type": "inner.yaml" } },
            }),
            inner,
        ),
    ] {
        let body = json!({ "stack_name": "s", "template": template, "files": files });
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["type"]),
            (StatusCode::BAD_REQUEST, &json!("StackValidationFailed")),
            "{what}"
        );
        assert!(error["message"].as_str().is_some_and(|message| message.contains(text)), "{what}: {error}");
    }
    for mins in [2_147_483_648_i64, 1_000_000_000_000, i64::MAX] {
        let body = json!({ "stack_name": "s", "template": of("a"), "timeout_mins": mins });
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["type"]), (StatusCode::BAD_REQUEST, &json!("Invalid")), "{mins}: {error}");
    }
    assert_eq!(app.stacks().await, 0);
    let body = json!({ "stack_name": "s", "template": of(&fits), "timeout_mins": 2_147_483_647 });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let path = answer.header("location").trim_start_matches("http://localhost").to_owned();
    let patched = app.json(Method::PATCH, &path, &json!({ "timeout_mins": 2_147_483_648_i64 })).await;
    assert_eq!(patched.json()["error"]["type"], "Invalid");
}

#[tokio::test]
async fn places_are_told_where_the_template_came_as_text() {
    let app = App::new().await;
    let text = "heat_template_version: 2018-08-31\nresources:\n  a:\n    type: OS::Heat::Value\n    properties:\n      vale: 1\n";
    let body = json!({ "stack_name": "s", "template": text });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    let diagnostic = &answer.json()["error"]["diagnostics"][0];
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&json!(6), &json!(7)), "{}", answer.text);
}

/// A wrong value is in the environment that gives it, which may be one of several files.
#[tokio::test]
async fn wrong_values_of_parameters_are_in_their_environment() {
    let app = App::new().await;
    let template = "heat_template_version: 2018-08-31\nparameters: {flavor: {type: string}, size: {type: number, default: 1}}\n\
                    resources: {}\n";
    let files = json!({
        "one.yaml": "parameters:\n  flavor: small\n  size: much\n",
        "two.yaml": "parameters:\n  size: more\n",
        "three.yaml": "parameter_defaults:\n  size: most\n",
    });
    let names = ["one.yaml", "two.yaml", "three.yaml"];
    let text = "parameters:\n  flavor: small\n  flavr: m1.tiny\n";
    let map = json!({ "parameters": { "flavor": "small", "flavr": "tiny" } });
    for (more, file, line, hint) in [
        (json!({ "environment": text }), json!("environment"), json!(3), json!(["did you mean flavor?"])),
        (json!({ "environment": map }), json!("environment"), json!(null), json!(["did you mean flavor?"])),
        (json!({ "environment_files": names, "files": files }), json!("two.yaml"), json!(2), json!([])),
        (
            json!({ "environment": text.replace("flavr", "#"), "parameters": { "flavor": "small", "size": "x" } }),
            json!(null),
            json!(null),
            json!([]),
        ),
    ] {
        let mut body = json!({ "stack_name": "s", "template": template });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for path in ["stacks", "stacks/preview"] {
            let answer = app.json(Method::POST, &format!("/v1/tenant1/{path}"), &body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
            let found = &answer.json()["error"]["diagnostics"][0];
            let told = (&found["file"], &found["line"], &found["hints"]);
            assert_eq!(told, (&file, &line, &hint), "{path}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn updates_keep_or_replace() {
    let app = App::new().await;
    let body = json!({ "stack_name": "s", "template": template(), "tags": "a", "parameters": { "word": "w" } });
    let created = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    let path = created.header("location").trim_start_matches("http://localhost").to_owned();
    let patched = app.json(Method::PATCH, &path, &json!({ "parameters": { "key": "k" } })).await;
    assert_eq!(patched.status, StatusCode::ACCEPTED, "{}", patched.text);
    let shown = app.get(&path).await.json();
    assert_eq!(shown["stack"]["stack_status"], "UPDATE_IN_PROGRESS");
    assert_eq!(shown["stack"]["parameters"]["word"], "w");
    assert_eq!(shown["stack"]["parameters"]["key"], "******");
    assert_eq!(shown["stack"]["tags"], json!(["a"]));
    let environment = app.get(&format!("{path}/environment")).await.json();
    assert_eq!(environment["parameters"], json!({ "word": "w", "key": "******" }));
    let put = app.json(Method::PUT, &path, &json!({ "template": template() })).await;
    assert_eq!(put.status, StatusCode::ACCEPTED, "{}", put.text);
    let shown = app.get(&path).await.json();
    assert_eq!((&shown["stack"]["parameters"]["word"], &shown["stack"]["tags"]), (&json!("v"), &json!([])));
    let preview = app.json(Method::PATCH, &format!("{path}/preview"), &json!({ "parameters": { "word": "x" } })).await;
    assert_eq!(preview.status, StatusCode::OK, "{}", preview.text);
    let added = preview.json()["resource_changes"]["added"].as_array().map(Vec::len);
    assert_eq!(added, Some(2), "nothing is there yet: {}", preview.text);
    let nothing = app.json(Method::PUT, &path, &json!({})).await;
    assert_eq!(nothing.json()["error"]["message"], "No template specified");
}

#[tokio::test]
async fn environment_files_win_and_are_checked() {
    let app = App::new().await;
    let body = json!({
        "stack_name": "s",
        "template": template(),
        "environment": { "parameters": { "word": "ignored" } },
        "environment_files": ["one", "two"],
        "files": { "one": "parameters: {word: one}", "two": "parameters: {word: two}" },
    });
    let created = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
    let path = created.header("location").trim_start_matches("http://localhost").to_owned();
    assert_eq!(app.get(&path).await.json()["stack"]["parameters"]["word"], "two");
    assert_eq!(app.get(&format!("{path}/files")).await.json(), body["files"]);
    // Heat returns 500.
    let kinds = "{z: {type: json}, word: {type: string}}";
    let template = json!(format!("heat_template_version: 2018-08-31\nparameters: {kinds}"));
    for (one, two, text) in [
        (None, "", "The environment file 'one' is not among the files of the request."),
        (
            Some("parameters: {z: {a: 1}}"),
            "parameter_merge_strategies: {z: merge}\nparameters: {z: {b: 1}, word: [1]}\nparameter_defaults: 3",
            "int",
        ),
        (
            Some("parameter_merge_strategies: {word: merge}\nparameters: {word: a}"),
            "parameter_merge_strategies: {word: deep_merge}\nparameters: {word: b}",
            "word",
        ),
    ] {
        let mut body = json!({"template": template, "environment_files": ["one", "two"], "files": {"two": two}});
        if let Some(one) = one {
            body["files"]["one"] = json!(one);
        }
        let refused = app.json(Method::POST, "/v1/tenant1/validate", &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{one:?}: {}", refused.text);
        assert!(refused.text.contains(text), "{one:?}: {}", refused.text);
    }
}

#[tokio::test]
async fn templates_are_validated_and_previewed() {
    let app = App::new().await;
    let body = json!({
        "stack_name": "s",
        "template": {
            "heat_template_version": "2018-08-31",
            "description": "Nested.",
            "parameters": { "p": { "type": "string" } },
            "resources": { "child": { "type": "child.yaml" } },
        },
        "parameters": { "p": "x" },
        "files": {
            "child.yaml": "heat_template_version: 2018-08-31\nparameters: {z: {type: string, default: q}}\nresources: {k: {type: OS::Heat::None}}",
        },
    });
    let validated = app.json(Method::POST, "/v1/tenant1/validate?show_nested=true", &body).await;
    insta::assert_json_snapshot!("validated", validated.json());
    insta::assert_json_snapshot!("previewed", app.json(Method::POST, "/v1/tenant1/stacks/preview", &body).await.json());
    let bad = json!({ "template": { "heat_template_version": "2018-08-31", "resources": { "a": { "type": "No" } } } });
    let answer = app.json(Method::POST, "/v1/tenant1/validate", &bad).await;
    assert_eq!(answer.json()["error"]["type"], "HTTPBadRequest");
    assert_eq!(app.stacks().await, 0);
}

#[tokio::test]
async fn lists_are_filtered_sorted_and_paged() {
    let app = App::new().await;
    for name in ["b", "a", "c"] {
        let tags = if name == "c" { "x,y" } else { "x" };
        let body = json!({ "stack_name": name, "template": template(), "tags": tags });
        app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    }
    let names = async |query: &str| -> Vec<String> {
        let list = app.get(&format!("/v1/tenant1/stacks?{query}")).await.json();
        let stacks = list["stacks"].as_array().cloned().unwrap_or_default();
        stacks.iter().map(|stack| stack["stack_name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names("sort_keys=stack_name").await, ["a", "b", "c"]);
    assert_eq!(names("sort_keys=stack_name&sort_dir=desc").await, ["c", "b", "a"]);
    assert_eq!(names("name=a&name=c&sort_keys=stack_name").await, ["a", "c"]);
    assert_eq!(names("tags=x,y").await, ["c"]);
    assert_eq!(names("not_tags=x,y&sort_keys=stack_name").await, ["a", "b"]);
    assert_eq!(names("status=CREATE_IN_PROGRESS&sort_keys=stack_name").await, ["a", "b", "c"]);
    assert_eq!(names("status=FAILED").await, [""; 0]);
    assert_eq!(names("status=nonsense").await, [""; 0]);
    assert_eq!(names("disable_rollback=true&sort_keys=stack_name&limit=2").await, ["a", "b"]);
    let page = app.get("/v1/tenant1/stacks?limit=2&sort_keys=stack_name").await.json();
    let next = page["links"][0]["href"].as_str().unwrap_or_default().trim_start_matches("http://localhost").to_owned();
    assert_eq!(app.get(&next).await.json()["stacks"][0]["stack_name"], "c");
}

#[tokio::test]
async fn policy_and_limits() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let reader = App::on(app.store.clone(), user(&["reader"]), Limits::default());
    assert_eq!(reader.get(&path).await.status, StatusCode::OK);
    let refused = reader.send(Method::DELETE, &path, None, None).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(refused.json()["error"]["message"], "You are not authorized to use stacks:delete.");
    let network =
        json!({ "heat_template_version": "2018-08-31", "resources": { "f": { "type": "OS::Nova::Flavor" } } });
    let body = json!({ "stack_name": "f", "template": network });
    let refused = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(refused.json()["error"]["message"], "You are not authorized to use OS::Nova::Flavor.");
    let limits = Limits { stacks_per_project: Some(1), resources_per_stack: Some(1), ..Limits::default() };
    let tight = App::on(app.store.clone(), user(&["member", "reader"]), limits.clone());
    let body = json!({ "stack_name": "t", "template": template() });
    let full = tight.json(Method::POST, "/v1/tenant1/stacks", &body).await.json();
    let text = "Request limit exceeded: You have reached the maximum stacks per tenant, 1. Please delete some stacks.";
    assert_eq!(full["error"]["message"], text);
    let admin = App::on(app.store.clone(), user(&["admin", "member", "reader"]), limits);
    let many = admin.json(Method::POST, "/v1/tenant1/stacks", &body).await.json();
    assert_eq!(many["error"]["message"], "Request limit exceeded: Maximum resources per stack exceeded.");
    assert_eq!(app.stacks().await, 1);
}

#[tokio::test]
async fn actions_ask_the_engine() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let act = async |name: &str| app.json(Method::POST, &format!("{path}/actions"), &json!({ name: null })).await;
    let busy = act("suspend").await;
    assert_eq!(busy.json()["error"]["message"], "Stack s already has an action (CREATE) in progress.");
    assert_eq!(busy.status, StatusCode::CONFLICT);
    let stopped = act("cancel_without_rollback").await;
    assert_eq!((stopped.status, stopped.text.as_str()), (StatusCode::OK, "null"));
    let id = path.rsplit('/').next().unwrap_or_default().parse().unwrap();
    let messages = app.store.inbox(id, "2026-11-20T06:52:46Z".parse().unwrap()).await.unwrap();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    let cancel = Cancel { generation: Some(1), ..Cancel::default() };
    assert_eq!((&message.body, &message.resource), (&MessageBody::Cancel(cancel), &None));
    let early = act("cancel_update").await.json();
    assert_eq!(early["error"]["message"], "Cancelling update when stack is CREATE_IN_PROGRESS is not supported.");
    app.json(Method::PATCH, &path, &json!({})).await;
    let cancelled = act("cancel_update").await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (StatusCode::OK, "null"));
    assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "ROLLBACK_IN_PROGRESS");
    let late = act("cancel_without_rollback").await.json();
    assert_eq!(late["error"]["message"], "Cancelling update when stack is ROLLBACK_IN_PROGRESS is not supported.");
}

#[tokio::test]
async fn marks_are_sent_to_the_engine() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let mark = async |resource: &str, body: Value| {
        app.json(Method::PATCH, &format!("{path}/resources/{resource}"), &body).await
    };
    let bad = mark("first", json!({ "mark_unhealthy": "perhaps" })).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let missing = mark("third", json!({ "mark_unhealthy": true })).await;
    assert_eq!(missing.json()["error"]["message"], "The Resource (third) could not be found in Stack s.");
    let marked = mark("first", json!({ "mark_unhealthy": true, "resource_status_reason": "it smells" })).await;
    assert_eq!((marked.status, marked.text.as_str()), (StatusCode::OK, "null"));
    let id = path.rsplit('/').next().unwrap_or_default().parse().unwrap();
    let messages = app.store.inbox(id, "2026-11-20T06:52:46Z".parse().unwrap()).await.unwrap();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    let mark = MessageBody::MarkUnhealthy(HealthMark { unhealthy: true, reason: Some("it smells".to_owned()) });
    assert_eq!((&message.body, message.resource.as_deref()), (&mark, Some("first")));
}

#[tokio::test]
async fn types_versions_and_functions_are_listed() {
    let app = App::new().await;
    let types = app.get("/v1/tenant1/resource_types?name=OS::Heat::V").await.json();
    assert_eq!(types["resource_types"], json!(["OS::Heat::Value"]));
    let all = app.get("/v1/tenant1/resource_types").await.json();
    let all = all["resource_types"].as_array().cloned().unwrap_or_default();
    assert!(all.contains(&json!("OS::Nova::Server")) && !all.contains(&json!("OS::Nova::Flavor")));
    assert_eq!(app.get("/v1/tenant1/resource_types?name=%5B").await.json()["resource_types"], json!([]));
    let unknown = app.get("/v1/tenant1/resource_types/OS::Nope").await;
    assert_eq!(unknown.json()["error"]["message"], "The Resource Type (OS::Nope) could not be found.");
    insta::assert_json_snapshot!("schema", app.get("/v1/tenant1/resource_types/OS::Heat::Value").await.json());
    let versions = app.get("/v1/tenant1/template_versions").await.json();
    assert_eq!(versions["template_versions"].as_array().map(Vec::len), Some(13));
    let functions = app.get("/v1/tenant1/template_versions/heat_template_version.rocky/functions").await.json();
    assert!(functions["template_functions"].as_array().is_some_and(|list| list.len() > 15));
    assert_eq!(app.get("/v1/tenant1/build_info").await.json()["api"]["revision"], "unknown");
}

#[tokio::test]
async fn reports_are_for_administrators() {
    let app = App::new().await;
    let refused = app.get("/v1/tenant1/report").await;
    assert_eq!(refused.json()["error"]["message"], "You are not authorized to use service:report.");
    let admin = App::on(Arc::clone(&app.store), user(&["admin"]), Limits::default());
    let none = admin.get("/v1/tenant1/report").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert_eq!(none.json()["error"]["message"], "This service does not report on itself.");
    let reporter = Reporter::new(|| Box::pin(async { "all is well\n".to_owned() }));
    let options = Options { reporter: Some(reporter), ..Options::default() };
    let answer = admin.with_options(options).get("/v1/tenant1/report").await;
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "all is well\n"));
}

#[tokio::test]
async fn serving_ends_when_told() {
    let app = App::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(app.api.clone().serve(listener, async move { drop(stopped.await) }));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /healthcheck HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    drop(stop);
    assert!(served.await.unwrap().is_ok());
}

/// The seconds that this thread has had of the processor.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux");
    let times = stat.rsplit(')').next().expect("a name").split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
}

/// Each place of a value that is not known yet was compared with all others: this took a minute.
#[tokio::test]
async fn a_property_with_many_values_that_are_not_known_is_validated_in_time() {
    let app = App::new().await;
    let many = vec![json!({"config": {"get_resource": "one"}}); 13_000];
    let template = json!({"heat_template_version": "2018-08-31", "resources": {
        "one": {"type": "OS::Heat::SoftwareConfig"},
        "all": {"type": "OS::Heat::MultipartMime", "properties": {"parts": many}},
    }});
    let start = processor_seconds();
    let body = json!({"stack_name": "s", "template": template});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let took = processor_seconds() - start;
    assert!(took < 15.0, "{took} s");
}
