//! Configuration of a cloud.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::cloud::Testcloud;
use crate::saved::SavedCloud;

/// Limits of a project. `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the quota of the objects it names")]
pub struct Quota {
    pub instances: Option<u64>,
    pub cores: Option<u64>,
    /// MiB.
    pub ram: Option<u64>,
    pub key_pairs: Option<u64>,
    pub server_groups: Option<u64>,
    pub networks: Option<u64>,
    pub subnets: Option<u64>,
    pub ports: Option<u64>,
    pub routers: Option<u64>,
    pub floating_ips: Option<u64>,
    pub security_groups: Option<u64>,
    pub security_group_rules: Option<u64>,
    pub volumes: Option<u64>,
    pub snapshots: Option<u64>,
    /// GiB of volumes and snapshots in total.
    pub gigabytes: Option<u64>,
}

/// The settings of a cloud.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) address: SocketAddr,
    pub(crate) latency: Duration,
    pub(crate) build_time: Duration,
    pub(crate) token_life: Duration,
    pub(crate) seed: u64,
    pub(crate) quota: Quota,
    pub(crate) epoch: Option<Timestamp>,
    pub(crate) compute_minor: u32,
}

/// A saved state cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("not a state of a simulated cloud: {0}")]
pub struct InvalidState(#[from] serde_json::Error);

/// Sets up and starts a [`Testcloud`].
#[derive(Clone, Debug)]
pub struct Builder {
    options: Options,
    saved: Option<SavedCloud>,
}

impl Default for Builder {
    fn default() -> Self {
        let options = Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            latency: Duration::ZERO,
            build_time: Duration::from_millis(50),
            token_life: Duration::from_hours(4),
            seed: 0,
            quota: Quota::default(),
            epoch: None,
            compute_minor: crate::nova::NEWEST,
        };
        Builder { options, saved: None }
    }
}

impl Builder {
    /// The address to listen on instead of a free port of the loopback interface.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.options.address = address;
        self
    }

    /// Minimum response time; none by default.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.options.latency = latency;
        self
    }

    /// Duration of builds of servers and volumes, image imports and deletes; 50 ms by default.
    #[must_use]
    pub fn build_time(mut self, build_time: Duration) -> Self {
        self.options.build_time = build_time;
        self
    }

    /// How long a token is valid; 4 h by default.
    #[must_use]
    pub fn token_life(mut self, token_life: Duration) -> Self {
        self.options.token_life = token_life;
        self
    }

    /// The seed for IDs, addresses and random faults.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// The limits of every project; unlimited by default.
    #[must_use]
    pub fn quota(mut self, quota: Quota) -> Self {
        self.options.quota = quota;
        self
    }

    /// The start time of the cloud's clock; by default the system time. The clock then follows tokio's time.
    #[must_use]
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.options.epoch = Some(epoch);
        self
    }

    /// The latest microversion of Nova, 2.x, to simulate an older one. From 2.92, Nova does not generate keys.
    #[must_use]
    pub fn compute_minor(mut self, minor: u32) -> Self {
        self.options.compute_minor = minor.clamp(1, crate::nova::NEWEST);
        self
    }

    /// Continues with a state from [`Testcloud::save`] instead of the initial content.
    ///
    /// # Errors
    /// The text is not a saved state.
    pub fn state(mut self, saved: &str) -> Result<Self, InvalidState> {
        self.saved = Some(serde_json::from_str(saved)?);
        Ok(self)
    }

    /// A cloud without a port, which is accessed only through [`Testcloud::transport`]. On a current-thread runtime
    /// with paused time, and with an [epoch](Self::epoch), its behavior is determined by the seed.
    pub fn in_process(self) -> Testcloud {
        Testcloud::unserved(self.options, self.saved)
    }

    /// Binds the port and serves until [`Testcloud::stop`] or until the handle is dropped.
    pub async fn start(self) -> io::Result<Testcloud> {
        let listener = TcpListener::bind(self.options.address).await?;
        Testcloud::serve(self.options, self.saved, listener)
    }
}
