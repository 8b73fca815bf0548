//! `OS::Heat::SwiftSignal` and its handle, on the simulated cloud.

use kiln_cloud::{Connector, Credentials, HttpRequest, Options};
use kiln_resource::{Cloud as _, Context, Failure, Operation, Progress, Step};
use kiln_testcloud::Testcloud;
use kiln_value::{Value, value};

use crate::resource::Resource;

struct Scene {
    testcloud: Testcloud,
    handle: Resource,
    signal: Resource,
}

impl Scene {
    /// A handle, and a signal that waits for it.
    async fn new(count: i64) -> Self {
        let testcloud = Testcloud::builder().in_process();
        let connector = Connector::new(testcloud.transport(), Options::new(testcloud.auth_url().parse().unwrap()));
        let demo = testcloud.users().demo;
        let credentials = Credentials::password(demo.user, demo.password, demo.project, "Default");
        let cloud = connector.cloud(&credentials).await;
        let project = cloud.project_id().await.unwrap();
        let make = |kind: &str, name: &str| {
            let mut resource = Resource::new(cloud.clone(), "swift", kind, name);
            (resource.facts.stack.id, resource.facts.stack.project_id) = ("s1".to_owned(), project.clone());
            resource
        };
        let mut handle = make("OS::Heat::SwiftSignalHandle", "handle");
        handle.create(value!({})).await.unwrap();
        let mut signal = make("OS::Heat::SwiftSignal", "signal");
        let url = handle.reference();
        signal.give(value!({"handle": url, "timeout": 60, "count": count})).await.unwrap();
        Self { testcloud, handle, signal }
    }

    fn url(&self) -> String {
        self.handle.reference().as_str().unwrap().to_owned()
    }

    /// Sends a signal, without a token; the status of the response.
    async fn send(&self, url: &str, method: http::Method, body: &'static str) -> u16 {
        // As curl does it.
        let length = http::HeaderValue::from(body.len());
        let headers = http::HeaderMap::from_iter([(http::header::CONTENT_LENGTH, length)]);
        let body = Some(bytes::Bytes::from_static(body.as_bytes()));
        let timeout = std::time::Duration::from_secs(9);
        let request = HttpRequest { method, url: url.parse().unwrap(), headers, body, timeout };
        self.testcloud.transport().send(request).await.unwrap().status.as_u16()
    }

    async fn put(&self, body: &'static str) {
        assert_eq!(self.send(&self.url(), http::Method::PUT, body).await, 201);
    }

    /// What the signal resource finds at a time after its create at 0.
    async fn look(&self, now: f64) -> Result<bool, Failure> {
        let step = self.step(now, &Operation::Create, &Value::Float(60.0)).await?;
        Ok(step.progress == Progress::Done)
    }

    async fn step(&self, now: f64, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let cx = Context { now, ..self.signal.context() };
        self.signal.driver().poll(&cx, operation, state).await
    }
}

#[tokio::test(start_paused = true)]
async fn signals_are_counted() {
    let mut scene = Scene::new(3).await;
    assert_eq!(scene.signal.attribute("data").await.as_str(), Some("null"));
    assert!(!scene.look(1.0).await.unwrap());
    scene.put("").await;
    scene.put(r#"{"id": "x", "data": {"a": 1}}"#).await;
    assert!(!scene.look(1.0).await.unwrap());
    // Another one with the same ID replaces it.
    scene.put(r#"{"id": "x", "data": "new", "reason": "why"}"#).await;
    assert!(!scene.look(1.0).await.unwrap());
    let late = scene.look(60.5).await.unwrap_err();
    assert_eq!(
        (late.class.name(), late.message.as_str()),
        ("SwiftSignalTimeout", "2 of 3 received - Signal 1 received;why")
    );
    scene.put(r#"{"status": "SUCCESS"}"#).await;
    assert!(scene.look(1.0).await.unwrap());
    let data = scene.signal.attribute("data").await;
    assert_eq!(data.as_str(), Some(r#"{"1": null, "x": "new", "4": null}"#));

    let curl = scene.handle.attribute("curl_cli").await;
    assert_eq!(curl.as_str(), Some(format!("curl -i -X PUT '{}'", scene.url()).as_str()));
    scene.handle.delete().await;
    let left = scene.testcloud.snapshot();
    let left = left.objects.get("nouns").unwrap().iter().filter_map(|row| row.get("name")?.as_str());
    assert_eq!(left.filter(|name| name.contains("kilntest")).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn failures_and_invalid_signals_end_the_wait() {
    for (body, class, text) in [
        (r#"{"status": "FAILURE", "reason": "disk full"}"#, "SwiftSignalFailure", "disk full"),
        (r#"{"status": "odd"}"#, "Error", "Unknown status: odd"),
        ("{odd", "Error", "Failed to parse JSON data: {odd"),
    ] {
        let scene = Scene::new(2).await;
        scene.put(body).await;
        let failure = scene.look(1.0).await.unwrap_err();
        assert_eq!((failure.class.name(), failure.message.as_str()), (class, text));
    }
}

/// The simulated Swift checks what a real one does.
#[tokio::test(start_paused = true)]
async fn only_the_signed_request_is_accepted() {
    let scene = Scene::new(1).await;
    let url = scene.url();
    let (put, get) = (http::Method::PUT, http::Method::GET);
    assert_eq!(scene.send(&url, get, "").await, 401);
    let other = url.replace("-handle-", "-other-");
    assert_eq!(scene.send(&other, put.clone(), "").await, 401);
    let longer = url.replace("temp_url_expires=2147483587", "temp_url_expires=2147483588");
    assert_eq!(scene.send(&longer, put.clone(), "").await, 401);
    assert_eq!(scene.send(&url, put, "").await, 201);
}

#[tokio::test(start_paused = true)]
async fn the_handle_must_be_one_of_the_stack() {
    let mut scene = Scene::new(1).await;
    for (url, part) in [
        (scene.url().replace("/s1/", "/s2/"), "container name"),
        (scene.url().replace("/v1/", "/v2/"), "Swift TempURL path"),
        ("nothing".to_owned(), "Swift TempURL path"),
    ] {
        let failure = scene.signal.create(value!({"handle": url, "timeout": 1})).await.unwrap_err();
        assert!(failure.message.ends_with(&format!("is not a valid SwiftSignalHandle.  The {part} is invalid")));
    }
}
