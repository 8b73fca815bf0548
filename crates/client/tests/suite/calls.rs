//! Calls with a fake transport: requests, responses, tokens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kiln_client::{Access, Bundle, Client, Error, EventFilter, OrphanFilter, Source, StackFilter, StackRequest};
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};
use kiln_value::{Class, Secret, Value, text, value};
use url::Url;

/// Returns predefined responses and records requests.
#[derive(Default)]
struct Wire {
    answers: Mutex<VecDeque<(u16, Option<&'static str>, Value)>>,
    asked: Mutex<Vec<HttpRequest>>,
}

impl Wire {
    fn answer(self, status: u16, body: Value) -> Self {
        self.answers.lock().unwrap().push_back((status, None, body));
        self
    }

    fn redirect(self, location: &'static str) -> Self {
        self.answers.lock().unwrap().push_back((302, Some(location), Value::Null));
        self
    }

    fn client(self) -> (Client, Arc<Self>) {
        let wire = Arc::new(self);
        let access = Arc::new(Tokens(Mutex::new(1)));
        (Client::new(Arc::clone(&wire) as Arc<dyn Transport>, access), wire)
    }

    /// Method, path with query, token, body of each request.
    fn asked(&self) -> Vec<(Method, String, String, String)> {
        let one = |request: &HttpRequest| {
            let url = request.url[url::Position::BeforePath..].to_owned();
            let token = request.headers.get("x-auth-token").unwrap().to_str().unwrap().to_owned();
            let body = String::from_utf8(request.body.clone().unwrap_or_default().to_vec()).unwrap();
            (request.method.clone(), url, token, body)
        };
        self.asked.lock().unwrap().iter().map(one).collect()
    }
}

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        self.asked.lock().unwrap().push(request);
        let (status, location, body) = self.answers.lock().unwrap().pop_front().ok_or(TransportError::Timeout)?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some(location) = location {
            headers.insert("location", HeaderValue::from_static(location));
        }
        let body = if body.is_null() { String::new() } else { text::json(&body) };
        Ok(HttpResponse { status: StatusCode::from_u16(status).unwrap(), headers, body: body.into() })
    }
}

/// Tokens `t1`, `t2` …: a new one for each renewal.
struct Tokens(Mutex<u32>);

#[async_trait]
impl Access for Tokens {
    async fn endpoint(&self) -> Result<Url, Error> {
        Ok("http://heat:8004/v1/p".parse().unwrap())
    }

    async fn token(&self, renew: bool) -> Result<Option<Secret<String>>, Error> {
        let mut number = self.0.lock().unwrap();
        *number += u32::from(renew);
        Ok(Some(Secret::new(format!("t{number}"))))
    }
}

fn stack(name: &str) -> Value {
    value!({"stack": {"id": "i", "stack_name": name, "stack_status": "CREATE_COMPLETE"}})
}

#[tokio::test]
async fn a_name_leads_to_the_stacks_own_url() {
    let (client, wire) =
        Wire::default().redirect("http://heat:8004/v1/p/stacks/a%20b/i").answer(200, stack("a b")).client();
    let stack = client.stack("a b", false).await.unwrap();
    assert_eq!((stack.id(), stack.name(), stack.status()), ("i", "a b", "CREATE_COMPLETE"));
    let urls: Vec<String> = wire.asked().into_iter().map(|(_, url, ..)| url).collect();
    let query = "resolve_outputs=False";
    assert_eq!(urls, [format!("/v1/p/stacks/a%20b?{query}"), format!("/v1/p/stacks/a%20b/i?{query}")]);
}

#[tokio::test]
async fn tokens_go_nowhere_else() {
    let (client, wire) = Wire::default().redirect("http://evil:8004/v1/p/stacks/a/i").client();
    let error = client.stack("a", true).await.unwrap_err();
    assert!(error.to_string().contains("redirects to another address"), "{error}");
    assert_eq!(wire.asked().len(), 1);
}

