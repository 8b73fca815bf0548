//! Tests with a real Keystone: `OS_*` are the credentials of a user with a password, `SERVICE_*` of an administrator
//! who validates tokens, `TRUSTEE_*` (default: the same) of the trustee.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use kiln_cloud::{Connector, Credentials, Named, Options, Scope, SharedClient, TlsOptions};
use kiln_identity::{DelegateError, Denied, Identity, Keystone, KeystoneOptions, Policy};
use kiln_value::{Secret, Value};

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Not the system clock: the tokens of the test are new.
fn long_ago() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn headers(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-auth-token", token.parse().expect("a header"));
    headers
}

#[tokio::test]
#[ignore = "needs a Keystone: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME, SERVICE_USERNAME, SERVICE_PASSWORD, SERVICE_PROJECT"]
async fn callers_and_trusts() {
    let client = SharedClient::new(&TlsOptions::default()).unwrap();
    let connector = Connector::new(Arc::new(client), Options::new(env("OS_AUTH_URL").parse().unwrap()));
    let user = Credentials::password(&env("OS_USERNAME"), &env("OS_PASSWORD"), &env("OS_PROJECT_NAME"), "Default");
    let service =
        Credentials::password(&env("SERVICE_USERNAME"), &env("SERVICE_PASSWORD"), &env("SERVICE_PROJECT"), "Default");
    let other =
        |name: &str| std::env::var(format!("TRUSTEE_{name}")).unwrap_or_else(|_| env(&format!("SERVICE_{name}")));
    let trustee = Credentials::Password {
        user: Named::in_domain(other("USERNAME"), "Default"),
        password: Secret::new(other("PASSWORD")),
        scope: Scope::Unscoped,
    };
    let policy = Arc::new(Policy::default());
    let options = KeystoneOptions::new(env("OS_AUTH_URL"), long_ago);
    let keystone = Keystone::new(connector.clone(), service, trustee, Arc::clone(&policy), options);

    let token = connector.session(user).token().await.unwrap();
    let caller = keystone.authenticate(&headers(token.secret.expose())).await.unwrap();
    assert_eq!(caller.username, env("OS_USERNAME"));
    assert!(policy.allows("stacks:create", &caller, &caller.project_id), "{:?}", caller.roles);
    assert!(caller.reaches(&["identity".into()]));
    let refused = keystone.authenticate(&headers("no-such-token")).await;
    assert!(matches!(refused, Err(Denied::Unauthorized { .. })));

    // Marks of earlier runs are in use: Keystone keeps the rows of deleted trusts.
    let mut chance = DefaultHasher::new();
    token.secret.expose().hash(&mut chance);
    let seed = chance.finish();
    let plan = keystone.plan(&caller, seed).unwrap();
    let secret = keystone.delegate(&caller, &plan).await.unwrap();
    let exposed: Value = serde_json::from_str(secret.expose()).unwrap();
    let acting = connector.session(Credentials::from_exposed(&exposed).unwrap()).token().await.unwrap();
    assert_eq!(acting.info.user.id, caller.user_id, "the trust acts under the user's name");
    assert_eq!(acting.info.project.as_ref().map(|project| &project.id), Some(&caller.project_id));
    assert_eq!(keystone.delegate(&caller, &plan).await, Err(DelegateError::Taken), "only one trust can have a mark");
    keystone.revoke(Some(&plan), Some(&secret)).await.unwrap();
    keystone.revoke(Some(&plan), Some(&secret)).await.unwrap();
    let again = connector.session(Credentials::from_exposed(&exposed).unwrap()).token().await;
    assert!(again.is_err(), "the trust is deleted");

    // Marks are returned unchanged, so that a trust with an unknown ID is found.
    for times in 1..8 {
        let plan = keystone.plan(&caller, seed.wrapping_mul(2 * times + 1)).unwrap();
        let secret = keystone.delegate(&caller, &plan).await.unwrap();
        let exposed: Value = serde_json::from_str(secret.expose()).unwrap();
        keystone.revoke(Some(&plan), None).await.unwrap();
        let again = connector.session(Credentials::from_exposed(&exposed).unwrap()).token().await;
        assert!(again.is_err(), "the trust of {} is deleted", plan.mark);
    }
}
