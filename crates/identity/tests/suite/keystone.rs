//! Tokens and trusts with a Keystone that only records requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use kiln_cloud::{Connector, Credentials, HttpRequest, HttpResponse, Options, RetryPolicy, Transport, TransportError};
use kiln_identity::{Denied, Identity, Keystone, KeystoneOptions, Policy, SignatureError, SignedRequest};
use serde_json::{Value, json};

/// A Keystone: `good` is alice's token in project `p1`, `root` is a token of an administrator, and every password is
/// valid.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<String>>,
    is_down: Mutex<bool>,
    /// Whether every answer takes a minute.
    is_slow: Mutex<bool>,
    /// Whether `good` is revoked.
    is_revoked: Mutex<bool>,
    /// Whether the first token of the service is revoked, until the service requests another one.
    is_service_revoked: Mutex<bool>,
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

fn token(user: &str, roles: &[&str]) -> Value {
    let roles: Vec<Value> = roles.iter().map(|name| json!({"id": name, "name": name})).collect();
    json!({"token": {
        "user": {"id": format!("{user}-id"), "name": user, "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "project", "domain": {"id": "default", "name": "Default"}},
        "roles": roles,
        "issued_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-01T01:00:00Z",
        "catalog": [{"type": "identity", "endpoints": [{"interface": "public", "region_id": "R", "url": "http://k/v3"}]}],
    }})
}

impl Fake {
    fn answer(&self, request: &HttpRequest) -> (StatusCode, Value) {
        let subject = request.headers.get("x-subject-token").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let body: Value = request.body.as_ref().and_then(|b| serde_json::from_slice(b).ok()).unwrap_or_default();
        let path = request.url.path();
        self.asked.lock().expect("the log").push(format!("{} {path} {subject}{body}", request.method));
        let revoked = *self.is_revoked.lock().expect("the switch");
        let mut service_revoked = self.is_service_revoked.lock().expect("the switch");
        let own = request.headers.get("x-auth-token").is_some();
        match (&request.method, path) {
            (&Method::GET, "/v3/auth/tokens") if revoked => (StatusCode::NOT_FOUND, json!({})),
            (&Method::POST, "/v3/OS-TRUST/trusts") if revoked => (StatusCode::UNAUTHORIZED, json!({})),
            (&Method::POST, "/v3/ec2tokens") if *service_revoked => (StatusCode::UNAUTHORIZED, json!({})),
            (&Method::POST, "/v3/ec2tokens") => match body["ec2Credentials"]["access"].as_str() {
                Some("alice-key") => (StatusCode::OK, token("alice", &["member"])),
                Some("unknown") => {
                    (StatusCode::UNAUTHORIZED, json!({"error": {"message": "EC2 access key not found."}}))
                }
                _ => (StatusCode::UNAUTHORIZED, json!({"error": {"message": "The request you have made …"}})),
            },
            (&Method::GET, "/v3/auth/tokens") if *service_revoked && own && subject != "fresh" => {
                (StatusCode::UNAUTHORIZED, json!({}))
            }
            (&Method::GET, "/v3/auth/tokens") => match subject {
                "fresh" if !*service_revoked => (StatusCode::OK, token("service", &["service"])),
                "good" => (StatusCode::OK, token("alice", &["member", "reader"])),
                "of-service" => (StatusCode::OK, token("nova", &["service"])),
                "expired" if request.url.query() == Some("allow_expired=1") => {
                    let mut token = token("alice", &["member"]);
                    token["token"]["expires_at"] = "2025-12-31T23:00:00Z".into();
                    (StatusCode::OK, token)
                }
                "root" => (StatusCode::OK, token("root", &["admin"])),
                "elsewhere" => {
                    let mut token = token("root", &["admin"]);
                    token["token"]["is_admin_project"] = false.into();
                    (StatusCode::OK, token)
                }
                _ => (StatusCode::NOT_FOUND, json!({})),
            },
            (&Method::POST, "/v3/auth/tokens") => {
                *service_revoked = false;
                (StatusCode::CREATED, token("service", &["service"]))
            }
            (&Method::POST, "/v3/OS-TRUST/trusts") => (StatusCode::CREATED, json!({"trust": {"id": "trust-1"}})),
            (&Method::DELETE, "/v3/OS-TRUST/trusts/trust-1") => (StatusCode::NO_CONTENT, Value::Null),
            _ => (StatusCode::NOT_FOUND, Value::Null),
        }
    }

    fn asked(&self, of: &str) -> usize {
        self.asked.lock().expect("the log").iter().filter(|line| line.contains(of)).count()
    }
}

#[async_trait]
impl Transport for Fake {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if *self.is_down.lock().expect("the switch") {
            return Err(TransportError::Connect("refused".into()));
        }
        let is_slow = *self.is_slow.lock().expect("the switch");
        if is_slow {
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        let (status, body) = self.answer(&request);
        let mut headers = HeaderMap::new();
        if status == StatusCode::CREATED || body["token"]["user"]["name"] == "alice" {
            headers.insert("x-subject-token", "fresh".parse().expect("a header"));
        }
        Ok(HttpResponse { status, headers, body: Bytes::from(body.to_string()) })
    }
}

fn keystone(fake: &Arc<Fake>) -> Keystone {
    keystone_that_remembers(fake, Duration::from_mins(5))
}

fn keystone_that_remembers(fake: &Arc<Fake>, remember: Duration) -> Keystone {
    keystone_with(fake, |options| options.remember = remember)
}

fn keystone_with(fake: &Arc<Fake>, change: impl FnOnce(&mut KeystoneOptions)) -> Keystone {
    let mut options = Options::new("http://k/v3".parse().expect("a URL"));
    options.retry = RetryPolicy { retries: 0, ..options.retry };
    let connector = Connector::new(fake.clone(), options);
    let service = Credentials::password("kiln", "pw", "service", "Default");
    let mut options = KeystoneOptions::new("http://public:5000", now);
    change(&mut options);
    Keystone::new(connector, service.clone(), service, Arc::new(Policy::default()), options)
}

fn headers(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-auth-token", token.parse().expect("a header"));
    headers
}

#[tokio::test]
async fn a_token_is_validated_once() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    for _ in 0..3 {
        let caller = keystone.authenticate(&headers("good")).await.unwrap();
        assert_eq!((caller.user_id.as_str(), caller.username.as_str()), ("alice-id", "alice"));
        assert_eq!((caller.project_id.as_str(), caller.is_admin), ("p1", false));
        assert!(caller.reaches(&["identity".into()]) && !caller.reaches(&["network".into()]));
    }
    assert_eq!(fake.asked("GET /v3/auth/tokens good"), 1);
    assert!(keystone.authenticate(&headers("root")).await.unwrap().is_admin);
}

