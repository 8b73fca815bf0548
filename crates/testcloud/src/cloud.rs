//! The handle of a running cloud.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_cloud::Transport;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::builder::{Builder, Options};
use crate::fault::Faults;
use crate::in_process::InProcess;
use crate::journal::Journal;
use crate::keystone::new_service;
use crate::saved::SavedCloud;
use crate::server;
use crate::snapshot::Snapshot;
use crate::state::CloudState;
use crate::wire::Cuttable;

/// A running simulated OpenStack. Dropping it stops it.
#[derive(Debug)]
pub struct Testcloud {
    base: String,
    shared: Arc<Shared>,
    served: Option<Served>,
}

/// The port of a cloud.
#[derive(Debug)]
struct Served {
    address: SocketAddr,
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Shared state of the handle and the handlers.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<CloudState>,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) latency: std::time::Duration,
}

impl Shared {
    fn new(options: Options, saved: Option<SavedCloud>, base: &str) -> Self {
        Shared {
            faults: Faults::new(options.seed),
            journal: Journal::default(),
            latency: options.latency,
            world: Mutex::new(match saved {
                Some(saved) => saved.restore(options, base),
                None => CloudState::new(options, base.to_owned()),
            }),
        }
    }

    /// The state of the cloud after all due jobs.
    pub(crate) fn world(&self) -> MutexGuard<'_, CloudState> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.settle();
        world
    }
}

/// A predefined account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user, in domain `Default`.
    pub user: &'static str,
    /// The password.
    pub password: &'static str,
    /// Its project, in domain `Default`.
    pub project: &'static str,
}

/// The predefined accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// An ordinary user (roles member, reader, heat_stack_owner, creator and load-balancer_member).
    pub demo: Account,
    /// Another ordinary user with a different project.
    pub alt_demo: Account,
    /// The administrator.
    pub admin: Account,
    /// The service user of the orchestration service: validates tokens, and is the trustee of trusts.
    pub heat: Account,
}

impl Testcloud {
    /// Configures a cloud.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn serve(options: Options, saved: Option<SavedCloud>, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let base = format!("http://{address}");
        let shared = Arc::new(Shared::new(options, saved, &base));
        let (end, mut ended) = watch::channel(false);
        let router = server::router(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            let serving =
                axum::serve(Cuttable(listener), router.into_make_service_with_connect_info::<crate::wire::Wire>());
            tokio::select! {
                result = serving => if let Err(error) = result { tracing::error!(%error, "testcloud ended") },
                _ = ended.wait_for(|ended| *ended) => {}
            }
        });
        Ok(Testcloud { base, shared, served: Some(Served { address, end, task }) })
    }

    pub(crate) fn unserved(options: Options, saved: Option<SavedCloud>) -> Self {
        let base = "http://testcloud".to_owned();
        Testcloud { shared: Arc::new(Shared::new(options, saved, &base)), base, served: None }
    }

    /// The port it listens on; an unspecified one if it has none.
    pub fn address(&self) -> SocketAddr {
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.served.as_ref().map_or(unspecified, |served| served.address)
    }

    /// A transport to the cloud within this process: no connection, no thread, and no time except tokio's.
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(InProcess::new(Arc::clone(&self.shared)))
    }

    /// The URL of Keystone for `OS_AUTH_URL`.
    pub fn auth_url(&self) -> String {
        format!("{}/identity/v3", self.base)
    }

    /// The region of every endpoint.
    pub fn region(&self) -> &'static str {
        "RegionOne"
    }

    /// The predefined accounts.
    pub fn users(&self) -> Users {
        let account = |user, project| Account { user, password: "password", project };
        Users {
            demo: account("demo", "demo"),
            alt_demo: account("alt_demo", "alt_demo"),
            admin: account("admin", "admin"),
            heat: account("heat", "service"),
        }
    }

    /// Adds an external service to the catalog: its type and its URL, in which `%(project_id)s` stands for the project
    /// of the token.
    pub fn add_service(&self, kind: &str, url: &str) {
        new_service(&mut self.shared.world(), kind, kind, url);
    }

    /// The faults.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The requests so far.
    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// The current objects.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.shared.world())
    }

    /// The state as a text, from which [`Builder::state`] continues. Builds that are in progress are completed first.
    /// Tokens, faults and the journal are not part of it.
    pub fn save(&self) -> String {
        // Maps with string keys can always be serialized.
        serde_json::to_string(&SavedCloud::of(&mut self.shared.world())).unwrap_or_default()
    }

    /// A copy without a port that changes independently. Builds that are in progress are completed first; faults and the
    /// journal are not part of it.
    #[must_use]
    pub fn fork(&self) -> Self {
        let world = self.shared.world().fork();
        let shared = Shared {
            faults: Faults::new(world.options.seed),
            journal: Journal::default(),
            latency: world.options.latency,
            world: Mutex::new(world),
        };
        Testcloud { base: self.base.clone(), shared: Arc::new(shared), served: None }
    }

    /// Stops the cloud and releases the port.
    pub async fn stop(mut self) {
        let Some(served) = &mut self.served else { return };
        served.end.send_replace(true);
        if let Err(error) = (&mut served.task).await {
            tracing::debug!(%error, "testcloud task");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
