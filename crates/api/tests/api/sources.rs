//! Templates at URLs, and files in a container.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::{Method, StatusCode};
use kiln_identity::Local;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind, Method as CloudMethod};
use kiln_service::{Limits, ReadError, TemplateReader};
use kiln_value::{Class, Map, Secret, steps};
use serde_json::{Value, json};

use crate::support::{Answer, App, PROJECT, user};

const TEMPLATE: &str =
    "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::Value, properties: {value: 1}}}";

/// A web with one template.
struct Web;

#[async_trait]
impl TemplateReader for Web {
    async fn read(&self, url: &str, limit: usize) -> Result<String, ReadError> {
        match url {
            "https://example.org/t.yaml" => Ok(TEMPLATE.to_owned()),
            "https://example.org/outer.yaml" => Ok(nested("https://example.org/t.yaml").to_string()),
            "https://example.org/no.yaml" => Ok("- no template".to_owned()),
            "https://example.org/big.yaml" => Err(ReadError::Size(limit)),
            _ => Err(ReadError::Address("inside".to_owned())),
        }
    }
}

/// A template with a nested stack.
fn nested(url: &str) -> Value {
    let inner = json!({"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}});
    json!({"HeatTemplateFormatVersion": "2012-12-12", "Resources": {"inner": inner}})
}

#[tokio::test]
async fn templates_of_nested_stacks_become_files() {
    let request = |name: &str, url: &str| json!({"stack_name": name, "template": nested(url)});
    let off = App::new().await;
    let answer = off.json(Method::POST, "/v1/tenant1/stacks", &request("s", "https://example.org/t.yaml")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert!(answer.text.contains("it is not one of the files of the stack"), "{}", answer.text);

    let app = App::new().await.with_templates(Arc::new(Web));
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &request("s", "https://example.org/outer.yaml")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let stack = app.store.stack_by_name("tenant1", "s").await.expect("read").expect("a stack");
    let files = app.get(&format!("/v1/tenant1/stacks/s/{}/files", stack.id)).await.json();
    assert_eq!(files["https://example.org/t.yaml"], TEMPLATE);
    assert!(files["https://example.org/outer.yaml"].is_string(), "{files}");

    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &request("t", "http://inside/")).await;
    let text = "Could not retrieve template: the address of inside is not allowed";
    assert_eq!(answer.json()["error"]["message"], text);
}

fn bodies(url: &str) -> Value {
    json!({"stack_name": "s", "template_url": url})
}

#[tokio::test]
async fn template_urls_are_off() {
    let app = App::new().await;
    for path in ["stacks", "stacks/preview", "validate"] {
        let answer =
            app.json(Method::POST, &format!("/v1/tenant1/{path}"), &bodies("https://example.org/t.yaml")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let text = "Could not retrieve template: reading templates from URLs is disabled";
        assert_eq!(answer.json()["error"]["message"], text);
    }
    assert_eq!(app.stacks().await, 0);
}

#[tokio::test]
async fn template_urls_are_read() {
    let app = App::new().await.with_templates(Arc::new(Web));
    let good = bodies("https://example.org/t.yaml");
    for path in ["stacks/preview", "validate", "stacks"] {
        let answer = app.json(Method::POST, &format!("/v1/tenant1/{path}"), &good).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
    }
    let stack = app.store.stack_by_name("tenant1", "s").await.expect("read").expect("a stack");
    let path = format!("/v1/tenant1/stacks/s/{}", stack.id);
    let stored = app.get(&format!("{path}/template")).await;
    assert_eq!(stored.json()["resources"]["a"]["type"], "OS::Heat::Value");
    for (method, path) in
        [(Method::PUT, path.clone()), (Method::PATCH, path.clone()), (Method::PUT, format!("{path}/preview"))]
    {
        let answer = app.json(method, &path, &good).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }
    // The template in the body comes first.
    let both = json!({"stack_name": "t", "template_url": "http://127.0.0.1/", "template": TEMPLATE});
    assert_eq!(app.json(Method::POST, "/v1/tenant1/stacks", &both).await.status, StatusCode::CREATED);
    for (url, text) in [
        (
            "https://example.org/big.yaml",
            "Could not retrieve template: Template exceeds maximum allowed size (524288 bytes)",
        ),
        ("http://inside/", "Could not retrieve template: the address of inside is not allowed"),
        ("https://example.org/no.yaml", "Template not in valid format"),
    ] {
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &bodies(url)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.starts_with(text), "{message}");
    }
}

/// A Swift with one container; it logs its requests.
#[derive(Default)]
struct Swift {
    objects: BTreeMap<&'static str, String>,
    used: Option<usize>,
    log: Mutex<Vec<String>>,
}

#[async_trait]
impl Cloud for Swift {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        assert_eq!(request.service, "object-store");
        self.log.lock().expect("a lock").push(format!("{:?} {}", request.method, request.path));
        let missing = || Failure::new(FailureKind::NotFound, Class::NotFound, "no such container");
        let path = request.path.replace("%20", " ");
        let rest = path.strip_prefix("/files").ok_or_else(missing)?;
        if rest.is_empty() {
            let listed = self.objects.iter().map(|(name, text)| json!({"name": name, "bytes": text.len()}));
            let body = serde_json::from_value(listed.collect()).expect("JSON");
            let used = self.used.unwrap_or_else(|| self.objects.values().map(String::len).sum());
            let headers = Map::from([("x-container-bytes-used".to_owned(), used.to_string().into())]);
            return Ok(CloudResponse { status: 200, headers, body });
        }
        let text = self.objects.get(&rest[1..]).ok_or_else(missing)?;
        let headers = Map::from([("content-length".to_owned(), text.len().to_string().into())]);
        let body = if request.method == CloudMethod::Get { text.as_str().into() } else { kiln_value::Value::Null };
        Ok(CloudResponse { status: 200, headers, body })
    }

    async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
        Ok(name.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("tenant1".to_owned())
    }
}

async fn with(swift: &Arc<Swift>, limits: Limits) -> App {
    let catalog = serde_json::from_value(json!([{"type": "object-store", "endpoints": []}])).expect("a catalog");
    let cloud: Arc<dyn Cloud> = Arc::<Swift>::clone(swift);
    let owner = Local::of(user(&["member", "reader"]), Secret::new("{}".to_owned()));
    App::with(App::new().await.store, owner.with_cloud(cloud, catalog), limits)
}

async fn create(app: &App, container: &str) -> Answer {
    let template = json!({"heat_template_version": "2018-08-31", "resources": {
        "inner": {"type": "in ner.yaml"},
        "text": {"type": "OS::Heat::Value", "properties": {"value": {"get_file": "dir/a.txt"}}},
        "given": {"type": "OS::Heat::Value", "properties": {"value": {"get_file": "given"}}},
        "empty": {"type": "OS::Heat::Value", "properties": {"value": {"get_file": "empty"}}},
    }});
    let body = json!({
        "stack_name": "s", "template": template, "files": {"given": "of the request"}, "files_container": container,
        "environment_files": ["env.yaml"],
    });
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

fn swift() -> Swift {
    let objects = [("in ner.yaml", TEMPLATE), ("dir/a.txt", "text"), ("given", "of Swift"), ("empty", "")];
    let mut objects: BTreeMap<_, _> = objects.map(|(name, text)| (name, text.to_owned())).into();
    objects.insert("env.yaml", "parameters: {}".to_owned());
    Swift { objects, ..Swift::default() }
}

#[tokio::test]
async fn files_are_read_from_a_container() {
    let swift = Arc::new(swift());
    let app = with(&swift, Limits::default()).await;
    let answer = create(&app, "files").await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let path = answer.header("location").trim_start_matches("http://localhost").to_owned();
    let files = app.get(&format!("{path}/files")).await.json();
    assert_eq!(files["dir/a.txt"], "text");
    assert_eq!(files["empty"], "");
    // Files of the request take precedence, and are not read.
    assert_eq!(files["given"], "of the request");
    let log = swift.log.lock().expect("a lock").join("\n");
    assert!(log.contains("Get /files/in%20ner.yaml") && !log.contains("/files/given"), "{log}");
}

#[tokio::test]
async fn containers_are_refused() {
    let swift = Arc::new(swift());
    let answer = create(&with(&swift, Limits::default()).await, "none").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
    let text = "Could not fetch files from container none, reason: no such container.";
    assert_eq!(answer.json()["error"]["message"], text);

    // Too large by what Swift says: nothing is read.
    let huge = Arc::new(Swift { used: Some(2_000_000), ..self::swift() });
    let answer = create(&with(&huge, Limits::default()).await, "files").await;
    let text = "Total size of files to download (2000000 bytes) exceeds maximum allowed (1048576 bytes).";
    assert_eq!(answer.json()["error"]["message"], text);
    assert_eq!(answer.json()["error"]["type"], "DownloadLimitExceeded");
    assert_eq!(huge.log.lock().expect("a lock").len(), 1);

    // Without a cloud there is no Swift.
    let answer = create(&App::new().await, "files").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
}

/// A Swift with a large object, whose manifest is listed with size 0.
struct Manifest(Swift);

#[async_trait]
impl Cloud for Manifest {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        let mut response = self.0.call(request.clone()).await?;
        if request.path == "/files" {
            response.headers.insert("x-container-bytes-used".to_owned(), "0".into());
            response.body = serde_json::from_value(json!([{"name": "large", "bytes": 0}])).expect("JSON");
        } else if request.method == CloudMethod::Get {
            let asked = request.headers.iter().find(|(name, _)| name == "range").expect("a range");
            assert_eq!(asked.1, "bytes=0-1000");
            response.body = "x".repeat(1001).into();
        }
        Ok(response)
    }

    async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
        Ok(name.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("tenant1".to_owned())
    }
}

/// A manifest of a large object is listed with size 0.
#[tokio::test]
async fn what_is_read_is_limited_too() {
    let mut inner = swift();
    inner.objects = BTreeMap::from([("large", "x".repeat(2000))]);
    let catalog = serde_json::from_value(json!([])).expect("a catalog");
    let owner = Local::of(user(&["member", "reader"]), Secret::new("{}".to_owned()));
    let limits = Limits { container: 1000, ..Limits::default() };
    let app = App::with(App::new().await.store, owner.with_cloud(Arc::new(Manifest(inner)), catalog), limits);
    let answer = create(&app, "files").await;
    assert_eq!(answer.json()["error"]["type"], "DownloadLimitExceeded", "{}", answer.text);
}

/// A thousand hostile patterns, each within its own limit, would keep a thread busy for half a minute.
#[tokio::test]
async fn the_steps_of_a_request_are_limited_in_all() {
    let app = App::new().await;
    let limits = Limits { request_steps: 1_000_000, ..Limits::default() };
    let app = App::on(app.store.clone(), user(&["member"]), limits);
    let text = "a".repeat(12);
    let pattern = json!({"type": "string", "default": text, "constraints": [{"allowed_pattern": "(a+)+b|a*"}]});
    let cheap = json!({"type": "string", "default": "abc", "constraints": [{"allowed_pattern": "[a-c]+"}]});
    let template = |count: usize, parameter: &Value| {
        let parameters: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("p{number}"), parameter.clone())).collect();
        json!({"heat_template_version": "2018-08-31", "parameters": parameters})
    };
    let create = async |name: &str, template: Value| {
        let body = json!({"stack_name": name, "template": template});
        app.json(Method::POST, &format!("/v1/{PROJECT}/stacks"), &body).await
    };
    let hostile = create("hostile", template(1000, &pattern)).await;
    assert_eq!(hostile.status, StatusCode::BAD_REQUEST, "{}", hostile.text);
    let error = &hostile.json()["error"];
    assert_eq!(error["type"], "RequestLimitExceeded", "{}", hostile.text);
    let message = error["message"].as_str().expect("a text");
    assert!(message.contains("take more than 1000000 steps in all (parameters.p"), "{message}");
    // Each request has an account of its own.
    assert_eq!(create("one", template(1, &pattern)).await.status, StatusCode::CREATED);
    assert_eq!(create("many", template(1000, &cheap)).await.status, StatusCode::CREATED);
    // YAQL takes its steps from the same account.
    let expression =
        json!({"yaql": {"expression": "range(0, 190).select(range(0, 190).select($).len()).len()", "data": {}}});
    let outputs: serde_json::Map<String, Value> =
        (0..30).map(|number| (format!("o{number}"), json!({"value": expression}))).collect();
    let resources = json!({"v": {"type": "OS::Heat::Value", "properties": {"value": vec![expression.clone(); 60]}}});
    let yaql = json!({"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs});
    let hostile = create("yaql", yaql).await;
    assert_eq!(hostile.status, StatusCode::BAD_REQUEST, "{}", &hostile.text[..hostile.text.len().min(500)]);
    assert!(hostile.text.contains("steps in all"), "{}", hostile.text);
    // And so do the other functions: each of these copies a megabyte, which is allowed.
    let joined = json!({"list_join": ["", vec![json!({"get_param": "text"}); 16]]});
    let template = |count: usize| {
        let resource = json!({"type": "OS::Heat::Value", "properties": {"value": joined}});
        let resources: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("v{number}"), resource.clone())).collect();
        let parameters = json!({"text": {"type": "string", "default": "a".repeat(60_000)}});
        json!({"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources})
    };
    let few = create("few", template(2)).await;
    assert_eq!(few.status, StatusCode::CREATED, "{}", &few.text[..few.text.len().min(500)]);
    let hostile = create("functions", template(60)).await;
    assert_eq!(hostile.status, StatusCode::BAD_REQUEST, "{}", &hostile.text[..hostile.text.len().min(500)]);
    assert_eq!(hostile.json()["error"]["type"], "RequestLimitExceeded", "{}", hostile.text);
    assert!(hostile.text.contains("steps in all"), "{}", hostile.text);
}

/// Templates of 10,000 resources stay far below the steps of a request.
#[tokio::test]
async fn large_templates_have_steps_enough() {
    let app = App::new().await;
    let limits =
        Limits { request_steps: steps::MOST / 10, template: 8 << 20, resources_per_stack: None, ..Limits::default() };
    let app = App::on(app.store.clone(), user(&["member"]), limits);
    let resources: serde_json::Map<String, Value> = (0..10_000)
        .map(|number| {
            let value = json!({"type": "OS::Heat::Value", "properties": {"value": {"get_param": "a"}}});
            (format!("r{number}"), value)
        })
        .collect();
    let parameters = json!({"a": {"type": "string", "default": "x", "constraints": [{"allowed_pattern": "[a-z]+"}]}});
    let template = json!({"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources});
    let body = json!({"stack_name": "large", "template": template});
    let answer = app.json(Method::POST, &format!("/v1/{PROJECT}/stacks"), &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", &answer.text[..answer.text.len().min(500)]);
}
