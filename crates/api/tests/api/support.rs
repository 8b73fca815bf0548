//! The real router with a temporary SQLite store, one user and no engine.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use jiff::Timestamp;
use kiln_api::{Api, Options, Parts};
use kiln_identity::{Caller, Local};
use kiln_plan::ResourceTypes;
use kiln_resource::{Registry, State, Status};
use kiln_service::{Limits, Service};
use kiln_stack::{Backends, Chance, Clock, NoCloud};
use kiln_store::{SqlStore, Stack, Store};
use kiln_value::Secret;
use serde_json::Value;
use tower::ServiceExt;

/// The project of the user, which is also that of the observations.
pub(crate) const PROJECT: &str = "tenant1";

/// A stopped clock.
pub(crate) struct Stopped;

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

/// A time that no test lives to see the end of.
const CENTURIES: std::time::Duration = std::time::Duration::from_hours(24 * 365 * 500);

/// All types. They are read once, because a test may have hundreds of callers.
static TYPES: LazyLock<Arc<ResourceTypes>> = LazyLock::new(|| {
    let types = kiln_resource::shipped::types().expect("definitions");
    Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for)))
});

/// A user with roles in [`PROJECT`].
pub(crate) fn user(roles: &[&str]) -> Caller {
    Caller {
        user_id: "alice-id".into(),
        username: "alice".into(),
        user_domain_id: "default".into(),
        project_id: PROJECT.into(),
        project_name: "demo".into(),
        project_domain_id: "default".into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        is_admin: roles.contains(&"admin"),
        is_admin_project: true,
        by_trust: false,
        trust_end: None,
        login: None,
        is_system: false,
        catalog: None,
        token: None,
    }
}

/// The API and its store.
#[derive(Clone)]
pub(crate) struct App {
    router: Router,
    pub(crate) api: Api,
    pub(crate) service: Service,
    pub(crate) store: Arc<dyn Store>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The text of a header, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A template with one resource.
pub(crate) fn random_string() -> serde_json::Value {
    serde_json::json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": "OS::Heat::RandomString"}}})
}

/// The ID of the stack at a path.
pub(crate) fn stack_of(path: &str) -> kiln_store::StackId {
    path.rsplit('/').next().unwrap_or_default().parse().expect("an ID")
}

impl App {
    /// A member of the project.
    pub(crate) async fn new() -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(kiln_store::Options::new("sqlite::memory:", key)).await.expect("a store");
        store.migrate().await.expect("a schema");
        Self::on(Arc::new(store), user(&["member", "reader"]), Limits::default())
    }

    /// The same store with another caller.
    pub(crate) fn on(store: Arc<dyn Store>, caller: Caller, limits: Limits) -> Self {
        Self::with(store, Local::of(caller, Secret::new("{}".to_owned())), limits)
    }

    /// The same store with another identity.
    pub(crate) fn with(store: Arc<dyn Store>, identity: Local, limits: Limits) -> Self {
        let backends = Backends {
            store: Arc::clone(&store),
            resource_types: Arc::clone(&TYPES),
            clouds: Arc::new(NoCloud),
            clock: Arc::new(Stopped),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        let service = Service {
            templates: None,
            shared: kiln_service::SharedCredentials::default(),
            heat_projects: std::sync::Arc::default(),
            // The clock of the database is not stopped.
            options: kiln_service::Options { limits, plan_lifetime: CENTURIES, ..kiln_service::Options::default() },
            backends,
            recent: Arc::default(),
            identity: Arc::new(identity),
            policy: Arc::new(kiln_api::policy(true)),
        };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, store }
    }

    /// The same where projects can have webhooks, with the handshake.
    pub(crate) fn with_webhooks(self, store: &kiln_store::MemoryStore) -> Self {
        let store = store.clone();
        let backends = self.service.backends.clone();
        let webhooks = kiln_service::Webhooks { store: Arc::new(store), backends, most: 3, handshake_required: true };
        let options = Options { webhooks: Some(webhooks), ..Options::default() };
        let api = Api::new(Parts { options, service: self.service.clone() });
        Self { router: api.router(), api, ..self }
    }

