//! Serves connections within limits, so that slow clients do not block others.

mod limited;
mod room;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ConnectionLimits;
use crate::server::limited::Limited;
use crate::server::room::{Place, Room};

/// Delay after a failed accept: usually the process has no file descriptors left, and a connection must end first.
const PAUSE: Duration = Duration::from_millis(100);

/// Why the server stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener failed.
    #[error("cannot accept connections: {0}")]
    Io(#[from] std::io::Error),
}

/// Serves a router until `shutdown`, then completes the running requests.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let room = Arc::new(Room::new(&limits));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &room) => accepted,
            // Remove ended connections from the set.
            Some(_) = connections.join_next() => continue,
        };
        if let Some((stream, place)) = accepted {
            connections.spawn(connection(router.clone(), stream, place, limits.clone(), stopping.clone()));
        }
    }
    drop(listener);
    stop.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// The next connection within the limits; `None` for one that was closed.
async fn accept(listener: &TcpListener, room: &Arc<Room>) -> Option<(TcpStream, Place)> {
    let seat = room.seat().await?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            let address: IpAddr = peer.ip().to_canonical();
            let place = room.place(seat, address)?;
            // Send small responses immediately.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "failed to set TCP_NODELAY");
            }
            Some((stream, place))
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
    stream: TcpStream,
    place: Place,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let io = TokioIo::new(Limited::new(stream, limits.send));
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        // A dropped sender also means stop.
        () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "connection closed");
    }
    drop(place);
}
