//! Packages and documents of topology languages as bodies.

use http::{Method, StatusCode};

use kiln_service::Limits;

use crate::support::{App, user};

const SERVICE: &str = "\
tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  inputs:
    word: {type: string}
  node_templates:
    volume: {type: tosca.nodes.BlockStorage, properties: {size: 3 GiB}}
  outputs:
    said: {value: {get_input: word}}
";

#[tokio::test]
async fn a_service_template_becomes_a_stack() {
    let app = App::new().await;
    let path = "/v1/tenant1/stacks?stack_name=one&parameters=%7B%22word%22:%22yes%22%7D";
    let made = app.upload(path, "application/x-yaml; charset=utf-8", SERVICE.as_bytes()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id = made.json()["stack"]["id"].as_str().unwrap().to_owned();
    let template = app.send(Method::GET, &format!("/v1/tenant1/stacks/one/{id}/template"), None, None).await.json();
    assert_eq!(template["heat_template_version"], "2018-08-31");
    assert_eq!(template["resources"]["volume"]["properties"]["size"], 3);
    let original = format!("/v1/tenant1/stacks/one/{id}/original");
    let given = app.send(Method::GET, &original, None, None).await;
    assert_eq!((given.status, given.header("content-type")), (StatusCode::OK, "application/yaml"));
    assert_eq!(given.text, SERVICE);
    // With another template the stack is no longer what was uploaded.
    let other = r#"{"template": {"heat_template_version": "2018-08-31"}}"#;
    let updated = app.send(Method::PATCH, &format!("/v1/tenant1/stacks/one/{id}"), None, Some(other)).await;
    assert_eq!(updated.status, StatusCode::ACCEPTED, "{}", updated.text);
    assert_eq!(app.send(Method::GET, &original, None, None).await.status, StatusCode::NOT_FOUND);
}

/// The functions of a service template take their steps from the account of the request.
#[tokio::test]
async fn the_steps_of_a_service_template_are_limited() {
    let limits = Limits { request_steps: 20_000, ..Limits::default() };
    let app = App::on(App::new().await.store, user(&["member"]), limits);
    let upload = async |name: &str, count: usize| {
        let words = vec!["{get_input: word}"; 20].join(", ");
        let output = |number: usize| format!("    o{number}: {{value: {{concat: [{words}]}}}}\n");
        let service = SERVICE.to_owned() + &(0..count).map(output).collect::<String>();
        let path = format!("/v1/tenant1/stacks?stack_name={name}&parameters=%7B%22word%22:%22yes%22%7D");
        app.upload(&path, "application/x-yaml", service.as_bytes()).await
    };
    let made = upload("few", 2).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let refused = upload("many", 300).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(refused.json()["error"]["type"], "RequestLimitExceeded", "{}", refused.text);
    assert!(refused.text.contains("more than 20000 steps in all"), "{}", refused.text);
}

/// A form, as `curl -F` sends it.
fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, content): &(&str, &str)| {
        let file = if *name == "template" { "; filename=\"web.yaml\"\r\nContent-Type: application/x-yaml" } else { "" };
        format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n")
    };
    format!("{}--edge--\r\n", parts.iter().map(part).collect::<String>())
}

