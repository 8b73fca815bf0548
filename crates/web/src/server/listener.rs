//! Where a server accepts connections: TCP, TCP with TLS, and sockets of the file system.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The configuration of TLS for the next connection. It may change while the server runs.
pub type Tls = watch::Receiver<Arc<ServerConfig>>;

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    tls: Option<Tls>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Expects TLS on this socket.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }
}

impl From<TcpListener> for Listener {
    fn from(socket: TcpListener) -> Self {
        Self { socket: Socket::Tcp(socket), tls: None }
    }
}

impl From<UnixListener> for Listener {
    fn from(socket: UnixListener) -> Self {
        Self { socket: Socket::Unix(socket), tls: None }
    }
}

/// The address: `127.0.0.1:8004`, or the path of a socket.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = match &self.socket {
            Socket::Tcp(socket) => socket.local_addr().map(|address| address.to_string()),
            Socket::Unix(socket) => socket
                .local_addr()
                .map(|address| address.as_pathname().map(|path| path.display().to_string()).unwrap_or_default()),
        };
        f.write_str(&address.unwrap_or_else(|error| error.to_string()))
    }
}

/// All sockets of a server.
#[derive(Debug, Default)]
pub struct Listeners {
    all: Vec<Listener>,
    /// Where the next look begins, so that a busy socket does not block the others.
    next: usize,
}

impl From<Vec<Listener>> for Listeners {
    fn from(all: Vec<Listener>) -> Self {
        Self { all, next: 0 }
    }
}

impl From<TcpListener> for Listeners {
    fn from(socket: TcpListener) -> Self {
        vec![socket.into()].into()
    }
}

impl fmt::Display for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, listener) in self.all.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{listener}")?;
        }
        Ok(())
    }
}

impl Listeners {
    /// The next connection of any socket; never without a socket.
    pub(super) async fn accept(&mut self) -> io::Result<Accepted> {
        let (all, next) = (&self.all, &mut self.next);
        poll_fn(|cx| {
            for _ in 0..all.len() {
                let listener = &all[*next % all.len()];
                *next = (*next + 1) % all.len();
                let accepted = match &listener.socket {
                    Socket::Tcp(socket) => socket.poll_accept(cx).map_ok(|(stream, peer)| Accepted {
                        address: Some(peer.ip().to_canonical()),
                        stream: Stream::Tcp(stream),
                        tls: listener.tls.clone(),
                    }),
                    Socket::Unix(socket) => socket.poll_accept(cx).map_ok(|(stream, _)| Accepted {
                        address: None,
                        stream: Stream::Unix(stream),
                        tls: None,
                    }),
                };
                if accepted.is_ready() {
                    return accepted;
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// A connection.
pub(super) struct Accepted {
    /// The address of the client; none at a socket of the file system.
    pub(super) address: Option<IpAddr>,
    stream: Stream,
    tls: Option<Tls>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection to read from and write to.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytes for S {}

impl Accepted {
    /// Whether it has TLS.
    pub(super) fn is_https(&self) -> bool {
        self.tls.is_some()
    }

    /// The stream, after the handshake of TLS.
    pub(super) async fn opened(self) -> io::Result<Box<dyn Bytes>> {
        let stream = match self.stream {
            Stream::Unix(stream) => return Ok(Box::new(stream)),
            Stream::Tcp(stream) => stream,
        };
        // Send small responses immediately.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "failed to set TCP_NODELAY");
        }
        let Some(tls) = self.tls else { return Ok(Box::new(stream)) };
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        Ok(Box::new(acceptor.accept(stream).await?))
    }
}
