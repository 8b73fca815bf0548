//! The real router with a temporary SQLite store, one user and no engine.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use jiff::Timestamp;
use kiln_cfn::{Cfn, Options, Parts};
use kiln_identity::{Caller, DefaultCheck, DefaultRule, Local, Policy};
use kiln_plan::ResourceTypes;
use kiln_resource::Registry;
use kiln_service::{Service, SharedCredentials, TemplateReader};
use kiln_stack::{Backends, Chance, Clock, NoCloud};
use kiln_store::{SqlStore, Store};
use kiln_value::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tower::ServiceExt;

/// A stopped clock.
struct Stopped;

#[async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        "2026-11-20T06:52:45.5Z".parse().expect("a time")
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    async fn sleep(&self, _: std::time::Duration) {
        std::future::pending::<()>().await;
    }
}

/// A template with a parameter, a resource and an output.
pub(crate) const TEMPLATE: &str = r#"{
    "heat_template_version": "2013-05-23", "description": "one & <two>",
    "parameters": {"key": {"type": "string", "default": "d"}, "other": {"type": "string", "default": "o"}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "key"}}}},
    "outputs": {"out": {"description": "it", "value": {"a.b": [{"get_param": "key"}, "<"]}}}
}"#;

/// The API and its store.
pub(crate) struct App {
    router: Router,
    pub(crate) store: Arc<dyn Store>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The text of the first element with a name.
    pub(crate) fn element(&self, name: &str) -> &str {
        let start = self.text.find(&format!("<{name}>")).unwrap_or_else(|| panic!("no {name}: {}", self.text));
        let rest = &self.text[start + name.len() + 2..];
        &rest[..rest.find(&format!("</{name}>")).expect("an end")]
    }
}

/// All types. They are read once, because a test may have many callers.
/// The rules that Heat does not have.
static RULES_OF_KILN: &[DefaultRule] = &[
    kiln_service::ADD_GUARD,
    kiln_service::LIFT_GUARD,
    DefaultRule { name: "imports:scan", check: DefaultCheck::READER },
    DefaultRule { name: "imports:write", check: DefaultCheck::READER },
    DefaultRule { name: "refactors:create", check: DefaultCheck::MEMBER },
];

static TYPES: LazyLock<Arc<ResourceTypes>> = LazyLock::new(|| {
    let types = kiln_resource::shipped::types().expect("definitions");
    Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for)))
});

impl App {
    pub(crate) async fn new() -> Self {
        Self::of(&["member", "reader"], Options::default()).await
    }

    pub(crate) async fn of(roles: &[&str], options: Options) -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(kiln_store::Options::new("sqlite::memory:", key)).await.expect("a store");
        store.migrate().await.expect("a schema");
        let store = Arc::new(store);
        let options = Options { worksheets: Some(Arc::<SqlStore>::clone(&store)), ..options };
        Self::on(store, roles, options)
    }

    /// The same store with another caller.
    pub(crate) fn on(store: Arc<dyn Store>, roles: &[&str], options: Options) -> Self {
        Self::with_templates(store, roles, options, None)
    }

    /// The same store with stacks that adopt objects.
    pub(crate) fn adopting(store: Arc<dyn Store>) -> Self {
        let options = kiln_service::Options { adopt: true, ..kiln_service::Options::default() };
        Self::with(store, &["member", "reader"], Options::default(), None, options)
    }

    /// The same store with another caller, and with templates at URLs.
    pub(crate) fn with_templates(
        store: Arc<dyn Store>,
        roles: &[&str],
        options: Options,
        templates: Option<Arc<dyn TemplateReader>>,
    ) -> Self {
        Self::with(store, roles, options, templates, kiln_service::Options::default())
    }

    fn with(
        store: Arc<dyn Store>,
        roles: &[&str],
        options: Options,
        templates: Option<Arc<dyn TemplateReader>>,
        of_service: kiln_service::Options,
    ) -> Self {
        let backends = Backends {
            store: Arc::clone(&store),
            resource_types: Arc::clone(&TYPES),
            clouds: Arc::new(NoCloud),
            clock: Arc::new(Stopped),
            chance: Arc::new(Chance::from_os()),
            caches: Arc::default(),
        };
        let caller = Caller {
            user_id: "alice-id".into(),
            username: "alice".into(),
            user_domain_id: "default".into(),
            project_id: "tenant1".into(),
            project_name: "demo".into(),
            project_domain_id: "default".into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            is_admin: false,
            is_admin_project: true,
            by_trust: false,
            trust_end: None,
            login: None,
            is_system: false,
            catalog: None,
            token: None,
        };
        let service = Service {
            templates,
            shared: SharedCredentials::default(),
            heat_projects: std::sync::Arc::default(),
            options: of_service,
            backends,
            recent: Arc::default(),
            identity: Arc::new(Local::of(caller, Secret::new("{}".to_owned()))),
            policy: Arc::new(Policy::new(true, RULES_OF_KILN)),
        };
        Self { router: Cfn::new(Parts { options, service }).router(), store }
    }

    pub(crate) async fn send(&self, request: http::request::Builder, body: String) -> Answer {
        let request = request.header("host", "localhost").body(Body::from(body)).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        let kind = head.headers.get("content-type").map(|kind| kind.to_str().expect("text").to_owned());
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answer { status: head.status, kind: kind.unwrap_or_default(), text }
    }

    /// An action by GET, with its parameters in the URL.
    pub(crate) async fn get(&self, action: &str, params: &[(&str, &str)]) -> Answer {
        let uri = format!("/v1/?Action={action}&{}", encoded(params));
        self.send(Request::builder().method(Method::GET).uri(uri), String::new()).await
    }

    /// An action by POST, with its parameters in a form.
    pub(crate) async fn post(&self, action: &str, params: &[(&str, &str)]) -> Answer {
        let request = Request::builder().method(Method::POST).uri("/v1/");
        let request = request.header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        self.send(request, format!("Action={action}&Version=2010-05-15&{}", encoded(params))).await
    }

    /// Creates a stack; returns its ARN.
    pub(crate) async fn create(&self, name: &str) -> String {
        let answer = self.post("CreateStack", &[("StackName", name), ("TemplateBody", TEMPLATE)]).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.element("StackId").to_owned()
    }
}

fn encoded(params: &[(&str, &str)]) -> String {
    let escape = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let pairs: Vec<_> = params.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    pairs.join("&")
}