#[tokio::test]
async fn a_form_has_the_upload_and_the_other_parts() {
    let app = App::new().await;
    let kind = "multipart/form-data; boundary=edge";
    let post = |parts: &[(&str, &str)]| {
        let (app, body) = (&app, form(parts));
        async move { app.upload("/v1/tenant1/stacks?stack_name=two", kind, body.as_bytes()).await }
    };
    let parameters = ("parameters", r#"{"word": "yes"}"#);
    let made = post(&[("stack_name", "one"), parameters, ("template", SERVICE), ("timeout_mins", "5")]).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id = made.json()["stack"]["id"].as_str().unwrap().to_owned();
    let shown = app.send(Method::GET, &format!("/v1/tenant1/stacks/one/{id}"), None, None).await.json();
    assert_eq!((&shown["stack"]["timeout_mins"], &shown["stack"]["parameters"]["word"]), (&5.into(), &"yes".into()));
    for (parts, why) in [
        (vec![parameters], "The form has no part template."),
        (vec![("template", SERVICE), ("colour", "red")], "Unknown part colour of the form"),
        (vec![("template", SERVICE), ("parameters", "[]")], "must be a JSON object"),
    ] {
        let refused = post(&parts).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.text.contains(why), "{why}: {}", refused.text);
    }
    for (kind, body) in [("multipart/form-data", form(&[])), (kind, "--edge\r\nhalf".to_owned())] {
        let broken = app.upload("/v1/tenant1/stacks", kind, body.as_bytes()).await;
        assert_eq!(broken.status, StatusCode::BAD_REQUEST, "{}", broken.text);
    }
    let huge = "#".repeat(2 << 20);
    assert_eq!(post(&[("template", huge.as_str())]).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn errors_have_the_place_in_the_document() {
    let app = App::new().await;
    let wrong = SERVICE.replace("BlockStorage", "BlokStorage");
    let path = "/v1/tenant1/stacks?stack_name=one";
    let refused = app.upload(path, "text/yaml", wrong.as_bytes()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("6:14: No type is named \"tosca.nodes.BlokStorage\"."), "{message}");
}

#[tokio::test]
async fn packages_are_read_by_their_content() {
    let app = App::new().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../topology/tests/data/blueprint/packages/");
    let read = |name: &str| std::fs::read(format!("{folder}{name}")).unwrap();
    let parameters = "%7B%22my_server_flavor%22:%22m1.small%22,%22my_server_image%22:%22cirros%22,\
                      %22my_server_network%22:%22private%22%7D";
    for (i, name) in ["1-script-server.zip", "1-script-server.pdp.tar.gz", "1-script-server.csar"].iter().enumerate() {
        let path = format!("/v1/tenant1/stacks?stack_name=s{i}&parameters={parameters}");
        let made = app.upload(&path, "application/zip", &read(name)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{name}: {}", made.text);
    }
    let path = "/v1/tenant1/stacks?stack_name=bad";
    for (name, text) in [
        ("leaves-the-archive.zip", "../outside.sh leaves the package."),
        ("not-an-archive.zip", "UTF-8"),
        ("pdp-wrong-digest.pdp.zip", "is not the one that camp.mf was made for"),
    ] {
        let refused = app.upload(path, "application/zip", &read(name)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}");
        assert!(refused.text.contains(text) || name == "not-an-archive.zip", "{name}: {}", refused.text);
    }
}

/// As in Heat, other requests ignore a body that is not JSON.
#[tokio::test]
async fn only_requests_with_a_template_take_uploads() {
    let app = App::new().await;
    let ignored = app.upload("/v1/tenant1/software_configs", "text/yaml", b"name: one").await;
    let empty = app.send(Method::POST, "/v1/tenant1/software_configs", None, None).await;
    assert_eq!((ignored.status, ignored.text), (empty.status, empty.text));
}

#[tokio::test]
async fn questions_are_answered_only_where_parameters_are_missing() {
    let app = App::new().await;
    let create = |name: &str, parameters: &str, questions: &str| {
        let template = "heat_template_version: 2018-08-31\\nparameters: {flavor: {type: string}}";
        let body = format!(
            r#"{{"stack_name": "{name}", "template": "{template}", "parameters": {parameters}, "questions": {questions}}}"#
        );
        let app = &app;
        async move { app.send(Method::POST, "/v1/tenant1/stacks", None, Some(&body)).await }
    };
    let asked = r#"{"flavor": {"type": "flavor", "cpus": 2}, "other": {"type": "network"}}"#;
    let refused = create("one", "{}", asked).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert!(refused.text.contains("A flavor with at least 2 CPUs."), "{}", refused.text);
    let given = r#"{"flavor": {"type": "flavor", "cpus": 2}}"#;
    let made = create("one", r#"{"flavor": "m1.small"}"#, given).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    for wrong in [r#"{"flavor": {"type": "planet"}}"#, r#"{"flavor": 1}"#, "[]"] {
        let refused = create("two", "{}", wrong).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}: {}", refused.text);
    }
}

#[tokio::test]
async fn an_upload_uses_the_types_of_the_operator() {
    let text = "components:\n  redis: {type: cache, size: 4}\n";
    let path = "/v1/tenant1/stacks?stack_name=one";
    let unknown = App::new().await.upload(path, "application/yaml", text.as_bytes()).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    assert!(unknown.text.contains("No component type is named cache."), "{}", unknown.text);
    let app = App::new().await.with_type(
        "topology_type: com.example.Cache\nderived_from: tosca.nodes.Root\ncomponent: {aliases: [cache]}\nproperties: \
         {size: {type: integer}}\nhot:\n  resources:\n    '': {type: OS::Heat::Value, properties: {value: {$property: \
         size}}}\n",
    );
    // Clients that convert documents themselves read them.
    let listed = app.get("/v1/tenant1/topology_types").await.json();
    assert_eq!(listed["topology_types"].as_array().unwrap().len(), 1);
    assert_eq!(listed["topology_types"][0]["name"], "com.example.Cache");
    assert!(listed["topology_types"][0]["text"].as_str().unwrap().contains("aliases: [cache]"));
    let none = App::new().await.get("/v1/tenant1/topology_types").await.json();
    assert_eq!(none["topology_types"].as_array().unwrap().len(), 0, "those of Kiln are not listed");
    let made = app.upload(path, "application/yaml", text.as_bytes()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id = made.json()["stack"]["id"].as_str().unwrap().to_owned();
    let template = app.send(Method::GET, &format!("/v1/tenant1/stacks/one/{id}/template"), None, None).await.json();
    assert_eq!(template["resources"]["redis"]["properties"]["value"], 4);
}

/// Each node refers twice to the one before it, so that the value doubles with each node.
fn doubling(nodes: usize) -> String {
    let refer = |number: usize| format!("{{get_property: [n{number}, x]}}");
    let node = |number: usize| {
        format!("    n{number}: {{type: N, properties: {{x: {{a: {0}, b: {0}}}}}}}\n", refer(number - 1))
    };
    format!(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  N: {{derived_from: tosca.nodes.Root, \
         properties: {{x: {{type: map}}}}}}\ntopology_template:\n  node_templates:\n    n0: {{type: N, properties: {{x: \
         {{a: v}}}}}}\n{}  outputs: {{o: {{value: {}}}}}\n",
        (1..nodes).map(node).collect::<Vec<_>>().concat(),
        refer(nodes - 1),
    )
}

/// A document of three kilobytes would become a template of terabytes.
#[tokio::test]
async fn references_that_double_a_value_are_bounded() {
    let app = App::new().await;
    let upload = async |app: &App, nodes: usize| {
        let path = format!("/v1/tenant1/stacks?stack_name=s{nodes}");
        app.upload(&path, "application/yaml", doubling(nodes).as_bytes()).await
    };
    assert_eq!(upload(&app, 8).await.status, StatusCode::CREATED);
    let refused = upload(&app, 45).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text.contains("What this document becomes is too large."), "{}", refused.text);
    // Lowering takes its steps from those of the request.
    let limits = Limits { request_steps: 1_000_000, ..Limits::default() };
    let app = App::on(app.store.clone(), user(&["member"]), limits);
    let refused = upload(&app, 45).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["error"]["type"], "RequestLimitExceeded", "{}", refused.text);
    assert!(refused.text.contains("take more than 1000000 steps in all"), "{}", refused.text);
}
