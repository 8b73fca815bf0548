//! The dashboard at a simulated Keystone, with an API that returns what it was sent.
#![expect(clippy::unwrap_used, reason = "tests")]

mod echo;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use futures::{SinkExt as _, StreamExt as _};
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, Method, Request, StatusCode};
use kiln_cloud::{Connector, Credentials, HttpRequest, SharedClient, TlsOptions, Transport as _};
use kiln_dashboard::{Dashboard, Parts};
use kiln_testcloud::Testcloud;
use kiln_value::Secret;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tower::ServiceExt as _;

use echo::Echo;

const ORIGIN: &str = "http://kiln.example:8004";

struct App {
    cloud: Testcloud,
    router: Router,
}

/// A response with its body.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn kind(&self) -> String {
        self.json()["error"]["type"].as_str().unwrap().to_owned()
    }

    /// `name=value` of the cookie.
    fn cookie(&self) -> String {
        self.headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

/// An API that answers with the request.
fn api() -> Router {
    Router::new().fallback(|request: Request<Body>| async move {
        let (head, body) = request.into_parts();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let headers: Vec<(String, String)> = headers.collect();
        let body = String::from_utf8(to_bytes(body, 1024).await.unwrap().to_vec()).unwrap();
        let told =
            json!({"method": head.method.as_str(), "uri": head.uri.to_string(), "headers": headers, "body": body});
        Response::new(Body::from(told.to_string()))
    })
}

impl App {
    async fn new() -> Self {
        Self::with("secret", false).await
    }

    async fn with(secret: &str, proxy_headers: bool) -> Self {
        let cloud = Testcloud::builder().start().await.unwrap();
        let router = Self::router(&cloud, secret, proxy_headers);
        Self { cloud, router }
    }

    fn router(cloud: &Testcloud, secret: &str, proxy_headers: bool) -> Router {
        let transport = Arc::new(SharedClient::new(&TlsOptions::default()).unwrap());
        let options = kiln_cloud::Options::new(cloud.auth_url().parse().unwrap());
        let connector = Connector::new(transport, options);
        let (connector, secret) = (Some(connector), Secret::new(secret.to_owned()));
        let language = Arc::new(Echo);
        Dashboard::new(Parts {
            api: api(),
            connector,
            secret,
            proxy_headers,
            owner: None,
            language,
            regions: Vec::new(),
            lists: None,
        })
        .router()
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "kiln.example:8004");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        Answer { status: head.status, headers: head.headers, body: String::from_utf8_lossy(&body).into_owned() }
    }

    async fn sign_in(&self, password: &str, project: &str) -> Answer {
        let user = self.cloud.users().demo.user;
        let form =
            json!({"method": "password", "user": user, "password": password, "domain": "Default", "project": project});
        self.send("POST", "/dashboard/session", &[("origin", ORIGIN), ("x-kiln-dashboard", "-")], Some(form)).await
    }
}

#[tokio::test]
async fn the_token_is_in_the_sealed_cookie_only() {
    let app = App::new().await;
    let wrong = app.sign_in("wrong", "demo").await;
    assert_eq!((wrong.status, wrong.kind().as_str()), (StatusCode::UNAUTHORIZED, "Refused"));
    assert!(!wrong.headers.contains_key(SET_COOKIE) && !wrong.body.contains("wrong\""));

    let right = app.sign_in(app.cloud.users().demo.password, "demo").await;
    assert_eq!(right.status, StatusCode::OK, "{}", right.body);
    let session = &right.json()["session"];
    assert_eq!((&session["user"]["name"], &session["project"]["name"]), (&json!("demo"), &json!("demo")));
    let line = right.headers[SET_COOKIE].to_str().unwrap();
    assert!(line.ends_with("; Path=/dashboard; HttpOnly; SameSite=Strict"), "{line}");

    let (cookie, project) = (right.cookie(), session["project"]["id"].as_str().unwrap().to_owned());
    let page = [(COOKIE.as_str(), cookie.as_str()), ("x-kiln-dashboard", &project)];
    let told = app.send("GET", "/dashboard/api/stacks?limit=1", &page, None).await.json();
    assert_eq!(told["uri"], format!("/v1/{project}/stacks?limit=1"));
    let headers: Vec<(String, String)> = serde_json::from_value(told["headers"].clone()).unwrap();
    let token = &headers.iter().find(|(name, _)| name == "x-auth-token").unwrap().1;
    // The API gets the token; the browser cannot read it.
    assert!(!cookie.contains(token) && !right.body.contains(token));
    assert!(headers.iter().all(|(name, _)| !["cookie", "origin", "x-kiln-dashboard"].contains(&name.as_str())));
}

