//! The real router with an empty store, for validation.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Method, Request as HttpRequest};
use kiln_api::{Api, Options, Parts};
use kiln_identity::{Caller, Local, Policy};
use kiln_plan::ResourceTypes;
use kiln_resource::Registry;
use kiln_stack::{Backends, Chance, NoCloud, SystemClock};
use kiln_store::{SqlStore, Store};
use kiln_value::{Map, Secret, Value, value};
use tower::ServiceExt as _;

use crate::Verdict;
use crate::difference::difference;
use crate::record::Record;
use crate::request::GatheredRequest;

const PROJECT: &str = "corpus";

/// The types that the reference's operator maps to templates. The templates here have the same parameters and outputs;
/// their content does not affect the results.
const OPERATOR: [(&str, &str, &str); 2] = [
    (
        "AWS::CloudWatch::Alarm",
        "file:///etc/heat/templates/AWS_CloudWatch_Alarm.yaml",
        include_str!("operator/alarm.yaml"),
    ),
    (
        "AWS::RDS::DBInstance",
        "file:///etc/heat/templates/AWS_RDS_DBInstance.yaml",
        include_str!("operator/database.yaml"),
    ),
];

/// The API with all services available.
pub(crate) struct Service {
    router: Router,
    resource_types: Arc<ResourceTypes>,
}

