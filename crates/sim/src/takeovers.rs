//! Take-overs: the stacks of a killed engine are taken over soon, whatever the clocks say.

use std::collections::BTreeMap;

use kiln_store::{Lease, StackId};

use crate::cluster::Cluster;
use crate::rule::Rule;
use crate::simulation::{Label, Simulation};

/// How long it may take while an engine is undisturbed: a lease, two reports, and the way to the database.
const BOUND_MS: u64 = 30_000;
/// The same if the database fails now and then.
const BOUND_IN_NOISE_MS: u64 = 90_000;

/// Who holds which stacks.
#[derive(Debug, Default)]
pub(crate) struct TakeOvers {
    held: BTreeMap<StackId, (Label, Lease, u64)>,
    killed: BTreeMap<Label, u64>,
    stopped: u64,
}

impl TakeOvers {
    /// A stack was claimed.
    pub(crate) fn claimed(&mut self, lease: Lease, label: Label, now: u64) {
        self.held.insert(lease.stack, (label, lease, now));
    }

    /// Leases were released.
    pub(crate) fn released(&mut self, leases: &[Lease]) {
        for lease in leases {
            if self.held.get(&lease.stack).is_some_and(|(_, held, _)| held.epoch == lease.epoch) {
                self.held.remove(&lease.stack);
            }
        }
    }

    /// An engine was killed.
    pub(crate) fn killed(&mut self, label: Label, now: u64) {
        self.killed.insert(label, now);
    }

    /// An engine was stopped.
    pub(crate) fn stopped(&mut self) {
        self.stopped += 1;
    }

    /// The number of processes that were killed or stopped.
    pub(crate) fn count_ended(&self) -> u64 {
        self.killed.len() as u64 + self.stopped
    }

    /// The stacks that a killed engine holds, and since when: its last claim may arrive after its end.
    pub(crate) fn left(&self) -> impl Iterator<Item = (StackId, Label, u64)> {
        self.held.iter().filter_map(|(stack, (label, _, claimed))| {
            let killed = self.killed.get(label)?;
            Some((*stack, *label, *killed.max(claimed)))
        })
    }
}

/// Accuses if a stack in progress still belongs to an engine that was killed.
pub(crate) fn check(sim: &Simulation, cluster: &Cluster) {
    let (noise, crashes) = (&sim.scenario.noise, &sim.scenario.crashes);
    let Some(fit_since) = cluster.fit_since() else { return };
    if crashes.panics > 0 || crashes.aborts > 0 || crashes.refused_row.is_some() {
        return;
    }
    let fails = noise.store_refused > 0 || noise.store_lost_reply > 0;
    let bound = if fails { BOUND_IN_NOISE_MS } else { BOUND_MS };
    let now = sim.time.ms();
    for (stack, label, since) in sim.ledger.left_behind_by_killed() {
        if now > since.max(fit_since) + bound {
            sim.accuse(Rule::SlowTakeOver, format!("{} belongs to {label} since {since} ms", stack.name));
        }
    }
}
