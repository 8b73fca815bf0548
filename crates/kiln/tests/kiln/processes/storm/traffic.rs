//! The calls of each cloud service.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use kiln_testcloud::{Journal, Service};
use tokio::sync::watch;

/// Counts the calls of each service.
#[derive(Default)]
pub(super) struct Traffic {
    services: BTreeMap<Service, Count>,
    seconds: f64,
    lost: usize,
}

#[derive(Default)]
struct Count {
    all: usize,
    most: usize,
}

impl Traffic {
    /// Samples every second until the faults end.
    pub(super) async fn watch(&mut self, journal: &Journal, mut calm: watch::Receiver<bool>) {
        let start = Instant::now();
        loop {
            let ended = tokio::time::timeout(Duration::from_secs(1), calm.wait_for(|calm| *calm)).await.is_ok();
            for service in Service::ALL {
                let all = journal.count(|call| call.service == service);
                let count = self.services.entry(service).or_default();
                count.most = count.most.max(all - count.all);
                count.all = all;
            }
            if ended {
                self.seconds = start.elapsed().as_secs_f64();
                self.lost = journal.count(|call| call.lost || call.status == 504);
                return;
            }
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (service, Count { all, most }) in &self.services {
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let rate = *all as f64 / self.seconds;
            write!(f, "{} {rate:.0} ({most}), ", service.prefix())?;
        }
        let all: usize = self.services.values().map(|count| count.all).sum();
        write!(f, "{all} calls in all, {} replies lost", self.lost)
    }
}
