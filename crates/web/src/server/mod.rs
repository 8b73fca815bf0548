//! Serves connections within limits, so that slow clients do not block others.

pub(crate) mod connection_slots;
mod limited;
mod listener;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::ConnectionLimits;
use crate::address::Https;
use crate::server::connection_slots::{CURRENT, ConnectionSlots, Place};
use crate::server::limited::Limited;
use crate::server::listener::Accepted;
pub use crate::server::listener::{Listener, Listeners, Tls};

/// Delay after a failed accept: usually the process has no file descriptors left, and a connection must end first.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a stopping server waits for the first bytes of a client.
const FIRST_BYTES: Duration = Duration::from_secs(1);

/// Why the server stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener failed.
    #[error("cannot accept connections: {0}")]
    Io(#[from] std::io::Error),
}

/// Serves a router until `shutdown`, then completes the running requests.
pub async fn serve(
    listeners: impl Into<Listeners>,
    router: Router,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let mut listeners = listeners.into();
    let slots = Arc::new(ConnectionSlots::new(&limits));
    let secure = router.clone().layer(Extension(Https));
    let (stop, stopping) = watch::channel(false);
    let begin = |accepted: Accepted, place: Place| {
        let router = if accepted.is_https() { &secure } else { &router };
        CURRENT.scope(place.connection(), connection(router.clone(), accepted, place, limits.clone(), stopping.clone()))
    };
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&mut listeners, &slots) => accepted,
            // Remove ended connections from the set.
            Some(_) = connections.join_next() => continue,
        };
        if let Some((accepted, place)) = accepted {
            connections.spawn(begin(accepted, place));
        }
    }
    // Connections that the operating system has accepted already would be reset.
    for accepted in listeners.close() {
        if let Some(place) = slots.place_now(accepted.address) {
            connections.spawn(begin(accepted, place));
        }
    }
    stop.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// The next connection within the limits; `None` for one that was closed.
async fn accept(listeners: &mut Listeners, slots: &Arc<ConnectionSlots>) -> Option<(Accepted, Place)> {
    let seat = slots.seat().await?;
    match listeners.accept().await {
        Ok(accepted) => {
            let place = slots.place(seat, accepted.address)?;
            Some((accepted, place))
        }
        Err(error) => {
            tracing::warn!(%error, "failed to accept a connection");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Serves the requests of a connection.
async fn connection(
    router: Router,
    accepted: Accepted,
    place: Place,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let stream = match tokio::time::timeout(limits.header, accepted.opened()).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "connection closed: no TLS"),
        Err(_) => return tracing::debug!("connection closed: no TLS within header_timeout"),
    };
    let begun = Arc::new(Notify::new());
    let io = TokioIo::new(Limited::new(stream, limits.send, Arc::clone(&begun)));
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service).with_upgrades());
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        // A dropped sender also means stop.
        () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
            // A client that has just connected is about to send its request; hyper would close the connection.
            let has_begun = tokio::time::timeout(FIRST_BYTES, begun.notified());
            tokio::select! {
                biased;
                outcome = &mut connection => outcome,
                _ = has_begun => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "connection closed");
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn clients_that_have_connected_are_answered_when_the_server_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "here" }));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(listener, router, ConnectionLimits::default(), async { drop(stopped.await) }));
        let ask = async |stream: &mut TcpStream| {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"), "{answer:?}");
        };
        let mut early = TcpStream::connect(address).await.unwrap();
        let mut silent = TcpStream::connect(address).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        // The server has not seen this one yet: it runs on the same thread.
        let (late, ()) = tokio::join!(TcpStream::connect(address), async { stop.send(()).unwrap() });
        let mut late = late.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(TcpStream::connect(address).await.is_err());
        ask(&mut early).await;
        ask(&mut late).await;
        serving.await.unwrap().unwrap();
        assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
    }
}
