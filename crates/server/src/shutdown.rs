//! Stop signals.

use std::task::Poll;

use tokio::sync::watch;

/// The exit code of an interrupted process: 128 + SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Becomes true once a stop of the process is requested.
pub type Stop = watch::Receiver<bool>;

/// The sender and receiver of a stop.
pub fn channel() -> (watch::Sender<bool>, Stop) {
    watch::channel(false)
}

/// A stop that is triggered by SIGINT, SIGTERM or the sender. A second signal ends the process immediately.
pub fn on_signal() -> (watch::Sender<bool>, Stop) {
    let (sender, stop) = channel();
    let signalled = sender.clone();
    // From here on, and not from the first poll of the task: whoever starts the process may stop it at once.
    let mut signals = Signals::listen();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping");
        signalled.send_replace(true);
        signals.next().await;
        std::process::exit(INTERRUPTED.into());
    });
    (sender, stop)
}

/// Waits until a stop is requested.
pub async fn stopped(mut stop: Stop) {
    // A dropped sender also means stop, because no other one exists.
    _ = stop.wait_for(|stop| *stop).await;
}

/// Does work that never ends, until a stop is requested.
pub async fn until(stop: Stop, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        () = stopped(stop) => {}
    }
}

/// Waits for SIGINT or SIGTERM.
pub async fn signal() {
    Signals::listen().next().await;
}

/// SIGINT and SIGTERM, from the time of [`Signals::listen`] on. On other systems Ctrl-C.
struct Signals {
    #[cfg(unix)]
    listeners: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        Self { listeners: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// Waits for the next one.
    #[cfg(unix)]
    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let is_here =
                |listener: &mut tokio::signal::unix::Signal| listener.poll_recv(context).is_ready().then_some(());
            // Every listener is polled, so that each wakes the task.
            let arrived = self.listeners.iter_mut().filter_map(is_here).count();
            if arrived > 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[cfg(not(unix))]
    fn listen() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        _ = tokio::signal::ctrl_c().await;
    }
}
