//! A simple HTTP client that makes lost responses visible.

use std::io;
use std::time::Duration;

use kiln_testcloud::{Account, Testcloud};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Answer {
    /// The header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Checks the status and returns the body.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json
    }

    /// Checks the status of an error and that its text contains `part`.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        assert!(self.text.contains(part), "{part:?} is not in {}", self.text);
    }
}

/// A client with a token.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) project: String,
    pub(crate) user: String,
}

impl Client {
    /// A client for the account in its own project.
    pub(crate) async fn new(cloud: &Testcloud, account: Account) -> Self {
        let domain = json!({"name": "Default"});
        let user = json!({"name": account.user, "domain": domain, "password": account.password});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let scope = json!({"project": {"name": account.project, "domain": domain}});
        Self::auth(cloud, json!({"auth": {"identity": identity, "scope": scope}})).await.expect("a token")
    }

    /// A client with the token for an authentication body.
    pub(crate) async fn auth(cloud: &Testcloud, body: Value) -> Result<Self, Answer> {
        let mut client = Client {
            address: cloud.address().to_string(),
            token: String::new(),
            project: String::new(),
            user: String::new(),
        };
        let answer = client.call("POST", "/identity/v3/auth/tokens", body).await;
        let Some(token) = answer.header("x-subject-token").map(str::to_owned) else { return Err(answer) };
        client.token = token;
        client.project = text(&answer.json["token"]["project"]["id"]);
        client.user = text(&answer.json["token"]["user"]["id"]);
        Ok(client)
    }

    /// Sends a request; `Null` means no body.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        self.with(method, path, body, &[]).await.expect("a reply")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, Value::Null).await
    }

    /// Sends a request with additional headers; an error if the connection ends without a response.
    pub(crate) async fn with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let body = match body {
            Value::Null => String::new(),
            Value::String(raw) => raw,
            value => value.to_string(),
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        let length = body.len().to_string();
        let own = [("content-type", "application/json"), ("content-length", &length), ("x-auth-token", &self.token)];
        let version = [("x-openstack-nova-api-version", "2.90")];
        let version =
            if headers.iter().any(|(name, _)| name.starts_with("x-openstack")) { &version[..0] } else { &version[..] };
        for (name, value) in own.iter().chain(version).chain(headers).filter(|(_, value)| !value.is_empty()) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        let (head, text) = whole.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let json = serde_json::from_str(text).unwrap_or_default();
        Ok(Answer { status, head: head.to_owned(), text: text.to_owned(), json })
    }

    /// The ID of the object with a name in a list.
    pub(crate) async fn id(&self, path: &str, name: &str) -> String {
        let list = self.get(&format!("{path}?name={name}")).await.expect(200);
        let rows = list.as_object().and_then(|map| map.values().find_map(Value::as_array)).cloned().unwrap_or_default();
        let found = rows.iter().find(|row| row["name"] == name);
        text(&found.unwrap_or_else(|| panic!("no {name} in {path}"))["id"])
    }

    /// Creates an object and returns its ID.
    pub(crate) async fn make(&self, path: &str, body: Value) -> String {
        let answer = self.post(path, body).await;
        assert!(matches!(answer.status, 200..=202), "{} {}", answer.status, answer.text);
        text(&answer.json.as_object().and_then(|map| map.values().next()).expect("an object")["id"])
    }

    /// Waits until the `status` of the object is `wanted`, or until it is deleted for `""`.
    pub(crate) async fn wait(&self, path: &str, wanted: &str) {
        for _ in 0..6000 {
            let answer = self.get(path).await;
            // Glance's objects are at the top level of the body, all others below their name.
            let object = answer.json.as_object().and_then(|map| map.values().next());
            let status = answer.json.get("status").or_else(|| object?.get("status")).map(text).unwrap_or_default();
            if status == wanted && answer.status == 200 || wanted.is_empty() && answer.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} did not become {wanted:?}: {}", self.get(path).await.text);
    }
}

/// The string, or an empty one.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A cloud and a client for demo. The build time is one that a busy machine does not lose between two requests: tests read
/// the state in between.
pub(crate) async fn start() -> (Testcloud, Client) {
    let cloud = Testcloud::builder().build_time(Duration::from_secs(1)).seed(7).start().await.expect("a port");
    let demo = Client::new(&cloud, cloud.users().demo).await;
    (cloud, demo)
}

/// An unused ID.
pub(crate) const NOBODY: &str = "11111111-2222-4333-8444-555555555555";
