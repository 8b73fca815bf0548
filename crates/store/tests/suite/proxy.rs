//! A proxy between the store and its server, which cuts connections or goes silent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kiln_store::{Options, SqlStore};
use rand::Rng as _;
use rand::rngs::StdRng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bed::{Bed, options};

/// When the proxy cuts connections.
pub(crate) enum Cut {
    Never,
    /// This number of times at a COMMIT, before or after the server has received it.
    AtCommit {
        after: bool,
        left: usize,
    },
    /// Once per number of client packets, before or after the server has received it.
    Often {
        rng: Box<StdRng>,
        packets: u32,
    },
    /// When a client has sent more than this number of bytes without an answer: a limit that the client does not know.
    Above(usize),
}

enum Fate {
    Forward,
    CutBefore,
    CutAfter,
}

impl Cut {
    /// The fate of a packet of a client, which has sent this number of bytes since the last answer.
    fn fate(&mut self, packet: &[u8], unanswered: usize) -> Fate {
        let after = match self {
            Self::AtCommit { after, left: left @ 1.. } if packet.windows(6).any(|word| word == b"COMMIT") => {
                *left -= 1;
                Some(*after)
            }
            Self::Often { rng, packets } => rng.random_ratio(1, *packets).then(|| rng.random()),
            Self::Above(limit) => (unanswered > *limit).then_some(false),
            Self::Never | Self::AtCommit { .. } => None,
        };
        match after {
            None => Fate::Forward,
            Some(false) => Fate::CutBefore,
            Some(true) => Fate::CutAfter,
        }
    }
}

/// Which connections a proxy forwards nothing of. It keeps both sides open.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stalled {
    None,
    /// Those that are open.
    Open,
    /// Those, and new ones.
    All,
}

/// Ends with its value.
pub(crate) struct Proxy {
    url: String,
    cut: Arc<Mutex<Cut>>,
    cuts: Arc<AtomicUsize>,
    stalled: watch::Sender<Stalled>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(bed: &Bed) -> Self {
        let (scheme, rest) = bed.url().split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let server = server.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}@{}/{database}", listener.local_addr().unwrap());
        let (cut, cuts) = (Arc::new(Mutex::new(Cut::Never)), Arc::default());
        let (stalled, seen) = watch::channel(Stalled::None);
        let mut tasks = JoinSet::new();
        let shared = (Arc::clone(&cut), Arc::clone(&cuts));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (server, mut seen, (cut, cuts)) = (server.clone(), seen.clone(), shared.clone());
                connections.spawn(async move {
                    // A connection that comes while open ones are stalled is forwarded.
                    seen.wait_for(|stalled| *stalled != Stalled::All).await.unwrap();
                    seen.mark_unchanged();
                    let server = TcpStream::connect(&server).await.unwrap();
                    for side in [&client, &server] {
                        side.set_nodelay(true).unwrap();
                    }
                    tokio::select! {
                        () = pass(client, server, &cut, &cuts) => {}
                        _ = seen.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { url, cut, cuts, stalled, _tasks: tasks }
    }

    pub(crate) fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap() = cut;
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }

    pub(crate) fn stall(&self, stalled: Stalled) {
        self.stalled.send(stalled).unwrap();
    }

    pub(crate) async fn store(&self) -> Arc<SqlStore> {
        let options = Options { max_connections: 5, ..options(&self.url) };
        Arc::new(SqlStore::open(options).await.unwrap())
    }
}

/// Forwards data in both directions until one side ends or the connection is cut.
async fn pass(client: TcpStream, server: TcpStream, cut: &Mutex<Cut>, cuts: &AtomicUsize) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let unanswered = AtomicUsize::new(0);
    let up = forward(from_client, to_server, |packet| {
        let sent = unanswered.fetch_add(packet.len(), Ordering::Relaxed) + packet.len();
        let fate = cut.lock().unwrap().fate(packet, sent);
        cuts.fetch_add(usize::from(!matches!(fate, Fate::Forward)), Ordering::Relaxed);
        fate
    });
    let down = forward(from_server, to_client, |_| {
        unanswered.store(0, Ordering::Relaxed);
        Fate::Forward
    });
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut fate: impl FnMut(&[u8]) -> Fate) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let packet = &buffer[..length];
        let fate = fate(packet);
        if !matches!(fate, Fate::CutBefore) && to.write_all(packet).await.is_err() || !matches!(fate, Fate::Forward) {
            return;
        }
    }
}
