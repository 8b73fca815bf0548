//! A lifecycle plug-in, and the check that it is asked before each operation and told about its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::LifecyclePlugin;
use kiln_resource::StackId;
use kiln_store::{Settle, Stack};
use kiln_value::Value;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::gate::Gate;
use crate::rule::Rule;
use crate::scenario::Scenario;
use crate::simulation::{Label, Simulation};

/// Maximum duration of a run.
const LIMIT: Duration = Duration::from_secs(10);
/// How long after the end of an operation its run may begin.
const PATIENCE: Duration = Duration::from_mins(5);

/// Gives a part of the scenarios a plug-in. It has its own random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    scenario.plugin = StdRng::seed_from_u64(seed ^ 0x504c_5547).random_bool(0.2);
}

/// The plug-in in a process.
pub(crate) struct SimPlugin {
    pub(crate) sim: Arc<Simulation>,
    pub(crate) label: Label,
    pub(crate) gate: Arc<Gate>,
}

/// What the plug-in was told, and what it must be told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Operations that were let begin.
    admitted: BTreeSet<String>,
    /// Operations that were refused.
    refused: BTreeSet<String>,
    ended: BTreeSet<String>,
    /// Operations that have ended, with the stack.
    due: Vec<(String, String)>,
}

#[async_trait]
impl LifecyclePlugin for SimPlugin {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    async fn run(&self, document: &Value) -> Result<(), String> {
        let sim = &self.sim;
        let text = |key: &str| document.str_at(key).unwrap_or_default().to_owned();
        let (phase, operation, action) = (text("phase"), text("operation"), text("action"));
        tokio::time::sleep(Duration::from_millis(1 + sim.dice.up_to("plug-in", 300))).await;
        sim.trace.note(&self.label.to_string(), || format!("plug-in {phase} {action}"));
        // A program goes on although its engine fails.
        let may_refuse = sim.noise().is_some() && matches!(action.as_str(), "CREATE" | "UPDATE" | "CHECK");
        let refuses = phase == "before" && may_refuse && sim.dice.chance("plug-in refuses", 30);
        {
            let mut told = sim.told();
            let place = match (phase.as_str(), refuses) {
                ("before", false) => &mut told.admitted,
                ("before", true) => &mut told.refused,
                _ => &mut told.ended,
            };
            place.insert(operation);
        }
        self.gate.pass().await;
        if refuses { Err("not now".to_owned()) } else { Ok(()) }
    }
}

/// The ID of an operation, as the engine computes it.
fn operation(stack: StackId, settle: &Settle) -> String {
    let name = format!("operation {} {}", settle.generation, settle.state.action);
    Uuid::new_v5(&stack.0, name.as_bytes()).to_string()
}

/// An operation has ended: the plug-in must have been asked about it.
pub(crate) fn settled(sim: &Simulation, stack: &Stack, settle: &Settle) {
    if !sim.scenario.plugin || stack.settled != settle.generation {
        return;
    }
    let operation = operation(stack.id, settle);
    let mut told = sim.told();
    let what = format!("{} of {}", settle.state.action, stack.name);
    let (admitted, refused) = (told.admitted.contains(&operation), told.refused.contains(&operation));
    if admitted {
        told.due.push((operation, what));
    // After a panic, a request ends without it.
    } else if !refused && !settle.reason.starts_with("Internal error: ") {
        drop(told);
        sim.accuse(Rule::PluginSkipped, format!("the plug-in was not asked before the {what}"));
    }
}

/// The plug-in was told about the end of every operation that it has let begin.
pub(crate) async fn check(sim: &Simulation) {
    // An operation that ends because its actor cannot go on ends without the plug-in.
    if sim.scenario.crashes.panics > 0 || sim.scenario.crashes.refused_row.is_some() {
        return;
    }
    let start = sim.time.ms();
    loop {
        let missing = {
            let told = sim.told();
            // If another engine has asked again and was refused, nothing has begun.
            let known = |operation: &String| told.ended.contains(operation) || told.refused.contains(operation);
            told.due.iter().find(|(operation, _)| !known(operation)).map(|(_, what)| what.clone())
        };
        match missing {
            None => return,
            Some(what) if Duration::from_millis(sim.time.ms() - start) >= PATIENCE + sim.store_clock.back() => {
                return sim.accuse(Rule::PluginSkipped, format!("the plug-in was not told about the end of {what}"));
            }
            Some(_) => tokio::time::sleep(Duration::from_secs(5)).await,
        }
    }
}
