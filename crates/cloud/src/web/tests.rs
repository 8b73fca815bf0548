use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that gives each path its response.
async fn server(respond: fn(&str) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let _ = stream.write_all(respond(path).as_bytes()).await;
        }
    });
    address
}

fn ok(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len())
}

fn reader(networks: &[&str]) -> WebReader {
    let networks: Vec<String> = networks.iter().map(|network| (*network).to_owned()).collect();
    WebReader::new(&networks, Duration::from_secs(5)).unwrap()
}

#[tokio::test]
async fn special_addresses_need_permission() {
    let at = server(|_| ok("text")).await;
    let port = at.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
        let refused = reader(&[]).read(&format!("http://{host}:{port}/t"), 100).await;
        assert!(matches!(refused, Err(WebError::Address(_))), "{host}: {refused:?}");
    }
    let read = reader(&["127.0.0.0/8"]).read(&format!("http://127.0.0.1:{port}/t"), 100).await;
    assert_eq!(read.as_deref(), Ok("text"));
    let refused = reader(&["127.0.0.0/8"]).read("file:///etc/passwd", 100).await;
    assert_eq!(refused, Err(WebError::Scheme("file".to_owned())));
}

/// A name is resolved once: the second answer of a malicious name server is never asked for.
#[tokio::test]
async fn addresses_are_pinned() {
    let at = server(|_| ok("pinned")).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let mut reader = reader(&["127.0.0.1/32"]);
    let count = Arc::clone(&asked);
    reader.resolve = Arc::new(move |_, port| {
        // The first address is not allowed and must not be used instead.
        let first = if count.fetch_add(1, Ordering::SeqCst) == 0 { "127.0.0.1" } else { "127.0.0.2" };
        let found = ["127.0.0.2", first].map(|ip| SocketAddr::new(ip.parse().unwrap(), port));
        async move { Ok(found.to_vec()) }.boxed()
    });
    let url = format!("http://rebound.invalid:{}/t", at.port());
    assert_eq!(reader.read(&url, 100).await.as_deref(), Ok("pinned"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(matches!(reader.read(&url, 100).await, Err(WebError::Address(_))));
}

#[tokio::test]
async fn redirects_are_checked_and_counted() {
    let at = server(|path| {
        let to = match path {
            "/inside" => "http://169.254.169.254/latest/meta-data",
            "/file" => "file:///etc/passwd",
            "/loop" => "/loop",
            "/once" => "/text",
            _ => return ok("moved"),
        };
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    })
    .await;
    let reader = reader(&["127.0.0.0/8"]);
    let read = async |path: &str| reader.read(&format!("http://{at}{path}"), 100).await;
    assert!(matches!(read("/inside").await, Err(WebError::Address(_))));
    assert!(matches!(read("/file").await, Err(WebError::Scheme(_))));
    assert!(matches!(read("/loop").await, Err(WebError::Failed(_))));
    assert_eq!(read("/once").await.as_deref(), Ok("moved"));
}

#[tokio::test]
async fn size_and_time_are_limited() {
    let at = server(|path| match path {
        "/endless" => format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(101)),
        "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        _ => ok(&"x".repeat(100)),
    })
    .await;
    let mut reader = reader(&["127.0.0.0/8"]);
    assert_eq!(reader.read(&format!("http://{at}/exact"), 100).await.map(|text| text.len()), Ok(100));
    assert_eq!(reader.read(&format!("http://{at}/endless"), 100).await, Err(WebError::Size(100)));
    assert!(matches!(reader.read(&format!("http://{at}/missing"), 100).await, Err(WebError::Failed(_))));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    reader.timeout = Duration::from_millis(50);
    let read = reader.read(&format!("http://{}/", silent.local_addr().unwrap()), 100).await;
    assert_eq!(read, Err(WebError::Failed("timeout".to_owned())));
}