impl Service {
    /// Starts it.
    pub(crate) async fn new() -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(kiln_store::Options::new("sqlite::memory:", key)).await.expect("a store");
        store.migrate().await.expect("a schema");
        let types = kiln_resource::shipped::types().expect("definitions");
        let mut catalog = ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for));
        let mut mapped = Map::new();
        for (name, url, _) in OPERATOR {
            mapped.insert(name.to_owned(), url.into());
        }
        catalog.load(&kiln_value::text::json(&value!({"resource_registry": mapped}))).expect("an environment");
        for (_, url, text) in OPERATOR {
            catalog.provide(url, text.to_owned()).expect("a template");
        }
        let catalog = Arc::new(catalog);
        let caller = Caller {
            user_id: "author-id".into(),
            username: "author".into(),
            user_domain_id: "default".into(),
            project_id: PROJECT.into(),
            project_name: PROJECT.into(),
            project_domain_id: "default".into(),
            roles: vec!["member".into(), "reader".into()],
            is_admin: false,
            is_admin_project: true,
            by_trust: false,
            trust_end: None,
            login: None,
            is_system: false,
            catalog: None,
            token: None,
        };
        // Templates stay far below the steps of a request.
        let mut options = kiln_service::Options::default();
        options.limits.request_steps /= 10;
        let service = kiln_service::Service {
            recent: Arc::default(),
            shared: kiln_service::SharedCredentials::default(),
            heat_projects: std::sync::Arc::default(),
            templates: None,
            options,
            backends: Backends {
                store: Arc::new(store),
                resource_types: Arc::clone(&catalog),
                clouds: Arc::new(NoCloud),
                clock: Arc::new(SystemClock),
                chance: Arc::new(Chance::seeded(1)),
                caches: Arc::default(),
            },
            identity: Arc::new(Local::of(caller, Secret::new("{}".to_owned()))),
            policy: Arc::new(Policy::default()),
        };
        Self { router: Api::new(Parts { options: Options::default(), service }).router(), resource_types: catalog }
    }

    /// The resource types.
    pub(crate) fn catalog(&self) -> &ResourceTypes {
        &self.resource_types
    }

    /// `POST /validate`: the status and the body. Types without a driver in Kiln are not compared: the query ignores
    /// this error (99001).
    async fn validate(&self, query: &str, body: &str) -> (u16, Value) {
        let request = HttpRequest::builder()
            .method(Method::POST)
            .uri(format!("/v1/{PROJECT}/validate{query}"))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("content-length", body.len());
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        let text = std::str::from_utf8(&bytes).expect("text");
        (status, kiln_yaml::json::parse(text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }
}

/// Checks `validate` and `nested_parameters`.
pub(crate) async fn judge(
    service: &Service,
    record: &Record,
    request: &GatheredRequest,
) -> Vec<(&'static str, Verdict)> {
    let (status, answer) = service.validate("?ignore_errors=99001", &request.body).await;
    let mut verdicts = vec![("validate", validated(record.field("validate"), status, &answer))];
    if record.has("nested_parameters") || record.has("nested_parameters_error") {
        let (status, answer) = service.validate("?show_nested=true&ignore_errors=99001", &request.body).await;
        verdicts.push(("nested_parameters", nested(record, status, &answer)));
    }
    verdicts
}

fn validated(expected: &Value, status: u16, answer: &Value) -> Verdict {
    if let Some(body) = expected.get("body") {
        return if status == 200 { difference(body, answer) } else { Some(format!("{status}: {}", message(answer))) };
    }
    let actual = refusal(status, answer);
    if expected.str_at("class") == Some("CircularDependencyException") {
        return circle(expected, &actual);
    }
    let alternatives = expected.get("alternatives").and_then(Value::as_list).unwrap_or_default();
    let first = refused(expected, &actual)?;
    let agrees = alternatives.iter().any(|other| refused(other, &actual).is_none());
    (!agrees).then_some(first)
}

/// An error in the format of the records.
fn refusal(status: u16, answer: &Value) -> Value {
    let kind = answer.get("error").and_then(|error| error.str_at("type")).unwrap_or_default();
    value!({"status": (i64::from(status)), "type": kind, "message": (message(answer))})
}

fn message(answer: &Value) -> &str {
    answer.get("error").and_then(|error| error.str_at("message")).unwrap_or_default()
}

/// The error for a cycle. The reference's text lists everything that waits for it, in the order of a set; Kiln's text
/// must contain only resources of that list, and at least two.
fn circle(expected: &Value, actual: &Value) -> Verdict {
    let text = |value: &Value| value.str_at("message").unwrap_or_default().to_owned();
    let start = "Circular Dependency Found: {";
    let (wanted, got) = (text(expected), text(actual));
    let listed: Vec<&str> = wanted.split('"').skip(1).step_by(2).collect();
    let circle = got.strip_prefix(start).and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let members: Vec<&str> = circle.split(", ").collect();
    let same_kind = ["status", "type"].iter().all(|key| expected.get(key) == actual.get(key));
    let fits = members.len() > 1 && members.iter().all(|name| listed.contains(name));
    (!same_kind || !fits)
        .then(|| format!("expected {wanted}\ngot      {} {got}", actual.str_at("type").unwrap_or_default()))
}

/// The difference between an error and the expected one, as clients see them.
fn refused(expected: &Value, actual: &Value) -> Verdict {
    let seen = |key| (key, expected.get(key).cloned().unwrap_or_default());
    let seen: Map = ["status", "type", "message"].map(seen).into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    difference(&seen.into(), actual)
}

fn nested(record: &Record, status: u16, answer: &Value) -> Verdict {
    let expected = record.field("nested_parameters_error");
    if !expected.is_null() {
        // Clients do not see the texts of Python's own errors.
        let told = |of: &Value| ["status", "type"].map(|key| of.get(key).cloned().unwrap_or_default());
        return difference(
            &told(expected).into_iter().collect(),
            &told(&refusal(status, answer)).into_iter().collect(),
        );
    }
    let field = "nested_parameters";
    let actual = answer.get("NestedParameters").unwrap_or(&Value::Null);
    if record.is_unstable(field) {
        return difference(&nameless(record.field(field)), &nameless(actual));
    }
    difference(record.field(field), actual)
}

/// Replaces the random names of group members: Heat's short IDs of twelve characters.
fn nameless(value: &Value) -> Value {
    let Some(entries) = value.as_map() else { return value.clone() };
    let is_random = |key: &str| key.len() == 12 && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let renamed = |key: &str| if is_random(key) { "<member>".to_owned() } else { key.to_owned() };
    entries.iter().map(|(key, value)| (renamed(key), nameless(value))).collect::<Map>().into()
}