#[tokio::test]
async fn an_invalid_token_is_refused_and_cached() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    let denied = Denied::Unauthorized { challenge: "Keystone uri=\"http://public:5000\"".into() };
    for _ in 0..3 {
        assert_eq!(keystone.authenticate(&headers("bad")).await.unwrap_err(), denied);
    }
    assert_eq!(fake.asked("GET /v3/auth/tokens bad"), 1);
    assert_eq!(keystone.authenticate(&HeaderMap::new()).await.unwrap_err(), denied);
}

#[tokio::test]
async fn a_failure_of_keystone_is_not_cached() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    *fake.is_down.lock().unwrap() = true;
    assert!(matches!(keystone.authenticate(&headers("good")).await, Err(Denied::Unavailable(_))));
    *fake.is_down.lock().unwrap() = false;
    assert!(keystone.authenticate(&headers("good")).await.is_ok());
}

#[tokio::test]
async fn a_trust_is_created_and_deleted() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    let caller = keystone.authenticate(&headers("good")).await.unwrap();
    let plan = keystone.plan(&caller, 7).unwrap();
    assert_eq!(fake.asked("OS-TRUST"), 0, "a plan makes no calls");
    let secret = keystone.delegate(&caller, &plan).await.unwrap();
    assert_eq!(keystone.acts_for(&caller, &secret), Some(true));
    let exposed: kiln_value::Value = serde_json::from_str(secret.expose()).unwrap();
    let credentials = Credentials::from_exposed(&exposed).unwrap();
    assert_eq!(credentials, Credentials::password("kiln", "pw", "service", "Default").with_trust("trust-1"));
    assert_eq!(fake.asked(r#""trustee_user_id":"service-id""#), 1);
    assert_eq!(fake.asked(r#""expires_at":"2126-01-01T00:00:07.000000Z""#), 1);
    keystone.revoke(Some(&plan), Some(&secret)).await.unwrap();
    assert_eq!(fake.asked("DELETE /v3/OS-TRUST/trusts/trust-1"), 1);
    assert_eq!(fake.asked(r#""OS-TRUST:trust":{"id":"trust-1"}"#), 1);
}

#[tokio::test]
async fn an_administrator_of_another_project_is_not_one_here() {
    let keystone = keystone(&Arc::new(Fake::default()));
    let caller = keystone.authenticate(&headers("elsewhere")).await.unwrap();
    assert!(caller.has_role("admin") && !caller.is_admin_project && !caller.is_admin);
    assert!(keystone.authenticate(&headers("root")).await.unwrap().is_admin_project, "absent is true");
}

#[tokio::test]
async fn without_a_cache_a_revoked_token_is_refused_immediately() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone_that_remembers(&fake, Duration::ZERO);
    assert!(keystone.authenticate(&headers("good")).await.is_ok());
    *fake.is_revoked.lock().unwrap() = true;
    assert!(matches!(keystone.authenticate(&headers("good")).await, Err(Denied::Unauthorized { .. })));
}

#[tokio::test]
async fn a_token_that_keystone_refuses_is_not_cached() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    let caller = keystone.authenticate(&headers("good")).await.unwrap();
    *fake.is_revoked.lock().unwrap() = true;
    let plan = keystone.plan(&caller, 7).unwrap();
    keystone.delegate(&caller, &plan).await.unwrap_err();
    assert!(matches!(keystone.authenticate(&headers("good")).await, Err(Denied::Unauthorized { .. })));
}

/// A request that is signed with a key.
fn signed(key: &str) -> SignedRequest {
    let (head, ()) = http::Request::get("/v1/").header("host", "h").body(()).expect("a request").into_parts();
    let params = [("AWSAccessKeyId", key), ("Signature", "s"), ("SignatureVersion", "2"), ("Action", "ListStacks")];
    SignedRequest::read(&head, params.into_iter(), b"").expect("a signature")
}

#[tokio::test]
async fn a_signature_stands_for_the_user_of_its_key() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    let caller = keystone.authenticate_signed(&signed("alice-key")).await.unwrap();
    assert_eq!((caller.user_id.as_str(), caller.project_id.as_str(), caller.is_admin), ("alice-id", "p1", false));
    let sent = r#""params":{"AWSAccessKeyId":"alice-key","Action":"ListStacks","SignatureVersion":"2"}"#;
    assert_eq!(fake.asked(sent), 1, "all parameters but the signature: {:?}", fake.asked.lock().unwrap());
    // The token of the caller is cached now.
    let plan = keystone.plan(&caller, 7).unwrap();
    keystone.delegate(&caller, &plan).await.unwrap();
    assert_eq!(fake.asked("GET /v3/auth/tokens fresh"), 0);
}

#[tokio::test]
async fn wrong_signatures_do_not_cost_tokens() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    for _ in 0..3 {
        assert_eq!(keystone.authenticate_signed(&signed("other")).await.unwrap_err(), SignatureError::Refused);
        assert_eq!(keystone.authenticate_signed(&signed("unknown")).await.unwrap_err(), SignatureError::UnknownKey);
    }
    assert_eq!(fake.asked("POST /v3/auth/tokens"), 1);
    *fake.is_service_revoked.lock().unwrap() = true;
    assert!(keystone.authenticate_signed(&signed("alice-key")).await.is_ok(), "with a new token of the service");
    assert_eq!(fake.asked("POST /v3/auth/tokens"), 2);
    *fake.is_down.lock().unwrap() = true;
    let down = keystone.authenticate_signed(&signed("alice-key")).await.unwrap_err();
    assert!(matches!(down, SignatureError::Unavailable(_)), "{down:?}");
}

fn with_service(token: &str, service: &str) -> HeaderMap {
    let mut headers = headers(token);
    headers.insert("x-service-token", service.parse().expect("a header"));
    headers
}

/// As in keystonemiddleware: another service that completes a long operation may use an expired token.
#[tokio::test]
async fn a_service_may_use_an_expired_token() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    let is_refused =
        async |headers: HeaderMap| matches!(keystone.authenticate(&headers).await, Err(Denied::Unauthorized { .. }));
    assert!(is_refused(headers("expired")).await);
    assert!(is_refused(with_service("expired", "good")).await, "a user is not a service");
    for _ in 0..2 {
        let caller = keystone.authenticate(&with_service("expired", "of-service")).await.unwrap();
        assert_eq!(caller.username, "alice");
    }
    assert_eq!(fake.asked("GET /v3/auth/tokens of-service"), 1);
    assert!(is_refused(headers("expired")).await, "it is not valid for others because a service has used it");
    // Once for users, once for services.
    assert_eq!(fake.asked("GET /v3/auth/tokens expired"), 2);
    assert!(is_refused(with_service("bad", "of-service")).await);
}

