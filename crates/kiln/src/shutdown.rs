//! When to stop.

use tokio::sync::watch;

use crate::failure::INTERRUPTED;

/// Becomes true once, when the process is asked to end.
pub(crate) type Stop = watch::Receiver<bool>;

/// The sender and receiver of a stop.
pub(crate) fn channel() -> (watch::Sender<bool>, Stop) {
    watch::channel(false)
}

/// A stop that comes with SIGINT or SIGTERM, or by the sender. A second signal ends the process at once.
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

/// Waits until it is time to stop.
pub(crate) async fn stopped(mut stop: Stop) {
    // A sender that is gone cannot ask any more, and nobody else can: stop then too.
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
