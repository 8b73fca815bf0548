//! Faults of engines.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::sync::watch;

use crate::processes::cluster::{self, Limits};
use crate::processes::process::Process;

/// Kills, freezes and restarts engines, and counts these faults.
pub(super) struct Chaos {
    chance: StdRng,
    kills: usize,
    freezes: usize,
    restarts: usize,
    /// The longest clean stop of an engine.
    longest: Duration,
}

impl Chaos {
    pub(super) fn new(seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { chance, kills: 0, freezes: 0, restarts: 0, longest: Duration::ZERO }
    }

    /// Runs until the faults end; then all engines run.
    pub(super) async fn run(&mut self, engines: &mut [Process], limits: &Limits, mut calm: watch::Receiver<bool>) {
        loop {
            let pause = Duration::from_millis(self.chance.random_range(1000..4000));
            tokio::select! {
                _ = calm.wait_for(|calm| *calm) => return,
                () = tokio::time::sleep(pause) => {}
            }
            let number = self.chance.random_range(0..engines.len());
            let engine = &mut engines[number];
            assert!(!engine.is_gone(), "engine {number} ended by itself");
            let log = cluster::log_of(number);
            match self.chance.random_range(0..3) {
                0 => {
                    self.kills += 1;
                    engine.kill();
                    engine.start_again(&log);
                }
                1 => {
                    self.freezes += 1;
                    engine.freeze();
                    tokio::time::sleep(limits.lease.mul_f64(self.chance.random_range(1.2..2.5))).await;
                    engine.thaw();
                }
                _ => {
                    self.restarts += 1;
                    let from = Instant::now();
                    // As long as calls may be in progress, plus a margin.
                    let ended = engine.stop(limits.drain + Duration::from_secs(5)).await;
                    // It may not have been fully started.
                    assert!(ended.success() || ended.signal() == Some(15), "engine {number} ended with {ended}");
                    self.longest = self.longest.max(from.elapsed());
                    engine.start_again(&log);
                }
            }
        }
    }
}

impl fmt::Display for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, freezes, restarts, longest, .. } = self;
        write!(f, "{kills} killed, {freezes} frozen beyond the lease, {restarts} restarted (within {longest:.1?})")
    }
}
