//! Whether a request is carried out now: the budgets of its client, and maintenance. Both APIs share them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kiln_stack::Backends;

use crate::budget::{Budgets, Rate};
use crate::maintenance::Maintenance;

/// Decides whether requests are carried out. Clones share the budgets.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Maintenance.
    pub maintenance: Maintenance,
    budgets: Arc<(Budgets<IpAddr>, Budgets<String>)>,
}

/// The budget of a client is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Too many requests: try again in {} s.", self.seconds())]
pub struct TooMany(Duration);

impl TooMany {
    /// The time until there is room again, in whole seconds.
    pub fn seconds(self) -> u64 {
        self.0.as_secs() + 1
    }
}

impl Admission {
    /// With budgets for addresses and for projects.
    pub fn new(per_address: Option<Rate>, per_project: Option<Rate>) -> Self {
        let budgets = Arc::new((Budgets::new(per_address), Budgets::new(per_project)));
        Self { maintenance: Maintenance::default(), budgets }
    }

    /// Takes a request from the budget of an address, before the caller is known.
    ///
    /// # Errors
    /// The budget is empty.
    pub fn of_address(&self, backends: &Backends, address: Option<IpAddr>) -> Result<(), TooMany> {
        let Some(address) = address else { return Ok(()) };
        self.budgets.0.take(&address, backends.clock.monotonic()).map_err(TooMany)
    }

    /// Takes a request from the budget of a project. The users of a stack have a project of their own.
    ///
    /// # Errors
    /// The budget is empty.
    pub fn of_project(&self, backends: &Backends, project: &str) -> Result<(), TooMany> {
        self.budgets.1.take(&project.to_owned(), backends.clock.monotonic()).map_err(TooMany)
    }
}
