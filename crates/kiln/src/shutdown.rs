//! When to stop.

use tokio::sync::watch;

/// Becomes true once, when the process is asked to end.
pub(crate) type Stop = watch::Receiver<bool>;

/// The sender and receiver of a stop.
pub(crate) fn channel() -> (watch::Sender<bool>, Stop) {
    watch::channel(false)
}

/// A stop that comes with SIGINT or SIGTERM. A second signal ends the process at once.
pub(crate) fn on_signal() -> Stop {
    let (sender, stop) = channel();
    tokio::spawn(async move {
        signal().await;
        tracing::info!("stopping");
        sender.send_replace(true);
        signal().await;
        std::process::exit(130);
    });
    stop
}

/// Waits until it is time to stop.
pub(crate) async fn stopped(mut stop: Stop) {
    // A sender that is gone cannot ask any more, and nobody else can: stop then too.
    _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(unix)]
async fn signal() {
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
async fn signal() {
    _ = tokio::signal::ctrl_c().await;
}
