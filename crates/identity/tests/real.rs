//! Against a real Keystone: `OS_*` name a user with a password, `SERVICE_*` an administrator who checks tokens and is
//! trusted.

use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use kiln_cloud::{Connector, Credentials, Options, SharedClient, TlsOptions};
use kiln_identity::{Denied, Identity, Keystone, KeystoneOptions, Policy};
use kiln_value::Value;

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Not the machine's clock: tokens of the test are fresh.
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
    let policy = Arc::new(Policy::default());
    let options = KeystoneOptions::new(env("OS_AUTH_URL"), long_ago);
    let keystone = Keystone::new(connector.clone(), service.clone(), service, Arc::clone(&policy), options);

    let token = connector.session(user).token().await.unwrap();
    let caller = keystone.authenticate(&headers(token.secret.expose())).await.unwrap();
    assert_eq!(caller.username, env("OS_USERNAME"));
    assert!(policy.allows("stacks:create", &caller, &caller.project_id), "{:?}", caller.roles);
    assert!(caller.reaches(&["identity".into()]));
    let refused = keystone.authenticate(&headers("no-such-token")).await;
    assert!(matches!(refused, Err(Denied::Unauthorized { .. })));

    let secret = keystone.delegate(&caller).await.unwrap();
    let exposed: Value = serde_json::from_str(secret.expose()).unwrap();
    let trusted = connector.session(Credentials::from_exposed(&exposed).unwrap()).token().await.unwrap();
    assert_eq!(trusted.info.user.id, caller.user_id, "the trust acts under the user's name");
    assert_eq!(trusted.info.project.as_ref().map(|project| &project.id), Some(&caller.project_id));
    keystone.revoke(&secret).await.unwrap();
    keystone.revoke(&secret).await.unwrap();
    let again = connector.session(Credentials::from_exposed(&exposed).unwrap()).token().await;
    assert!(again.is_err(), "the trust is gone");
}
