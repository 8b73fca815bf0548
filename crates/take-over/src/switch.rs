//! Gives the stacks of a project to Kiln, and back to Heat.

use kiln_store::{Error, HeatFence};

use crate::import::{Import, Imported, Outcome};
use crate::trees::Selection;

/// A switch of projects.
pub struct Switch<'a> {
    /// The import that precedes it.
    pub import: Import<'a>,
    /// The fence in Heat's database.
    pub fence: &'a HeatFence,
}

/// What became of a switch.
#[derive(Debug)]
pub enum Switched {
    /// So many stacks, without nested ones, belong to Kiln now.
    Done(u64),
    /// Nothing was switched, because these could not be imported.
    Refused(Vec<Imported>),
}

impl Switch<'_> {
    /// Imports what has changed, lets Heat's tables refuse changes of the project, imports the rest, and gives the stacks to
    /// Kiln. If that fails, Heat's tables accept changes again. After a kill, a second switch goes on.
    ///
    /// # Errors
    /// Errors of the databases; [`Error::NameTaken`] if a stack of Kiln in the project has the name of one of Heat.
    pub async fn project(&self, project: &str) -> Result<Switched, Error> {
        // Without the fence first, so that it is up for a short time only.
        let refused = self.refused(project).await?;
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        self.fence.raise(project).await?;
        let switched = self.behind_fence(project).await;
        if !matches!(switched, Ok(Switched::Done(_))) {
            self.fence.lower(project).await?;
        }
        switched
    }

    async fn behind_fence(&self, project: &str) -> Result<Switched, Error> {
        let refused = self.refused(project).await?;
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        self.import.store.switch_project(project).await.map(Switched::Done)
    }

    async fn refused(&self, project: &str) -> Result<Vec<Imported>, Error> {
        let only = Selection { project: Some(project.to_owned()), stack: None };
        let mut refused = Vec::new();
        let keep = |imported: Imported, _, _| {
            if imported.outcome == Outcome::Refused {
                refused.push(imported);
            }
        };
        self.import.run(&only, keep).await?;
        Ok(refused)
    }

    /// Gives the stacks of a project back to Heat. Returns their number, without nested ones.
    ///
    /// # Errors
    /// [`Error::Changed`] names a stack that Kiln has changed since the switch.
    pub async fn back(&self, project: &str) -> Result<u64, Error> {
        let software = self.import.software_of(project).await?;
        let stacks = self.import.store.switch_project_back(project, &software).await?;
        self.fence.lower(project).await?;
        Ok(stacks)
    }
}
