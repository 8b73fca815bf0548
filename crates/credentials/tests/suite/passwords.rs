//! `deferred_auth_method = password`: stacks act with the passwords of their users.

use kiln_identity::Deferred;
use kiln_resource::Cloud;
use kiln_value::value;

use super::users::world_of;
use super::*;

const TEMPLATE: &str = "
heat_template_version: 2018-08-31
resources: {net: {type: OS::Neutron::Net}}
";

impl World {
    /// The user demo, with these headers in addition to the token.
    async fn with_headers(&self, password: &str, headers: &[(&'static str, &str)]) -> Arc<Caller> {
        let credentials = Credentials::password("demo", password, "demo", "Default");
        let token = self.connector.session(credentials).token().await.expect("a token");
        let mut all = HeaderMap::new();
        all.insert("x-auth-token", token.secret.expose().parse().expect("a header"));
        for (name, text) in headers {
            all.insert(*name, text.parse().expect("a header"));
        }
        self.identity.authenticate(&all).await.expect("a caller")
    }

    async fn refusal(&self, headers: &[(&'static str, &str)]) -> String {
        let caller = self.with_headers("password", headers).await;
        self.create(&caller, "s").await.expect_err("a refusal").to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_act_with_the_password_of_their_user() {
    let world = world_of(World::with(Deferred::Password).await.in_real_time());
    assert_eq!(world.refusal(&[]).await, "Missing required credential: X-Auth-User");
    assert_eq!(world.refusal(&[("x-auth-user", "demo")]).await, "Missing required credential: X-Auth-Key");
    let other = world.refusal(&[("x-auth-user", "admin"), ("x-auth-key", "password")]).await;
    assert_eq!(other, "Authorization failed. X-Auth-User is not the user of the token.");
    let wrong = world.refusal(&[("x-auth-user", "demo"), ("x-auth-key", "wrong")]).await;
    assert!(wrong.starts_with("Authorization failed. "), "{wrong}");
    assert!(world.live().await.is_empty());
    let left = world.memory.unused_credentials(Duration::ZERO, 100).await.expect("the store");
    assert!(left.is_empty(), "{left:?}");

    let trusts = world.trusts();
    let demo = world.with_headers("password", &[("x-auth-user", "demo"), ("x-auth-key", "password")]).await;
    let template = || TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
    let stack = world.create_of(&demo, "s", template()).await.expect("a stack");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    assert_eq!(world.trusts(), trusts);

    // A user who has changed the password gives the new one with the next update, of whatever.
    let admin = world.cloud.users().admin;
    let admin = Credentials::password(admin.user, admin.password, admin.project, "Default");
    let path = format!("/v3/users/{}", demo.user_id);
    let body = value!({"user": {"password": "another"}});
    let request = CloudRequest::new("identity", Method::Patch, path).body(body);
    world.connector.cloud(&admin).await.call(request).await.expect("changed");
    let demo = world.with_headers("another", &[("x-auth-user", &demo.user_id), ("x-auth-key", "another")]).await;
    let update = UpdateStack {
        template: Some(TemplateText::parse(&TEMPLATE.replace("net:", "other:"), &Limits::default()).expect("one")),
        ..UpdateStack::default()
    };
    world.service.update_stack(&demo, &stack, update).await.expect("accepted");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);

    let former = stack.credentials.expect("credentials");
    let networks = world.cloud.snapshot().count("networks");
    world.service.delete_stack(&demo, &stack).await.expect("accepted");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    assert_eq!(world.cloud.snapshot().count("networks"), networks - 1);
    world.sweep().round().await;
    assert!(world.memory.credentials(former).await.is_err(), "the password is still stored");
}
