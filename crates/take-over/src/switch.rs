//! Gives the stacks of a project to Kiln, and back to Heat.

use std::time::Duration;

use jiff::Timestamp;
use kiln_store::{Error, HeatFence, Owner, Store as _, TakeOver, TakeOverState};
use tokio::time::Instant;

use crate::Finding;
use crate::export::export_software;
use crate::heat::{delete_tree, write_software, write_tree};
use crate::import::{Import, Imported, Outcome};
use crate::trees::Selection;
use crate::way_back::{Prepared, WayBack};

/// How long the requests from before a switch have to end; those that were passed on to Heat once more after each change.
const ENDED: Duration = Duration::from_secs(2);
/// How often they have that, at most.
const ROUNDS: usize = 10;
/// After so long, each service has noticed that a project belongs to Heat: it reads that every 3 seconds.
const NOTICED: Duration = Duration::from_secs(5);

/// A switch of projects.
pub struct Switch<'a> {
    /// The import that precedes it.
    pub import: Import<'a>,
    /// The fence in Heat's database.
    pub fence: &'a HeatFence,
    /// Whether Heat encrypts parameters and properties.
    pub encrypts: bool,
    /// How long a switch waits for stacks that are in progress.
    pub patience: Duration,
}

/// What became of a way back.
#[derive(Debug)]
pub enum Returned {
    /// So many stacks, without nested ones, belong to Heat now.
    Done(usize),
    /// Nothing has changed, because Heat cannot store these, with the reasons.
    Refused(Vec<(TakeOver, Vec<Finding>)>),
}

/// What became of a switch or a rehearsal.
#[derive(Debug)]
pub enum Switched {
    /// The stacks belong to Kiln now; after a rehearsal, they could.
    Done {
        /// Their number, without nested ones.
        stacks: u64,
        /// How long the requests for the project waited; after a rehearsal, how long they would wait while Heat changes nothing.
        waited: Duration,
    },
    /// Nothing was switched, because these could not be imported.
    Refused(Vec<Imported>),
}

