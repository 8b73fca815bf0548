//! Users of stacks from the create to the sweep, with an engine on the simulated cloud.

use kiln_cloud::Named;
use kiln_engine::{Engine, Options};
use kiln_resource::{Cloud, Resource, StackId};
use kiln_service::Signal;
use kiln_value::value;

use super::*;
use kiln_credentials::Signalling;

const TEMPLATE: &str = "
heat_template_version: 2018-08-31
resources:
  native: {type: OS::Heat::WaitConditionHandle}
  signed: {type: 'AWS::CloudFormation::WaitConditionHandle'}
  inner: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: OS::Heat::WaitConditionHandle}}}
";

/// A service with an engine, real time and a domain of stack users.
pub(super) async fn world() -> World {
    world_of(quiet_world().await)
}

/// The same with an engine.
pub(super) fn world_of(world: World) -> World {
    let options = Options { poll: Duration::from_millis(50), ..Options::default() };
    tokio::spawn(run_engine(options, world.service.backends.clone()));
    world
}

/// The same without an engine.
pub(super) async fn quiet_world() -> World {
    World::new().await.in_real_time()
}

/// Runs an engine until it is dropped.
pub(super) async fn run_engine(options: Options, backends: Backends) {
    let (_keep, stop) = tokio::sync::watch::channel(false);
    Engine::new(options, backends).run(stop).await.expect("an engine");
}

impl World {
    /// The same world with an empty store, in which time passes.
    pub(super) fn in_real_time(mut self) -> Self {
        self.memory = MemoryStore::new(Arc::new(|| kiln_stack::SystemClock.now()));
        self.service.backends = self.backends_on(Arc::new(self.memory.clone()));
        self
    }

    /// Runs an engine that is killed at an access to its store, and then another one.
    pub(super) fn run_engines(&self, killed_at: usize) -> (tokio::task::JoinHandle<()>, Arc<Steps>) {
        let options = Options {
            poll: Duration::from_millis(20),
            lease: Duration::from_millis(300),
            call_limit: Duration::from_millis(200),
            list_delay: Duration::from_millis(100),
            ..Options::default()
        };
        let steps = Arc::<Steps>::default();
        steps.arm(killed_at..killed_at + 1, Cut::Kill);
        let store = Arc::new(CutStore(self.memory.clone(), Arc::clone(&steps)));
        let (backends, second) = (self.service.backends.clone(), options.clone());
        let dying = Backends { store, ..backends.clone() };
        let counted = Arc::clone(&steps);
        let engines = tokio::spawn(async move {
            counted.run(run_engine(options, dying)).await;
            run_engine(second, backends).await;
        });
        (engines, steps)
    }

    /// The dependencies of an engine with real time and a domain of stack users.
    pub(super) fn backends_on(&self, store: Arc<dyn Store>) -> Backends {
        let domain = Named::id("heat");
        let signalling = Signalling {
            domain_admin: Some(Credentials::Password {
                user: Named::Name { name: "heat_domain_admin".to_owned(), domain: Some(Box::new(domain.clone())) },
                password: Secret::new("password".to_owned()),
                scope: Scope::Domain(domain),
            }),
            role: "heat_stack_user".to_owned(),
            cfn: Some("http://heat:8000/v1".to_owned()),
            metadata: None,
            heat: Some("http://heat:8004/v1".to_owned()),
            keystone: Some(self.cloud.auth_url()),
            region: None,
        };
        let clouds = StoredClouds::new(Arc::clone(&store), self.connector.clone(), Arc::clone(&self.identity));
        let types = kiln_resource::shipped::types().expect("sound definitions");
        Backends {
            store,
            resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
            clouds: Arc::new(clouds.with_signalling(signalling)),
            clock: Arc::new(kiln_stack::SystemClock),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        }
    }
}