#[tokio::test]
async fn headers_of_a_browser_do_not_reach_the_api() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let (cookie, project) = (session.cookie(), session.json()["session"]["project"]["id"].as_str().unwrap().to_owned());
    let sent = [
        ("cookie", cookie.as_str()),
        ("x-kiln-dashboard", &project),
        ("origin", ORIGIN),
        ("x-auth-token", "forged"),
        ("x-auth-key", "forged"),
        ("x-service-token", "forged"),
    ];
    let told = app.send("POST", "/dashboard/api/stacks", &sent, Some(json!({"a": 1}))).await;
    assert!(!told.body.contains("forged"), "{}", told.body);
    assert_eq!(told.json()["body"], "{\"a\":1}");
}

#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let (cookie, project) = (session.cookie(), session.json()["session"]["project"]["id"].as_str().unwrap().to_owned());
    let foreign: [&[(&str, &str)]; 4] = [
        // A form or an image of another site: no header of the page.
        &[("origin", "http://evil.example")],
        &[],
        // Another name for this address (DNS rebinding), or another port.
        &[("x-kiln-dashboard", &project), ("origin", "http://evil.example:8004")],
        &[("x-kiln-dashboard", &project), ("origin", "http://kiln.example:9000")],
    ];
    for headers in foreign {
        for (method, path) in [("POST", "api/stacks"), ("DELETE", "session"), ("PUT", "session"), ("GET", "api/stacks")]
        {
            let headers = [headers, &[("cookie", cookie.as_str())]].concat();
            let refused = app.send(method, &format!("/dashboard/{path}"), &headers, None).await;
            assert_eq!((refused.status, refused.kind().as_str()), (StatusCode::FORBIDDEN, "Foreign"), "{headers:?}");
        }
    }
    // A change needs an Origin; browsers send none with a read.
    let own = [("cookie", cookie.as_str()), ("x-kiln-dashboard", project.as_str())];
    assert_eq!(app.send("DELETE", "/dashboard/api/stacks/a/b", &own, None).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.send("GET", "/dashboard/api/stacks", &own, None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_cookie_of_another_service_or_a_changed_one_is_no_session() {
    let app = App::new().await;
    let other = App::with("another secret", false).await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let cookie = session.cookie();
    let ask = async |app: &App, cookie: &str| {
        let sent = [("cookie", cookie), ("x-kiln-dashboard", "-")];
        app.send("GET", "/dashboard/session", &sent, None).await.json()["session"].clone()
    };
    assert_eq!(ask(&app, &cookie).await["user"]["name"], "demo");
    assert_eq!(ask(&app, &format!("other=1; {cookie}; more=2")).await["user"]["name"], "demo");
    assert_eq!(ask(&other, &cookie).await, Value::Null);
    assert_eq!(ask(&app, &cookie[..cookie.len() - 1]).await, Value::Null);
    assert_eq!(ask(&app, &cookie.replace("kiln-dashboard=", "__Host-kiln-dashboard=")).await, Value::Null);
    let refused = app.send("GET", "/dashboard/api/stacks", &[("x-kiln-dashboard", "-")], None).await;
    assert_eq!((refused.status, refused.kind().as_str()), (StatusCode::UNAUTHORIZED, "SignedOut"));
}

#[tokio::test]
async fn a_tab_of_another_project_does_not_act_in_this_one() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let sent = [("cookie", session.cookie()), ("x-kiln-dashboard", "another".to_owned())];
    let sent = sent.each_ref().map(|(name, value)| (*name, value.as_str()));
    let refused = app.send("GET", "/dashboard/api/stacks", &sent, None).await;
    assert_eq!((refused.status, refused.kind().as_str()), (StatusCode::CONFLICT, "OtherProject"));
}

#[tokio::test]
async fn without_a_project_the_first_one_is_taken_and_can_be_changed() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "").await;
    assert_eq!(session.status, StatusCode::OK, "{}", session.body);
    let project = session.json()["session"]["project"].clone();
    let cookie = session.cookie();
    let sent = [("cookie", cookie.as_str()), ("x-kiln-dashboard", "-"), ("origin", ORIGIN)];
    let listed = app.send("GET", "/dashboard/projects", &sent, None).await.json();
    assert!(listed["projects"].as_array().unwrap().contains(&project), "{listed}");
    let same = app.send("PUT", "/dashboard/session", &sent, Some(json!({"project_id": project["id"]}))).await;
    assert_eq!(same.json()["session"]["project"], project);
    let none = app.send("PUT", "/dashboard/session", &sent, Some(json!({"project_id": "none"}))).await;
    assert_eq!((none.status, none.kind().as_str()), (StatusCode::UNAUTHORIZED, "Refused"));
}

