//! The database: the store in memory, or in a share of the scenarios the SQL store on SQLite.
//!
//! SQLite works in threads of its own. The simulation waits for each of its statements while virtual time stands still, so a
//! run stays the same; a use case of the store takes no virtual time, as in memory.

use std::sync::Arc;

use kiln_store::{Error, MemoryStore, Options, Simulation, SqlStore, Store};
use kiln_value::Secret;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::clock::WallClock;
use crate::scenario::Scenario;

/// Which store the engines and users have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Database {
    /// The model.
    #[default]
    Memory,
    /// The SQL store on a database of SQLite in memory.
    Sqlite,
}

/// Gives a part of the scenarios the SQL store. They have their own random numbers, so that the other seeds keep their
/// scenarios.
pub(crate) fn choose(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5351_4c49_5445);
    if rng.random_bool(0.02) {
        scenario.database = Database::Sqlite;
    }
}

impl Database {
    /// An empty store with this clock.
    pub(crate) async fn open(self, clock: Arc<WallClock>) -> Result<Arc<dyn Store>, Error> {
        let clock = Arc::new(move || clock.now());
        match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new(clock))),
            Self::Sqlite => {
                let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
                let options =
                    Options { simulation: Some(Simulation::new(clock)), ..Options::new("sqlite::memory:", key) };
                let store = SqlStore::open(options).await?;
                store.migrate().await?;
                Ok(Arc::new(store))
            }
        }
    }
}
