//! Serving.

use std::future::Future;

use tokio::net::TcpListener;

use crate::Api;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener failed.
    #[error("cannot accept connections: {0}")]
    Io(#[from] std::io::Error),
}

impl Api {
    /// Serves until `shutdown` comes, then ends when the requests under way are answered.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            // Small answers must not wait for more to come.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY is not set");
            }
        });
        Ok(axum::serve(listener, self.router()).with_graceful_shutdown(shutdown).await?)
    }
}
