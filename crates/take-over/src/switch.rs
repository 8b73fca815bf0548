//! Gives the stacks of a project to Kiln, and back to Heat.

use jiff::Timestamp;
use kiln_store::{Error, HeatFence, TakeOver};

use crate::Finding;
use crate::export::export_software;
use crate::heat::{delete_tree, write_software, write_tree};
use crate::import::{Import, Imported, Outcome};
use crate::trees::Selection;
use crate::way_back::{Prepared, WayBack};

/// A switch of projects.
pub struct Switch<'a> {
    /// The import that precedes it.
    pub import: Import<'a>,
    /// The fence in Heat's database.
    pub fence: &'a HeatFence,
    /// Whether Heat encrypts parameters and properties.
    pub encrypts: bool,
}

/// What became of a way back.
#[derive(Debug)]
pub enum Returned {
    /// So many stacks, without nested ones, belong to Heat now.
    Done(usize),
    /// Nothing has changed, because Heat cannot store these, with the reasons.
    Refused(Vec<(TakeOver, Vec<Finding>)>),
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

    /// Gives all stacks of a project to Heat, also those that Kiln has made, and writes what Kiln has changed into Heat's tables:
    /// each stack with its nested stacks in one transaction. After a kill, a second call goes on, and [`Switch::project`] gives
    /// the stacks to Kiln again.
    ///
    /// # Errors
    /// [`Error::Changed`] names a stack that is being worked on.
    pub async fn back(&self, project: &str) -> Result<Returned, Error> {
        let only = Selection { project: Some(project.to_owned()), stack: None };
        let import = &self.import;
        // Before anything changes.
        let way_back = WayBack::new(import, self.encrypts, &only).await?;
        let mut refused = Vec::new();
        for record in way_back.candidates(project).await? {
            let prepared = way_back.prepare(&record).await?;
            if prepared.is_refused() {
                refused.push((record, prepared.exported.findings));
            }
        }
        if !refused.is_empty() {
            return Ok(Returned::Refused(refused));
        }
        self.fence.raise(project).await?;
        let records = import.store.leave_project(project).await?;
        for record in &records {
            let prepared = way_back.prepare(record).await?;
            if prepared.is_refused() {
                refused.push((record.clone(), prepared.exported.findings));
                continue;
            }
            self.write(&way_back, record, &prepared).await?;
        }
        if !refused.is_empty() {
            import.store.switch_project(project).await?;
            return Ok(Returned::Refused(refused));
        }
        self.write_software(project, way_back.now).await?;
        self.fence.lower(project).await?;
        Ok(Returned::Done(records.len()))
    }

    async fn write(&self, way_back: &WayBack<'_>, record: &TakeOver, prepared: &Prepared) -> Result<(), Error> {
        let (store, heat) = (self.import.store, self.import.heat);
        let Some(tree) = prepared.exported.tree.as_ref().filter(|_| prepared.kiln.is_some()) else {
            if !prepared.heat.stacks.is_empty() {
                let writer = self.fence.pass(&record.project).await?;
                delete_tree(&writer, &prepared.heat, way_back.now).await?;
                writer.commit().await?;
            }
            return store.drop_take_over(record.root).await;
        };
        if *tree != prepared.heat {
            let writer = self.fence.pass(&record.project).await?;
            write_tree(&writer, &prepared.heat, tree, way_back.now).await?;
            writer.commit().await?;
        }
        let ids: Vec<String> = tree.stacks.iter().chain(&tree.backups).map(|stack| stack.id.clone()).collect();
        let written = heat.tree(&record.root.to_string(), &ids).await?;
        store.note_returned(record.root, &written.digest).await
    }

    async fn write_software(&self, project: &str, now: Timestamp) -> Result<(), Error> {
        let (heat, known) = self.import.software_in_heat(project).await?;
        let kiln = self.import.store.taken_software(project).await?;
        let exported = export_software(&kiln, &heat, &known);
        if exported == heat {
            return Ok(());
        }
        let writer = self.fence.pass(project).await?;
        write_software(&writer, &heat, &exported, now).await?;
        writer.commit().await
    }
}
