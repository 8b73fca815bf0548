//! A doorbell that loses and duplicates rings.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_store::{Doorbell, StackId};

use crate::gate::Gate;
use crate::simulation::{Label, Simulation};

/// The doorbell of one process.
pub(crate) struct SimBell {
    sim: Arc<Simulation>,
    label: Label,
    gate: Arc<Gate>,
    inner: Arc<dyn Doorbell>,
}

impl SimBell {
    /// A bell between a process and the database.
    pub(crate) fn new(sim: Arc<Simulation>, label: Label, gate: Arc<Gate>, inner: Arc<dyn Doorbell>) -> Self {
        Self { sim, label, gate, inner }
    }
}

#[async_trait]
impl Doorbell for SimBell {
    fn ring(&self, stack: StackId) {
        self.inner.ring(stack);
    }

    async fn wait(&self) -> Vec<StackId> {
        loop {
            let rung = self.inner.wait().await;
            self.gate.pass().await;
            if self.sim.switches().deaf {
                continue;
            }
            let Some(noise) = self.sim.noise() else { return rung };
            if rung.is_empty() {
                return rung;
            }
            let key = self.label.slot;
            let heard: Vec<StackId> = rung
                .iter()
                .flat_map(|stack| {
                    let lost = self.sim.dice.chance(("ring lost", key), noise.ring_lost);
                    let doubled = self.sim.dice.chance(("ring doubled", key), noise.ring_doubled);
                    std::iter::repeat_n(*stack, if lost { 0 } else { 1 + usize::from(doubled) })
                })
                .collect();
            if !heard.is_empty() {
                return heard;
            }
        }
    }
}