#[tokio::test]
async fn signing_out_revokes_the_token() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let cookie = session.cookie();
    let sent = [("cookie", cookie.as_str()), ("x-kiln-dashboard", "-"), ("origin", ORIGIN)];
    assert_eq!(app.send("GET", "/dashboard/projects", &sent, None).await.status, StatusCode::OK);
    let out = app.send("DELETE", "/dashboard/session", &sent, None).await;
    assert_eq!((out.status, out.json()), (StatusCode::OK, json!({"session": null, "regions": []})));
    assert!(out.headers[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    // A copy of the cookie is worth nothing now.
    assert_eq!(app.send("GET", "/dashboard/projects", &sent, None).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn behind_a_proxy_with_https_and_a_prefix() {
    let app = App::with("secret", true).await;
    let proxy = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "cloud.example"),
        ("x-forwarded-prefix", "/orchestration"),
        ("x-kiln-dashboard", "-"),
    ];
    let form = json!({"method": "password", "user": "demo", "password": app.cloud.users().demo.password,
                      "domain": "Default", "project": "demo"});
    let headers = [&proxy[..], &[("origin", "https://cloud.example")]].concat();
    let session = app.send("POST", "/dashboard/session", &headers, Some(form)).await;
    let line = session.headers[SET_COOKIE].to_str().unwrap();
    assert!(
        line.starts_with("__Host-kiln-dashboard=") && line.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict")
    );
    let redirect = app.send("GET", "/dashboard", &proxy, None).await;
    assert_eq!((redirect.status, redirect.headers["location"].to_str().unwrap()), (StatusCode::FOUND, "dashboard/"));
}

#[tokio::test]
async fn files_are_compressed_kept_and_protected() {
    let app = App::new().await;
    let plain = app.send("GET", "/dashboard/page.js", &[], None).await;
    let small = app.send("GET", "/dashboard/page.js", &[("accept-encoding", "gzip, br")], None).await;
    assert_eq!(small.headers["content-encoding"], "gzip");
    assert!(small.body.len() < plain.body.len());
    let etag = plain.headers["etag"].to_str().unwrap();
    let same = app.send("GET", "/dashboard/page.js", &[("if-none-match", etag)], None).await;
    assert_eq!((same.status, same.body.as_str()), (StatusCode::NOT_MODIFIED, ""));
    for path in ["", "page.js", "page.css", "layout.js", "icon.svg", "none", "..%2Fapi", "api", "session"] {
        let answer = app.send("GET", &format!("/dashboard/{path}"), &[], None).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(
            (header("x-frame-options"), header("referrer-policy")),
            ("DENY".to_owned(), "no-referrer".to_owned())
        );
    }
    assert_eq!(app.send("GET", "/dashboard/none", &[], None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(app.send("POST", "/dashboard/page.js", &[], None).await.status, StatusCode::METHOD_NOT_ALLOWED);
    // Nothing of the first load is from elsewhere.
    let page = app.send("GET", "/dashboard/", &[], None).await.body;
    assert!(page.contains("src=\"page.js\"") && !page.contains("//"), "{page}");
}

#[tokio::test]
async fn what_is_not_a_form_is_refused_without_its_values() {
    let app = App::new().await;
    let headers = [("origin", ORIGIN), ("x-kiln-dashboard", "-")];
    for form in [json!({"method": "password", "user": "u", "password": ["planted"]}), json!("planted"), json!({})] {
        let refused = app.send("POST", "/dashboard/session", &headers, Some(form)).await;
        assert_eq!((refused.status, refused.kind().as_str()), (StatusCode::BAD_REQUEST, "Form"));
        assert!(!refused.body.contains("planted"));
    }
    let long = json!({"method": "token", "token": "x".repeat(70_000)});
    assert_eq!(app.send("POST", "/dashboard/session", &headers, Some(long)).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn lists_of_the_cloud_are_few_and_of_the_session() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let (cookie, project) = (session.cookie(), session.json()["session"]["project"]["id"].as_str().unwrap().to_owned());
    let page = [(COOKIE.as_str(), cookie.as_str()), ("x-kiln-dashboard", &project), ("origin", ORIGIN)];
    for (constraint, name) in [("nova.flavor", "m1.small"), ("neutron.network", "public"), ("glance.image", "cirros")] {
        let told = app.send("GET", &format!("/dashboard/choices/{constraint}"), &page, None).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.body);
        let choices = told.json()["choices"].as_array().unwrap().clone();
        let named = choices.iter().find(|choice| choice["name"].as_str().unwrap().contains(name));
        assert!(named.is_some_and(|choice| choice["id"].is_string()), "{constraint}: {}", told.body);
    }
    for constraint in
        ["nova.keypair", "cinder.vtype", "cinder.volume", "neutron.subnet", "neutron.router", "nova.server"]
    {
        let told = app.send("GET", &format!("/dashboard/choices/{constraint}"), &page, None).await;
        assert_eq!(told.status, StatusCode::OK, "{constraint}: {}", told.body);
    }
    // No proxy: neither other lists nor other methods nor paths.
    for constraint in ["keystone.user", "barbican.secret", "servers", "../api/stacks", "nova.flavor/1", ""] {
        let told = app.send("GET", &format!("/dashboard/choices/{constraint}"), &page, None).await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{constraint}: {}", told.body);
    }
    assert_eq!(app.send("POST", "/dashboard/choices/nova.flavor", &page, None).await.kind(), "Method");
    let foreign = app.send("GET", "/dashboard/choices/nova.flavor", &page[..1], None).await;
    assert_eq!(foreign.kind(), "Foreign");
    assert_eq!(app.send("GET", "/dashboard/choices/nova.flavor", &page[1..], None).await.kind(), "SignedOut");
}

/// A socket to the language server, or the status and the kind of a refusal.
async fn socket(
    app: &App,
    cookie: &str,
    project: &str,
    origin: Option<&str>,
) -> Result<WebSocketStream<TcpStream>, (StatusCode, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    tokio::spawn(axum::serve(listener, app.router.clone()).into_future());
    let uri = format!("ws://kiln.example:8004/dashboard/lsp?project={project}");
    let mut request = Request::get(uri).header("host", "kiln.example:8004").header(COOKIE, cookie);
    for (name, value) in [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ] {
        request = request.header(name, value);
    }
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    match client_async(request.body(()).unwrap(), stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(refused)) => {
            let body: Value = serde_json::from_slice(refused.body().as_deref().unwrap_or_default()).unwrap_or_default();
            Err((refused.status(), body["error"]["type"].as_str().unwrap_or_default().to_owned()))
        }
        Err(error) => panic!("{error}"),
    }
}

/// The next message of a socket, or the number with which it was closed.
async fn told(socket: &mut WebSocketStream<TcpStream>) -> Result<Value, u16> {
    let next = tokio::time::timeout(Duration::from_mins(1), socket.next()).await.unwrap();
    match next {
        Some(Ok(Message::Text(text))) => Ok(serde_json::from_str(&text).unwrap()),
        Some(Ok(Message::Close(Some(frame)))) => Err(frame.code.into()),
        _ => Err(0),
    }
}

async fn tell(socket: &mut WebSocketStream<TcpStream>, text: &str) {
    socket.send(Message::text(text.to_owned())).await.unwrap();
}

#[tokio::test]
async fn the_language_server_is_for_pages_of_the_session_only() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let (cookie, project) = (session.cookie(), session.json()["session"]["project"]["id"].as_str().unwrap().to_owned());
    let refused: [(&str, &str, Option<&str>, u16, &str); 6] = [
        (&cookie, &project, None, 403, "Foreign"),
        (&cookie, &project, Some("http://evil.example:8004"), 403, "Foreign"),
        (&cookie, &project, Some("null"), 403, "Foreign"),
        ("", &project, Some(ORIGIN), 401, "SignedOut"),
        ("kiln-dashboard=forged", &project, Some(ORIGIN), 401, "SignedOut"),
        (&cookie, "other", Some(ORIGIN), 409, "OtherProject"),
    ];
    for (cookie, project, origin, status, kind) in refused {
        let (told, name) = socket(&app, cookie, project, origin).await.err().unwrap();
        assert_eq!((told.as_u16(), name.as_str()), (status, kind), "{project} {origin:?}");
    }
    let mut open = socket(&app, &cookie, &project, Some(ORIGIN)).await.unwrap();
    tell(&mut open, r#"{"id": 1}"#).await;
    assert_eq!(told(&mut open).await, Ok(json!({"told": {"id": 1}})));
    assert_eq!(told(&mut open).await, Ok(json!({"settled": 1})));
    // Without a socket it is an error of the request.
    let page = [(COOKIE.as_str(), cookie.as_str()), ("origin", ORIGIN)];
    let plain = app.send("GET", &format!("/dashboard/lsp?project={project}"), &page, None).await;
    assert_eq!(plain.status, StatusCode::BAD_REQUEST, "{}", plain.body);
}

#[tokio::test]
async fn an_editor_is_limited() {
    let app = App::new().await;
    let session = app.sign_in(app.cloud.users().demo.password, "demo").await;
    let (cookie, project) = (session.cookie(), session.json()["session"]["project"]["id"].as_str().unwrap().to_owned());
    let mut sockets = Vec::new();
    for _ in 0..8 {
        sockets.push(socket(&app, &cookie, &project, Some(ORIGIN)).await.unwrap());
    }
    let next = socket(&app, &cookie, &project, Some(ORIGIN)).await;
    assert_eq!(next.err(), Some((StatusCode::TOO_MANY_REQUESTS, "Sockets".to_owned())));
    // What is no JSON; texts that are too long together; a message that is too long; one that takes too long.
    tell(&mut sockets[0], "{").await;
    assert_eq!(told(&mut sockets[0]).await, Err(1007));
    tell(&mut sockets[1], &json!({"bytes": 5 << 20}).to_string()).await;
    assert_eq!(told(&mut sockets[1]).await, Err(1009));
    _ = sockets[2].send(Message::text(" ".repeat(2 << 20))).await;
    assert!(told(&mut sockets[2]).await.is_err());
    tell(&mut sockets[3], r#"{"seconds": 7}"#).await;
    assert_eq!(told(&mut sockets[3]).await, Err(1008));
    drop(sockets);
    for wait in 0.. {
        if socket(&app, &cookie, &project, Some(ORIGIN)).await.is_ok() {
            break;
        }
        assert!(wait < 100, "the places are free again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A request of an administrator to the Keystone of the cloud.
async fn administer(cloud: &Testcloud, method: Method, path: &str, body: &Value) {
    let (admin, client) = (cloud.users().admin, SharedClient::new(&TlsOptions::default()).unwrap());
    let options = kiln_cloud::Options::new(cloud.auth_url().parse().unwrap());
    let credentials = Credentials::password(admin.user, admin.password, admin.project, "Default");
    let token = Connector::new(Arc::new(client.clone()), options).session(credentials).token().await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-auth-token", token.secret.expose().parse().unwrap());
    headers.insert("content-type", "application/json".parse().unwrap());
    let url = format!("{}{path}", cloud.auth_url()).parse().unwrap();
    let body = Some(body.to_string().into());
    let request = HttpRequest { method, url, headers, body, timeout: Duration::from_secs(10) };
    let answer = client.send(request).await.unwrap();
    assert!(answer.status.is_success(), "{path}: {}", answer.status);
}

#[tokio::test]
async fn a_user_with_two_factors_gives_a_passcode_too() {
    const SECRET: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
    let app = App::new().await;
    let session = app.sign_in("password", "demo").await.json();
    let user = session["session"]["user"]["id"].as_str().unwrap();
    let credential = json!({"credential": {"type": "totp", "user_id": user, "blob": SECRET}});
    administer(&app.cloud, Method::POST, "/credentials", &credential).await;
    let rules = |rule: Value| json!({"user": {"options": {"multi_factor_auth_enabled": true, "multi_factor_auth_rules": [rule]}}});
    let path = format!("/users/{user}");
    administer(&app.cloud, Method::PATCH, &path, &rules(json!(["password", "totp"]))).await;

    let asked = app.sign_in("password", "demo").await;
    assert_eq!((asked.status, asked.kind().as_str()), (StatusCode::UNAUTHORIZED, "Passcode"));
    assert_eq!(
        app.sign_in("wrong", "demo").await.kind(),
        "Refused",
        "a wrong password does not tell of the second factor"
    );
    let sign_in = async |passcode: &str, project: &str| {
        let form = json!({"method": "password", "user": "demo", "password": "password", "domain": "Default",
                          "project": project, "passcode": passcode});
        app.send("POST", "/dashboard/session", &[("origin", ORIGIN), ("x-kiln-dashboard", "-")], Some(form)).await
    };
    assert_eq!(sign_in("000000", "demo").await.kind(), "Refused");
    #[expect(clippy::disallowed_methods, reason = "the Keystone of the test has the time of the machine")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let passcode = kiln_testcloud::passcode(SECRET, now).unwrap();
    for project in ["demo", ""] {
        let right = sign_in(&passcode, project).await;
        assert_eq!(right.status, StatusCode::OK, "{}", right.body);
        assert_eq!(right.json()["session"]["project"]["name"], "demo");
    }

    administer(&app.cloud, Method::PATCH, &path, &rules(json!(["password", "x509"]))).await;
    let other = app.sign_in("password", "demo").await;
    assert!(other.kind() == "Methods" && other.body.contains("password and x509"), "{}", other.body);
}
