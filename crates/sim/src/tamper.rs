//! Defects of stored data.

use kiln_resource::OperationState;
use kiln_store::Batch;

use crate::sabotage::Sabotage;
use crate::simulation::Simulation;

/// The batch of a defective engine.
pub(crate) fn spoil(sim: &Simulation, mut batch: Batch) -> Batch {
    match sim.sabotage {
        Some(Sabotage::ForgetIntent) => {
            batch.save.change(|row| {
                if row.physical_id.is_none() {
                    row.operation = OperationState::Idle;
                }
            });
        }
        Some(Sabotage::DropRequires) => batch.save.change(|row| row.requires.clear()),
        Some(Sabotage::ForgetId) => batch.save.change(|row| row.physical_id = None),
        Some(Sabotage::KeepRow) => batch.remove.clear(),
        Some(Sabotage::HandleTwice) => batch.handled.clear(),
        Some(Sabotage::LoseMessage) => batch.handled.extend(sim.ledger.take_lost()),
        Some(Sabotage::LosePluginRun) => batch.plugin_runs.clear(),
        Some(Sabotage::LoseSnapshotEnd) => batch.snapshots.clear(),
        Some(Sabotage::LoseEnd) => (batch.settle, batch.rollback) = (None, None),
        _ => {}
    }
    batch
}
