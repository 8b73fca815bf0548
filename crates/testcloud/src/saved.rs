//! The state of a cloud as JSON, to continue after a restart.
//!
//! Tokens, faults and the journal are not saved.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::builder::Options;
use crate::keystone::Target;
use crate::neutron::Pool;
use crate::state::CloudState;
use crate::table::{Fields as _, Row};

/// A saved cloud.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedCloud {
    /// The URL at which it was served.
    base: String,
    /// How often it was restored: each time, IDs come from another seed.
    restored: u64,
    tables: BTreeMap<String, Vec<Row>>,
    assignments: BTreeSet<(String, Target, String)>,
    servers_made: u64,
    pools: HashMap<String, Pool>,
    quotas: HashMap<String, BTreeMap<String, i64>>,
}

impl SavedCloud {
    /// Saves a cloud. Builds that are in progress are completed first.
    pub(crate) fn of(world: &mut CloudState) -> Self {
        world.settle_all();
        let tables = world.tables();
        SavedCloud {
            base: world.base.clone(),
            restored: world.restored,
            tables: tables
                .into_iter()
                .map(|(name, table)| (name.to_owned(), table.iter().cloned().collect()))
                .collect(),
            assignments: world.keystone.assignments.clone(),
            servers_made: world.nova.made,
            pools: world.neutron.pools.clone(),
            quotas: world.neutron.quotas.clone(),
        }
    }

    /// The cloud again, served at `base`.
    pub(crate) fn restore(mut self, options: Options, base: &str) -> CloudState {
        let mut world = CloudState::empty(options, base.to_owned(), self.restored + 1);
        for (name, table) in world.tables_mut() {
            for mut row in self.tables.remove(name).into_iter().flatten() {
                if let Some(path) = row.text("url").strip_prefix(&self.base) {
                    let url = format!("{base}{path}");
                    row.put("url", url);
                }
                table.insert(row);
            }
        }
        world.keystone.assignments = self.assignments;
        world.nova.made = self.servers_made;
        world.neutron.pools = self.pools;
        world.neutron.quotas = self.quotas;
        world
    }
}
