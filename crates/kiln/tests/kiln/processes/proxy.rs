//! A proxy in front of a server that goes silent: it accepts connections and forwards nothing, and keeps both sides open.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Ends with its value.
pub(crate) struct Proxy {
    url: String,
    silent: watch::Sender<bool>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// A proxy in front of the server of a URL.
    pub(crate) async fn start(url: &str) -> Self {
        let (scheme, rest) = url.split_once('@').expect("a URL with a user");
        let (server, database) = rest.split_once('/').expect("a URL with a database");
        let server = server.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("{scheme}@{}/{database}", listener.local_addr().expect("an address"));
        let (silent, seen) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let (server, mut seen) = (server.clone(), seen.clone());
                connections.spawn(async move {
                    // A connection that is open when the silence begins, or comes in it, stays silent.
                    if *seen.borrow_and_update() {
                        std::future::pending::<()>().await;
                    }
                    let Ok(mut server) = TcpStream::connect(&server).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = seen.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { url, silent, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn go_silent(&self) {
        self.silent.send_replace(true);
    }

    /// Forwards what comes on new connections.
    pub(crate) fn answer_again(&self) {
        self.silent.send_replace(false);
    }
}