#[tokio::test]
async fn a_service_token_must_be_valid() {
    let fake = Arc::new(Fake::default());
    let lax = keystone(&fake);
    assert!(lax.authenticate(&with_service("good", "good")).await.is_ok(), "without the role it has no effect");
    let wrong = lax.authenticate(&with_service("good", "bad")).await;
    assert!(matches!(wrong, Err(Denied::Unauthorized { .. })));
    let strict = keystone_with(&fake, |options| options.service_roles_required = true);
    let wrong = strict.authenticate(&with_service("good", "good")).await;
    assert!(matches!(wrong, Err(Denied::Unauthorized { .. })), "the role is required");
    assert!(strict.authenticate(&with_service("good", "of-service")).await.is_ok());
    assert!(strict.authenticate(&headers("good")).await.is_ok(), "a service token is not");
    let renamed = keystone_with(&fake, |options| options.service_roles = vec!["nova".to_owned()]);
    let wrong = renamed.authenticate(&with_service("expired", "of-service")).await;
    assert!(matches!(wrong, Err(Denied::Unauthorized { .. })));
    *fake.is_down.lock().unwrap() = true;
    let down = keystone(&fake).authenticate(&with_service("good", "of-service")).await;
    assert!(matches!(down, Err(Denied::Unavailable(_))));
}