impl World {
    pub(super) async fn settled(&self, id: StackId) -> Stack {
        for _ in 0..2_000 {
            let stack = self.service.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return stack;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("stuck");
    }

    pub(super) async fn row(&self, stack: StackId, name: &str) -> Resource {
        let rows = self.service.backends.store.resources(stack).await.expect("read");
        rows.into_iter().find(|row| row.name == name).expect("a row")
    }

    /// The numbers of users and projects in the cloud.
    pub(super) fn counts(&self) -> (usize, usize) {
        let snapshot = self.cloud.snapshot();
        (snapshot.count("users"), snapshot.count("projects"))
    }
}

fn text<'a>(row: &'a Resource, key: &str) -> &'a str {
    row.data.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn users_signal_with_their_own_access_and_go_with_the_stack() {
    let world = world().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let before = world.counts();
    let template = TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
    let id = world.create_of(&alice, "s", template).await.expect("a stack").id;
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    // Three users in one project.
    assert_eq!(world.counts(), (before.0 + 3, before.1 + 1));
    let project = stack.user_project.clone().expect("a project");

    // The token and the address of the handle are those of its user.
    let native = world.row(id, "native").await;
    let mut headers = HeaderMap::new();
    headers.insert("x-auth-token", text(&native, "token").parse().expect("a header"));
    let user = world.identity.authenticate(&headers).await.expect("a valid token");
    assert_eq!((&user.project_id, user.has_role("heat_stack_user")), (&project, true));
    assert_eq!(native.physical_id.as_ref(), Some(&user.user_id));
    let address = format!("http://heat:8004/v1/{project}/stacks/s/{id}/resources/native/signal");
    assert_eq!(text(&native, "endpoint"), address);
    let found = world.service.stack(&user, id, "s").await.expect("visible for its users");
    let signal = Signal { resource: "native".to_owned(), details: value!({"id": "x"}) };
    world.service.signal(found, &signal).await.expect("sent");

    // Keystone accepts the signature of the URL.
    let signed = world.row(id, "signed").await;
    let url: url::Url = text(&signed, "ec2_signed_url").parse().expect("a URL");
    let params: std::collections::BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let signature = params.get("Signature").cloned().expect("signed");
    let params: kiln_value::Map =
        params.into_iter().filter(|(key, _)| key != "Signature").map(|(key, value)| (key, value.into())).collect();
    let path = kiln_value::url::unquote(url.path());
    let body = value!({"ec2Credentials": {
        "access": (text(&signed, "access_key")), "signature": signature, "host": "heat:8000", "verb": "PUT",
        "path": path, "params": params, "headers": {}, "body_hash": "",
    }});
    let heat = world.cloud.users().heat;
    let heat = Credentials::password(heat.user, heat.password, heat.project, "Default");
    let cloud = world.connector.cloud(&heat).await;
    let token = cloud.call(CloudRequest::new("identity", Method::Post, "/v3/ec2tokens").body(body)).await;
    let token = token.expect("a token");
    let owner = token.body.get("token").and_then(|token| token.get("user")).and_then(|user| user.str_at("id"));
    assert_eq!(owner, signed.physical_id.as_deref());

    let request = StackRequest::new(Action::Delete, kiln_stack::SystemClock.now());
    world.service.backends.store.request(id, request).await.expect("asked");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    assert_eq!(world.counts(), (before.0, before.1 + 1), "the users are deleted with their resources");
    world.sweep().round().await;
    assert_eq!(world.counts(), before, "the project is deleted with the trust");
    assert!(world.trusts().is_empty());
}

/// A stack of an application credential acts by a trust, which Keystone lets only unrestricted ones create.
#[tokio::test]
async fn stacks_of_application_credentials_need_unrestricted_ones() {
    let world = world().await;
    let demo = world.cloud.users().demo;
    let own = Credentials::password(demo.user, demo.password, demo.project, "Default");
    let cloud = world.connector.cloud(&own).await;
    let user = world.caller_of(own).await.user_id.clone();
    for unrestricted in [false, true] {
        let body = value!({"application_credential": {"name": "c", "secret": "s", "unrestricted": unrestricted}});
        let path = format!("/v3/users/{user}/application_credentials");
        let made = cloud.call(CloudRequest::new("identity", Method::Post, &path).body(body)).await.expect("made").body;
        let id = made.get("application_credential").and_then(|made| made.str_at("id")).expect("an ID").to_owned();
        let secret = Secret::new("s".to_owned());
        let credential = Named::Id(id.clone());
        let caller = world.caller_of(Credentials::ApplicationCredential { credential, user: None, secret }).await;
        let made = world.create(&caller, "s").await;
        let delete = CloudRequest::new("identity", Method::Delete, format!("{path}/{id}"));
        cloud.call(delete).await.expect("deleted");
        if !unrestricted {
            let text = made.expect_err("refused").to_string();
            assert!(
                text.contains("Using method 'application_credential' is not allowed for managing trusts"),
                "{text}"
            );
            continue;
        }
        // The stack does not depend on the application credential.
        let stack = made.expect("a stack");
        assert!(world.settled(stack.id).await.state.is_complete(Action::Create));
        world.delete(&stack).await;
        assert!(world.settled(stack.id).await.state.is_complete(Action::Delete));
    }
}
