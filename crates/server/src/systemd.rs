//! Tells systemd that the service is ready, alive and stopping (sd_notify(3)). Without systemd, nothing happens.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::shutdown::{self, Stop};

/// Tells that the service is ready, then that it is alive as often as systemd asks, and that it stops. A process whose
/// tasks do not run any more tells nothing, so that systemd restarts it.
pub async fn follow(stop: Stop) {
    let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let Some(socket) = variable("NOTIFY_SOCKET") else { return };
    tell(&socket, "READY=1");
    // A watchdog of another process is not ours.
    let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
    let timeout = variable("WATCHDOG_USEC").and_then(|text| text.parse().ok()).filter(|_| is_ours);
    let alive = async {
        match timeout.map(Duration::from_micros) {
            Some(timeout) => loop {
                tell(&socket, "WATCHDOG=1");
                tokio::time::sleep(timeout / 3).await;
            },
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = alive => {}
        () = shutdown::stopped(stop) => tell(&socket, "STOPPING=1"),
    }
}

fn tell(socket: &str, state: &str) {
    let sent = UnixDatagram::unbound().and_then(|sender| {
        let address = match socket.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(socket)?,
        };
        sender.send_to_addr(state.as_bytes(), &address)
    });
    if let Err(error) = sent {
        tracing::warn!(%error, socket, "cannot tell systemd: {state}");
    }
}
