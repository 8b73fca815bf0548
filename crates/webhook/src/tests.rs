//! Calls of receivers on this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use jiff::Timestamp;
use kiln_cloud::{SharedClient, TlsOptions};
use kiln_engine::{ReceiverAnswer, SignedEvent, WebhookSender as _};
use kiln_value::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::Sender;

/// A server that answers each request with these bytes; the requests.
async fn receiver(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let got = Arc::<Mutex<Vec<String>>>::default();
    let requests = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 8192];
            let length = stream.read(&mut request).await.unwrap_or(0);
            requests.lock().expect("whole").push(String::from_utf8_lossy(&request[..length]).into_owned());
            _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, got)
}

fn sender(networks: &[&str]) -> Sender {
    let networks: Vec<String> = networks.iter().map(|network| (*network).to_owned()).collect();
    let client = |public| SharedClient::for_users(&TlsOptions::default(), &networks, public).expect("a client");
    Sender {
        public: client(true),
        listed: client(false),
        origin: HeaderValue::from_static("heat.example.com"),
        timeout: Duration::from_secs(5),
    }
}

async fn send(sender: &Sender, url: &str) -> Result<ReceiverAnswer, String> {
    let (url, key) = (Secret::new(url.to_owned()), Secret::new("whsec_bmV3".to_owned()));
    let event = SignedEvent { url: &url, keys: vec![&key], id: Uuid::nil(), time: Timestamp::UNIX_EPOCH, body: "{}" };
    sender.send(event).await
}

#[tokio::test]
async fn an_event_has_the_headers_of_standard_webhooks() {
    let (port, got) =
        receiver("HTTP/1.1 429 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let answer = send(&sender(&["127.0.0.0/8"]), &format!("http://127.0.0.1:{port}/in?token=x")).await;
    assert_eq!(answer, Ok(ReceiverAnswer { status: 429, retry_after: Some(Duration::from_secs(7)) }));
    let request = got.lock().expect("whole").join("");
    for part in [
        "POST /in?token=x HTTP/1.1\r\n",
        "content-type: application/cloudevents+json; charset=utf-8\r\n",
        "webhook-id: 00000000-0000-0000-0000-000000000000\r\n",
        "webhook-timestamp: 0\r\n",
        "webhook-signature: v1,",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
}

#[tokio::test]
async fn private_addresses_and_plain_http_need_the_operators_list() {
    let (port, got) = receiver("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
    for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "169.254.169.254"] {
        for scheme in ["http", "https"] {
            let why = send(&sender(&["10.0.0.0/8"]), &format!("{scheme}://{host}:{port}/")).await.unwrap_err();
            assert!(why.starts_with("no address of"), "{scheme}://{host}: {why}");
        }
    }
    // A public address without TLS.
    let why = send(&sender(&["10.0.0.0/8"]), "http://192.0.32.8/").await.unwrap_err();
    assert!(why.contains("use https"), "{why}");
    assert!(got.lock().expect("whole").is_empty());
    assert_eq!(
        send(&sender(&["127.0.0.1"]), &format!("http://localhost:{port}/")).await.map(|one| one.status),
        Ok(204)
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (port, got) = receiver(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )
    .await;
    let answer = send(&sender(&["127.0.0.0/8"]), &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(answer.map(|one| one.status), Ok(307));
    assert_eq!(got.lock().expect("whole").len(), 1);
}

#[tokio::test]
async fn a_receiver_must_allow_the_origin() {
    for (answer, allowed) in [
        (
            "HTTP/1.1 200 OK\r\nwebhook-allowed-origin: heat.example.com\r\nwebhook-allowed-rate: 120\r\nconnection: close\r\n\r\n",
            Ok(Some(120)),
        ),
        (
            "HTTP/1.1 204 No Content\r\nWebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: *\r\nconnection: close\r\n\r\n",
            Ok(None),
        ),
        (
            "HTTP/1.1 200 OK\r\nwebhook-allowed-origin: other.example.com\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            Err(()),
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", Err(())),
        ("HTTP/1.1 405 No\r\nwebhook-allowed-origin: *\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", Err(())),
    ] {
        let (port, got) = receiver(answer).await;
        let url = Secret::new(format!("http://127.0.0.1:{port}/in"));
        let asked = sender(&["127.0.0.0/8"]).ask(&url).await;
        assert_eq!(asked.clone().map_err(drop), allowed, "{answer}: {asked:?}");
        let request = got.lock().expect("whole").join("");
        assert!(request.starts_with("OPTIONS /in HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("webhook-request-origin: heat.example.com\r\n"), "{request}");
    }
}