#[tokio::test]
async fn the_host_of_a_document_does_not_lead_to_others() {
    let read = async |target: &'static str, allow: bool| {
        let wire = Arc::new(Wire::default().redirect(target).answer(200, value!({"a": 1})));
        let source = Source::with_web(Arc::clone(&wire) as Arc<dyn Transport>, allow);
        let read = source.read_reference("http://own/file", "http://own/template").await;
        (read.map_err(|reason| reason.contains("--allow-remote")), wire.asked.lock().unwrap().len())
    };
    let content = text::json(&value!({"a": 1})).into_bytes();
    assert_eq!(read("http://169.254.169.254/latest/user-data", false).await, (Err(true), 1));
    assert_eq!(read("file:///etc/passwd", true).await, (Err(false), 1));
    assert_eq!(read("/other", false).await, (Ok(content.clone()), 2));
    assert_eq!(read("http://169.254.169.254/latest/user-data", true).await, (Ok(content), 2));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_is_read_once_for_all_readers() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"text").unwrap();
    drop(writer);
    let url = format!("file:///proc/self/fd/{}", reader.as_raw_fd());
    for source in [Source::files(), Source::files()] {
        assert_eq!(source.read(&url).await.unwrap(), b"text");
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let refused = || value!({"error": {"message": "Authentication required"}});
    let (client, wire) = Wire::default().answer(401, refused()).answer(200, stack("a")).client();
    client.stack("a", true).await.unwrap();
    let tokens: Vec<String> = wire.asked().into_iter().map(|(_, _, token, _)| token).collect();
    assert_eq!(tokens, ["t1", "t2"]);

    let (client, wire) = Wire::default().answer(401, refused()).answer(401, refused()).client();
    assert_eq!(client.stack("a", true).await.unwrap_err().status(), Some(401));
    assert_eq!(wire.asked().len(), 2);
}

#[tokio::test]
async fn refusals_carry_heats_words_and_kilns_places() {
    let body = value!({
        "code": 400, "title": "Bad Request", "explanation": "The server could not comply …",
        "error": {
            "type": "StackValidationFailed", "message": "Property error: no", "traceback": null,
            "diagnostics": [{"message": "no", "path": "resources.a", "line": 3, "column": 5, "hints": ["try b"]}],
        },
    });
    let (client, _) = Wire::default().answer(400, body).client();
    let error = client.create_stack("a", &StackRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "Property error: no");
    let Error::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!((refusal.status, refusal.class.as_ref()), (400, Some(&Class::StackValidationFailed)));
    let place = &refusal.places[0];
    assert_eq!((place.path.as_str(), place.line, place.column), ("resources.a", Some(3), Some(5)));
    assert_eq!(place.hints, ["try b"]);
}

#[tokio::test]
async fn bodies_are_those_of_heatclient() {
    let (client, wire) = Wire::default().answer(201, stack("a")).answer(202, Value::Null).client();
    let template = value!({"heat_template_version": "2018-08-31"});
    let bundle = Bundle { template: Some(template), environment_files: vec!["file:///e".into()], ..Bundle::default() };
    let create =
        StackRequest { bundle, disable_rollback: Some(true), tags: Some("x,y".into()), ..StackRequest::default() };
    assert_eq!(client.create_stack("a", &create).await.unwrap(), "i");
    let update = StackRequest { existing: true, clear_parameters: vec!["p".into()], ..StackRequest::default() };
    client.update_stack("a", &update).await.unwrap();

    let asked = wire.asked();
    let body = |at: usize| serde_json::from_str::<Value>(&asked[at].3).unwrap();
    assert_eq!((&asked[0].0, asked[0].1.as_str()), (&Method::POST, "/v1/p/stacks"));
    let created = value!({
        "stack_name": "a", "disable_rollback": true, "parameters": {}, "files": {}, "environment": {},
        "template": {"heat_template_version": "2018-08-31"}, "environment_files": ["file:///e"], "tags": "x,y",
    });
    assert_eq!(body(0), created);
    assert_eq!((&asked[1].0, asked[1].1.as_str()), (&Method::PATCH, "/v1/p/stacks/a"));
    let updated =
        value!({"parameters": {}, "template": null, "files": {}, "environment": {}, "clear_parameters": ["p"]});
    assert_eq!(body(1), updated);
}

