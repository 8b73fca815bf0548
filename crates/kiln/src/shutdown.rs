//! Stop signals.

use tokio::sync::watch;

use crate::failure::INTERRUPTED;

/// Becomes true once a stop of the process is requested.
pub(crate) type Stop = watch::Receiver<bool>;

/// The sender and receiver of a stop.
pub(crate) fn channel() -> (watch::Sender<bool>, Stop) {
    watch::channel(false)
}

/// A stop that is triggered by SIGINT, SIGTERM or the sender. A second signal ends the process immediately.
pub(crate) fn on_signal() -> (watch::Sender<bool>, Stop) {
    let (sender, stop) = channel();
    let signalled = sender.clone();
    tokio::spawn(async move {
        signal().await;
        tracing::info!("stopping");
        signalled.send_replace(true);
        signal().await;
        std::process::exit(INTERRUPTED.into());
    });
    (sender, stop)
}

/// Waits until a stop is requested.
pub(crate) async fn stopped(mut stop: Stop) {
    // A dropped sender also means stop, because no other one exists.
    _ = stop.wait_for(|stop| *stop).await;
}

/// Waits for SIGINT or SIGTERM.
#[cfg(unix)]
pub(crate) async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        },
        Err(_) => _ = tokio::signal::ctrl_c().await,
    }
}

#[cfg(not(unix))]
pub(crate) async fn signal() {
    _ = tokio::signal::ctrl_c().await;
}
