//! Incomplete requests, and many of them.

use std::net::SocketAddr;
use std::time::Duration;

use kiln_web::ConnectionLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{App, PROJECT};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(10);
/// A short timeout.
const SHORT: Duration = Duration::from_millis(200);
/// The timeout of tests.
const PATIENCE: Duration = Duration::from_secs(20);

fn limits() -> ConnectionLimits {
    ConnectionLimits { header: LONG, body: LONG, send: LONG, ..ConnectionLimits::default() }
}

async fn serve(limits: ConnectionLimits) -> SocketAddr {
    let app = App::new().await.limited(limits);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(app.api.serve(listener, std::future::pending()));
    address
}

/// Sends a text and keeps the connection open.
async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("a part of a request");
    stream
}

/// Everything until the end of the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read =
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection stays open");
    // A connection that is closed with unread data is reset.
    drop(read);
    String::from_utf8(answer).expect("text")
}

async fn is_healthy(address: SocketAddr) -> bool {
    let request = "GET /healthcheck HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    if stream.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    rest(stream).await.starts_with("HTTP/1.1 200 OK")
}

#[tokio::test]
async fn half_a_head_does_not_keep_a_connection() {
    let address = serve(ConnectionLimits { header: SHORT, ..limits() }).await;
    let half = send(address, "GET /v1 HTTP/1.1\r\nhost").await;
    rest(half).await;
    // The same applies to idle connections.
    rest(send(address, "").await).await;
    let idle = send(address, "GET /healthcheck HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert!(rest(idle).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn half_a_body_does_not_keep_a_connection() {
    let address = serve(ConnectionLimits { body: SHORT, ..limits() }).await;
    let head = "POST /v1/tenant1/stacks HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n{\"stack";
    let answer = rest(send(address, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn one_address_does_not_take_all_connections() {
    let address = serve(ConnectionLimits { per_address: Some(2), ..limits() }).await;
    let first = send(address, "GET").await;
    let second = send(address, "GET").await;
    assert!(!is_healthy(address).await, "a third connection of one address is served");
    drop(first);
    drop(second);
    let healthy = async {
        while !is_healthy(address).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, healthy).await.expect("connections that are gone count on");
}

#[tokio::test]
async fn a_crowd_is_over_when_its_time_is() {
    let address = serve(ConnectionLimits { total: 20, per_address: None, header: SHORT, ..limits() }).await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(send(address, "GET /").await);
    }
    assert!(is_healthy(address).await);
    drop(crowd);
}

#[tokio::test]
async fn half_sent_requests_of_one_address_do_not_keep_others_out() {
    let address = serve(ConnectionLimits { total: 60, per_address: Some(40), ..limits() }).await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(send(address, "").await);
    }
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(address).await.unwrap();
    let request = "GET /healthcheck HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    other.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(other).await.starts_with("HTTP/1.1 200 OK"));
    drop(crowd);
}

/// Streams of events stay open for minutes: half of the connections are left for other requests, and some streams for other
/// projects.
#[tokio::test]
async fn streams_of_events_do_not_keep_other_requests_out() {
    let request = |path: &str, accept: &str| {
        format!("GET /v1/{PROJECT}/{path} HTTP/1.1\r\nhost: h\r\naccept: {accept}\r\nconnection: close\r\n\r\n")
    };
    let stream = request("events", "text/event-stream");
    let open = async |address| {
        let mut stream = send(address, &stream).await;
        let mut status = [0; 15];
        stream.read_exact(&mut status).await.expect("a response");
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let few = ConnectionLimits { total: 6, per_address: None, streams_per_project: Some(9), ..limits() };
    let of_project = ConnectionLimits { per_address: None, streams: Some(9), ..limits() };
    for (limits, status, who) in [(few, "503", "requests wait"), (of_project, "429", "requests of this project wait")] {
        let address = serve(limits).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (stream, status) = open(address).await;
            assert_eq!(status, "HTTP/1.1 200 OK");
            streams.push(stream);
        }
        for _ in 0..20 {
            let refused = rest(send(address, &stream).await).await;
            assert!(
                refused.starts_with(&format!("HTTP/1.1 {status} ")) && refused.contains("retry-after: 10"),
                "{refused}"
            );
            assert!(refused.contains(&format!("Too many {who} for events")), "{refused}");
        }
        // A list does not wait, and its response does not say that it did.
        let listed = rest(send(address, &request("events?wait=50", "application/json")).await).await;
        assert!(listed.starts_with("HTTP/1.1 200 OK") && !listed.contains("preference-applied"), "{listed}");
        assert!(is_healthy(address).await);
        // When a stream ends, its place is free.
        streams.pop();
        let until = tokio::time::Instant::now() + PATIENCE;
        while open(address).await.1 != "HTTP/1.1 200 OK" {
            assert!(tokio::time::Instant::now() < until, "the place stays taken");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