#[tokio::test]
async fn lists_go_page_by_page_up_to_the_limit() {
    let page = |ids: &[&str]| value!({"stacks": (ids.iter().map(|id| value!({"id": *id})).collect::<Value>())});
    let (client, wire) = Wire::default().answer(200, page(&["1", "2"])).answer(200, page(&["3"])).client();
    let filter = StackFilter { limit: Some(3), tags: Some(("tags_any", "x".into())), ..StackFilter::default() };
    let stacks = client.stacks(&filter).await.unwrap();
    assert_eq!(stacks.iter().map(kiln_client::Stack::id).collect::<Vec<_>>(), ["1", "2", "3"]);
    let urls: Vec<String> = wire.asked().into_iter().map(|(_, url, ..)| url).collect();
    assert_eq!(urls, ["/v1/p/stacks?tags_any=x&limit=3", "/v1/p/stacks?tags_any=x&limit=1&marker=2"]);
}

/// With a container, only the template is read here; the service finds the rest by its name.
#[tokio::test]
async fn files_may_be_in_a_container() {
    let folder = std::env::temp_dir().join(format!("kiln-container-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let template = folder.join("t.yaml");
    std::fs::write(&template, "heat_template_version: 2018-08-31\nresources: {a: {type: inner.yaml}}\n").unwrap();
    let source = kiln_client::Source::files();
    let names = ["env.yaml".to_owned()];
    let bundle = Bundle::in_container(&source, template.to_str(), &names, "files").await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (client, wire) = Wire::default().answer(200, value!({"stack": {"id": "i"}})).client();
    client.create_stack("s", &StackRequest { bundle, ..StackRequest::default() }).await.unwrap();
    let body = wire.asked()[0].3.clone();
    assert!(body.contains(r#""files_container":"files""#), "{body}");
    assert!(body.contains(r#""environment_files":["env.yaml"]"#) && body.contains(r#""files":{}"#), "{body}");
    assert!(body.contains(r#""type":"inner.yaml""#), "{body}");
}

/// Heat ignores the parameter and does not say that it waited.
#[tokio::test]
async fn a_service_says_whether_it_waits() {
    let (client, wire) = Wire::default().answer(200, value!({"events": []})).client();
    let filter = EventFilter { marker: Some("m".to_owned()), ..EventFilter::default() };
    assert!(client.awaited_events("s/1", &filter, 20).await.unwrap().is_none());
    assert_eq!(wire.asked()[0].1, "/v1/p/stacks/s/1/events?marker=m&sort_dir=asc&wait=20");
}

#[tokio::test]
async fn names_of_resources_are_one_segment() {
    let (client, wire) = Wire::default().answer(200, value!({"events": []})).client();
    let filter = EventFilter { resource: Some("a/b c".into()), limit: Some(1), ..EventFilter::default() };
    client.events("s/i", &filter).await.unwrap();
    assert_eq!(wire.asked()[0].1, "/v1/p/stacks/s/i/resources/a%2Fb%20c/events?limit=1&sort_dir=asc");
}

#[tokio::test]
async fn lists_of_kiln_are_read_to_their_end() {
    // Pages of these lengths.
    let ask = async |pages: &[u32], limit: Option<u64>| {
        let (mut wire, mut from) = (Wire::default(), 0);
        for length in pages {
            let ids = (from..from + length).map(|id| value!({ "id": (id.to_string()) }));
            wire = wire.answer(200, value!({ "orphans": (ids.collect::<Value>()) }));
            from += length;
        }
        let (client, wire) = wire.client();
        let found = client.orphans(&OrphanFilter { limit, ..OrphanFilter::default() }).await.unwrap();
        let urls: Vec<String> = wire.asked().into_iter().map(|(_, url, ..)| url.replace("/v1/p/orphans", "")).collect();
        (found.len(), urls.join(" "))
    };
    let short = ask(&[3], None).await;
    assert_eq!(short, (3, String::new()));
    let long = ask(&[1000, 1000, 1], None).await;
    assert_eq!(long, (2001, " ?marker=999 ?marker=1999".to_owned()));
    let full = ask(&[1000, 0], None).await;
    assert_eq!(full, (1000, " ?marker=999".to_owned()));
    let limited = ask(&[1000, 500], Some(1500)).await;
    assert_eq!(limited, (1500, "?limit=1500 ?limit=500&marker=999".to_owned()));
    let exact = ask(&[1000], Some(1000)).await;
    assert_eq!(exact, (1000, "?limit=1000".to_owned()));
}