impl Switch<'_> {
    /// Imports what has changed, lets the requests for the project wait, lets Heat's tables refuse changes of the project, imports
    /// the rest, and gives the stacks to Kiln. If that fails, Heat goes on. After a kill, a second switch goes on.
    ///
    /// # Errors
    /// Errors of the databases; [`Error::NameTaken`] if a stack of Kiln in the project has the name of one of Heat.
    pub async fn project(&self, project: &str) -> Result<Switched, Error> {
        let store = self.import.store;
        // Before anything waits, so that it waits for a short time only.
        let refused = self.import_all(project).await?;
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        store.set_owner(project, Owner::Moving).await?;
        let switched = self.held(project).await;
        // A commit without an answer may have switched the project, and stacks on their way back are newer in Kiln: only a
        // project that is Heat's alone goes back to it.
        if !matches!(switched, Ok(Switched::Done { .. })) && self.is_heats(project).await? {
            self.fence.lower(project).await?;
            store.set_owner(project, Owner::Heat).await?;
        }
        switched
    }

    /// Imports what has changed, and does the rest of a switch without its effects: no request waits, Heat's tables are not
    /// touched, and the stacks still belong to Heat.
    ///
    /// # Errors
    /// Those of [`Switch::project`].
    pub async fn rehearse(&self, project: &str) -> Result<Switched, Error> {
        let refused = self.import_all(project).await?;
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        // A switch reads everything once more when Heat has ended its requests, and again behind the fence.
        let begun = Instant::now();
        let (_, refused) = self.import(project).await?;
        let import = begun.elapsed();
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        let ended = if self.serves().await? { ENDED + import } else { Duration::ZERO };
        let begun = Instant::now();
        let stacks = self.import.store.rehearse_switch(project).await?;
        Ok(Switched::Done { stacks, waited: ended + import + begun.elapsed() })
    }

    /// Imports a project until nothing is in progress, at most for the patience: the stacks that could not be imported.
    async fn import_all(&self, project: &str) -> Result<Vec<Imported>, Error> {
        let until = Instant::now() + self.patience;
        loop {
            let (_, refused) = self.import(project).await?;
            if refused.is_empty() || Instant::now() >= until {
                return Ok(refused);
            }
            tokio::time::sleep(ENDED).await;
        }
    }

    /// Whether Kiln has no stack of a project that may be newer than Heat's.
    async fn is_heats(&self, project: &str) -> Result<bool, Error> {
        let records = self.import.store.take_overs(Some(project)).await?;
        Ok(!records.iter().any(|record| record.state.is_newer_in_kiln()))
    }

    /// Switches a project whose requests wait.
    async fn held(&self, project: &str) -> Result<Switched, Error> {
        let begun = Instant::now();
        if self.serves().await? {
            // What Kiln has passed on before. The fence comes after it, so that it stops no operation of Heat.
            let mut refused = Vec::new();
            for _ in 0..ROUNDS {
                tokio::time::sleep(ENDED).await;
                let changed;
                (changed, refused) = self.import(project).await?;
                if !changed && refused.is_empty() {
                    break;
                }
            }
            if !refused.is_empty() {
                return Ok(Switched::Refused(refused));
            }
        }
        self.fence.raise(project).await?;
        let (_, refused) = self.import(project).await?;
        if !refused.is_empty() {
            return Ok(Switched::Refused(refused));
        }
        let stacks = self.import.store.switch_project(project).await?;
        Ok(Switched::Done { stacks, waited: begun.elapsed() })
    }

    /// Imports a project: whether something has changed, and the stacks that could not be imported.
    async fn import(&self, project: &str) -> Result<(bool, Vec<Imported>), Error> {
        let only = Selection { project: Some(project.to_owned()), stack: None };
        let (mut changed, mut refused) = (false, Vec::new());
        let keep = |imported: Imported, _, _| match imported.outcome {
            Outcome::Refused => refused.push(imported),
            Outcome::Imported => changed = true,
            _ => {}
        };
        self.import.run(&only, keep).await?;
        Ok((changed, refused))
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
        let candidates = way_back.candidates(project).await?;
        if candidates.is_empty() {
            // All stacks were given back before a kill; or the project was never switched, and has no fence.
            self.fence.lower(project).await?;
            import.store.set_owner(project, Owner::Heat).await?;
            return Ok(Returned::Done(0));
        }
        for record in candidates {
            let prepared = way_back.prepare(&record).await?;
            if prepared.is_refused() {
                refused.push((record, prepared.exported.findings));
            }
        }
        if !refused.is_empty() {
            return Ok(Returned::Refused(refused));
        }
        import.store.set_owner(project, Owner::Moving).await?;
        let returned = self.held_back(project, &way_back).await;
        if matches!(returned, Err(Error::Changed(_))) && !self.is_on_its_way(project).await? {
            import.store.set_owner(project, Owner::Kiln).await?;
        }
        returned
    }

    /// Whether stacks of a project have left Kiln.
    async fn is_on_its_way(&self, project: &str) -> Result<bool, Error> {
        let records = self.import.store.take_overs(Some(project)).await?;
        Ok(records.iter().any(|record| record.state != TakeOverState::Switched))
    }

    /// Gives back a project whose requests wait.
    async fn held_back(&self, project: &str, way_back: &WayBack<'_>) -> Result<Returned, Error> {
        let import = &self.import;
        if self.serves().await? {
            tokio::time::sleep(ENDED).await;
        }
        self.fence.raise(project).await?;
        let (mut done, mut refused) = (0, Vec::new());
        loop {
            let records = import.store.leave_project(project).await?;
            // Before the stacks: after a kill, one that is still on its way shows that Heat has not gone on.
            self.write_software(project, way_back.now).await?;
            for record in &records {
                let prepared = way_back.prepare(record).await?;
                if prepared.is_refused() {
                    refused.push((record.clone(), prepared.exported.findings));
                    continue;
                }
                self.write(way_back, record, &prepared).await?;
            }
            if !refused.is_empty() {
                import.store.switch_project(project).await?;
                return Ok(Returned::Refused(refused));
            }
            done += records.len();
            if records.is_empty() || !self.serves().await? {
                break;
            }
            // A request that a service has accepted before it noticed may have made a stack: it goes back too.
            tokio::time::sleep(NOTICED).await;
        }
        self.fence.lower(project).await?;
        import.store.set_owner(project, Owner::Heat).await?;
        Ok(Returned::Done(done))
    }

    /// Whether a Kiln may be serving requests: one of its engines was seen lately.
    async fn serves(&self) -> Result<bool, Error> {
        let store = self.import.store;
        let now = store.now().await?;
        let engines = store.engines().await?;
        Ok(engines.iter().any(|engine| engine.is_up(now)))
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
