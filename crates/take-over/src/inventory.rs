//! What is in a Heat, and what stands in the way of its take-over. Nothing is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::convert::{Converted, Converter};
use crate::heat::HeatDatabase;
use crate::trees::{Selection, groups, read, trees};
use crate::{Finding, FirstDay, Release};

/// The whole inventory.
#[derive(Debug)]
pub struct Inventory {
    /// The release that has made the tables.
    pub release: Release,
    /// The projects, by their IDs.
    pub projects: BTreeMap<String, ProjectInventory>,
}

/// The stacks of a project.
#[derive(Debug, Default)]
pub struct ProjectInventory {
    /// Root stacks.
    pub stacks: usize,
    /// Nested stacks.
    pub nested: usize,
    /// Resources.
    pub resources: usize,
    /// Events.
    pub events: usize,
    /// Root stacks that can be taken over.
    pub ready: usize,
    /// Those of them whose plan with their own template is empty.
    pub unchanged: usize,
    /// What was found: ID and name of the root stack.
    pub findings: Vec<(String, String, Finding)>,
}

impl Inventory {
    /// Whether nothing is in the way.
    pub fn is_ready(&self) -> bool {
        self.projects.values().all(|project| project.ready == project.stacks)
    }
}

/// Reads all selected stacks and converts them, one after the other. `seen` is called for each with the number of trees
/// behind and of all.
///
/// # Errors
/// Errors of the database.
pub async fn inventory(
    heat: &HeatDatabase,
    converter: &Converter,
    only: &Selection,
    mut seen: impl FnMut(usize, usize),
) -> Result<Inventory, kiln_store::Error> {
    let release = heat.release().await?;
    let mut projects: BTreeMap<String, ProjectInventory> = BTreeMap::new();
    if !release.is_supported() {
        return Ok(Inventory { release, projects });
    }
    let (found, lost) = trees(heat, only).await?;
    let mut first_day = FirstDay::new(Arc::clone(&converter.types));
    let mut done = 0;
    for group in groups(&found) {
        for (tree, read) in group.iter().zip(read(heat, group).await?) {
            seen(done, found.len());
            done += 1;
            let project = projects.entry(tree.project.clone()).or_default();
            project.stacks += 1;
            project.nested += tree.ids.len() - 1;
            let outcome = match &read.tree {
                Ok(read) => {
                    project.resources += read.resources.len();
                    project.events += read.events.len();
                    converter.convert(tree, read, Timestamp::UNIX_EPOCH)
                }
                Err(damaged) => Converted::refused(damaged.finding()),
            };
            let mut findings = outcome.findings;
            if let Some(taken) = outcome.tree {
                project.ready += 1;
                let changes = first_day.changes(taken).await?;
                project.unchanged += usize::from(changes.is_empty());
                findings.extend(changes.into_iter().map(|change| {
                    let what = format!("the next update would change it: {}", change.what);
                    Finding::notice(
                        change.place,
                        what,
                        "look at 'kiln stack plan' of the stack before its first update",
                    )
                }));
            }
            let findings = findings.into_iter();
            project.findings.extend(findings.map(|finding| (tree.root.clone(), tree.name.clone(), finding)));
        }
    }
    for stack in lost {
        let project = projects.entry(stack.project).or_default();
        let owner = stack.owner.unwrap_or_default();
        let what = format!("it belongs to the stack {owner}, which is deleted");
        let finding =
            Finding::notice("", what, "it is not taken over: delete it in Heat if its objects are not needed");
        project.findings.push((stack.id, stack.name, finding));
    }
    Ok(Inventory { release, projects })
}