/// Keystone may forget the tokens of the service too, for example when its keys are replaced.
#[tokio::test]
async fn the_service_requests_another_token_when_its_own_is_rejected() {
    let fake = Arc::new(Fake::default());
    let keystone = keystone(&fake);
    assert!(keystone.authenticate(&headers("good")).await.is_ok());
    assert_eq!(fake.asked("POST /v3/auth/tokens"), 1);
    *fake.is_service_revoked.lock().unwrap() = true;
    assert!(keystone.authenticate(&headers("root")).await.is_ok());
    assert_eq!(fake.asked("POST /v3/auth/tokens"), 2);
}

/// Requests with a known token do not wait for Keystone; those with another one wait for a single validation.
#[tokio::test(start_paused = true)]
async fn a_slow_keystone_is_asked_once() {
    let fake = Arc::new(Fake::default());
    let keystone = Arc::new(keystone(&fake));
    assert!(keystone.authenticate(&headers("good")).await.is_ok());
    *fake.is_slow.lock().unwrap() = true;
    let start = tokio::time::Instant::now();
    assert!(keystone.authenticate(&headers("good")).await.is_ok());
    assert_eq!(start.elapsed(), Duration::ZERO);
    let ask = || {
        let keystone = Arc::clone(&keystone);
        tokio::spawn(async move { keystone.authenticate(&headers("root")).await })
    };
    let first = ask();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let others = [ask(), ask(), ask()];
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The first client does not wait any longer; the others still get an answer.
    first.abort();
    for other in others {
        assert!(other.await.unwrap().is_ok());
    }
    assert!(fake.asked("GET /v3/auth/tokens root") <= 2);
}