    /// The same where drift is watched, every 15 minutes at most, and quotas can be changed.
    pub(crate) fn with_extensions(self, store: &kiln_store::MemoryStore) -> Self {
        let shortest = std::time::Duration::from_mins(15);
        let limits = kiln_service::DriftLimits { usual: None, shortest, resources_per_second: 1 };
        let watch = kiln_service::DriftWatch { store: Arc::new(store.clone()), service: self.service.clone(), limits };
        let in_use = self.service.options.quotas.clone();
        let quotas = Some(kiln_service::QuotaChanges { store: Arc::new(store.clone()), in_use });
        let options = Options { drift: Some(watch), quotas, ..Options::default() };
        let api = Api::new(Parts { options, service: self.service.clone() });
        Self { router: api.router(), api, ..self }
    }

    /// The same with other rules.
    pub(crate) fn with_rules(self, rules: &[(&str, &str)]) -> Self {
        let rules = rules.iter().map(|(name, rule)| ((*name).to_owned(), (*rule).into())).collect();
        let policy = Arc::new(kiln_api::policy(true).with_overrides(&rules).expect("rules"));
        let service = Service { policy, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// Has no driver for a type.
    pub(crate) fn without_driver(self, name: &str) -> Self {
        let types = kiln_resource::shipped::types().expect("definitions");
        let driver = |this: &kiln_resource::ResourceType| {
            if this.name == name { None } else { kiln_drivers::driver_for(this) }
        };
        let resource_types = Arc::new(ResourceTypes::new(Registry::build(types, driver)));
        let service =
            Service { backends: Backends { resource_types, ..self.service.backends.clone() }, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// What the process knows.
    pub(crate) fn caches(&self) -> Arc<kiln_stack::Caches> {
        Arc::clone(&self.service.backends.caches)
    }

    /// The same process with another caller.
    pub(crate) fn used_by(self, caller: Caller) -> Self {
        let identity = Arc::new(Local::of(caller, Secret::new("{}".to_owned())));
        let service = Service { identity, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// The same process with other rules.
    pub(crate) fn with_policy(self, policy: kiln_identity::Policy) -> Self {
        let service = Service { policy: Arc::new(policy), ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// The same process with another clock.
    pub(crate) fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let service = Service { backends: Backends { clock, ..self.service.backends.clone() }, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// Demands plans for changes, and approvals of plans.
    pub(crate) fn demanding_plans(self, plan_approvals: usize) -> Self {
        let options = kiln_service::Options { plans_required: true, plan_approvals, ..self.service.options.clone() };
        let service = Service { options, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// Allows to adopt and to abandon stacks.
    pub(crate) fn with_adoption(self) -> Self {
        let options = kiln_service::Options { adopt: true, abandon: true, ..self.service.options.clone() };
        let service = Service { options, ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// Allows templates at URLs.
    pub(crate) fn with_templates(self, templates: Arc<dyn kiln_service::TemplateReader>) -> Self {
        let service = Service { templates: Some(templates), ..self.service.clone() };
        let api = Api::new(Parts { options: Options::default(), service: service.clone() });
        Self { router: api.router(), api, service, ..self }
    }

    /// Writes a batch, as an engine does.
    pub(crate) async fn commit(&self, stack: kiln_store::StackId, batch: kiln_store::Batch) -> Stack {
        let now = "2027-01-01T00:00:00Z".parse().expect("a time");
        let wake = kiln_store::Message {
            id: kiln_store::MessageId(self.service.backends.chance.uuid()),
            stack,
            resource: None,
            body: kiln_store::MessageBody::Timer(kiln_store::Timer::default()),
            due: Timestamp::UNIX_EPOCH,
            sent: now,
        };
        self.store.send(&wake).await.expect("sent");
        let ttl = std::time::Duration::from_mins(1);
        let engine = kiln_store::EngineId(uuid::Uuid::from_u128(7));
        let leases = self.store.claim(engine, ttl, &[stack], 1).await.expect("claimed");
        let batch = kiln_store::Batch { handled: vec![wake.id], ..batch };
        let stack = self.store.commit(leases[0], batch).await.expect("written");
        self.store.release(&leases).await.expect("released");
        stack
    }

    /// Ends the request of a stack, as an engine does.
    pub(crate) async fn settle(&self, name: &str) -> Stack {
        let stack = self.store.stack_by_name(PROJECT, name).await.expect("read").expect("a stack");
        let ttl = std::time::Duration::from_mins(1);
        let engine = kiln_store::EngineId(uuid::Uuid::from_u128(7));
        let leases = self.store.claim(engine, ttl, &[stack.id], 1).await.expect("claimed");
        let state = State::new(stack.state.action, Status::Complete);
        let deleted = state.is_complete(kiln_resource::Action::Delete);
        let now = Stopped.now();
        let generation = stack.generation;
        let settle = kiln_store::Settle { generation, state, reason: "done".to_owned(), deleted, reached: true, now };
        let batch = kiln_store::Batch { settle: Some(settle), ..kiln_store::Batch::default() };
        let stack = self.store.commit(leases[0], batch).await.expect("written");
        self.store.release(&leases).await.expect("released");
        stack
    }

    /// Sets other limits of connections.
    pub(crate) fn limited(mut self, connections: kiln_web::ConnectionLimits) -> Self {
        self.service.options.limits.streams_per_project = Some(connections.most_streams_of_project() as u64);
        self.with_options(Options { connections, ..Options::default() })
    }

    /// Sets other options.
    pub(crate) fn with_options(self, options: Options) -> Self {
        let api = Api::new(Parts { options, service: self.service.clone() });
        Self { router: api.router(), api, ..self }
    }

    /// Sends a request; `path` with its query.
    pub(crate) async fn send(&self, method: Method, path: &str, accept: Option<&str>, body: Option<&str>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").header("content-length", body.len());
        }
        let request = request.body(Body::from(body.unwrap_or_default().to_owned())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answer { status: head.status, headers: head.headers, text }
    }

    /// POST of bytes with a content type.
    pub(crate) async fn upload(&self, path: &str, kind: &str, bytes: &[u8]) -> Answer {
        let request = Request::builder().method(Method::POST).uri(path).header("host", "localhost");
        let request = request.header("content-type", kind).header("content-length", bytes.len());
        let request = request.body(Body::from(bytes.to_vec())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answer { status: head.status, headers: head.headers, text }
    }

    /// Adds a type file.
    pub(crate) fn with_type(self, text: &str) -> Self {
        let shipped = kiln_topology::TypeFiles::shipped().expect("the types of Kiln");
        let types = shipped.with([("type.yaml", text)]).expect("a valid type");
        let options = Options { topology_types: Arc::new(types), ..Options::default() };
        let api = Api::new(Parts { options, service: self.service.clone() });
        Self { router: api.router(), api, ..self }
    }

    /// Allows pages of other origins.
    pub(crate) fn with_cors(self, cors: kiln_web::Cors) -> Self {
        self.with_options(Options { cors, ..Options::default() })
    }

    /// GET, whose response is not read.
    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> axum::response::Response {
        self.bare(Method::GET, path, headers).await
    }

    /// OPTIONS.
    pub(crate) async fn options(&self, path: &str, headers: &[(&str, &str)]) -> axum::response::Response {
        self.bare(Method::OPTIONS, path, headers).await
    }

    async fn bare(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        self.router.clone().oneshot(request).await.expect("an answer")
    }

    /// The number of lists that are kept in memory.
    pub(crate) fn kept_lists(&self) -> usize {
        self.service.recent.lists.size().0
    }

    /// GET.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None, None).await
    }

    /// Any method with a JSON body.
    pub(crate) async fn json(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.send(method, path, None, Some(&body.to_string())).await
    }

    /// Number of stacks, including deleted ones.
    pub(crate) async fn stacks(&self) -> u64 {
        let query = kiln_store::StackQuery { deleted: true, nested: true, ..kiln_store::StackQuery::default() };
        self.store.count_stacks(&query).await.expect("a count")
    }

    /// Creates a stack and returns its path.
    pub(crate) async fn create(&self, name: &str, template: Value) -> String {
        let body = serde_json::json!({ "stack_name": name, "template": template });
        let answer = self.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        answer.header("location").trim_start_matches("http://localhost").to_owned()
    }
}
