//! A lifecycle plug-in, and the check that it is asked before each operation and told about its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::LifecyclePlugin;
use kiln_resource::{StackId, Status};
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
pub(crate) struct PluginRecord {
    /// How often it was asked.
    asked: u64,
    /// The last time that it was asked about each operation, and its answer.
    answers: BTreeMap<String, (u64, Answer)>,
    /// The operations that it has let begin at any time: an engine that has lost the stack may ask again.
    admitted: BTreeSet<String>,
    ended: BTreeSet<String>,
    /// Operations that have ended, with the stack.
    due: Vec<(String, String)>,
}

impl PluginRecord {
    fn ask(&mut self, operation: &str) -> u64 {
        self.asked += 1;
        self.answers.insert(operation.to_owned(), (self.asked, Answer::None));
        self.asked
    }

    /// An engine that has lost the stack may hear its answer late: only the last one counts.
    fn answer(&mut self, operation: &str, asked: u64, answer: Answer) {
        if answer == Answer::Admitted {
            self.admitted.insert(operation.to_owned());
        }
        if let Some(last) = self.answers.get_mut(operation).filter(|(last, _)| *last == asked) {
            last.1 = answer;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// None yet, or never: a cancel, the time limit or the end of the engine has ended the run.
    None,
    Admitted,
    Refused,
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
        let asked = (phase == "before").then(|| sim.told().ask(&operation));
        tokio::time::sleep(Duration::from_millis(1 + sim.dice.up_to("plug-in", 300))).await;
        sim.trace.note(&self.label.to_string(), || format!("plug-in {phase} {action}"));
        let Some(asked) = asked else {
            // A program goes on although its engine fails.
            sim.told().ended.insert(operation);
            self.gate.pass().await;
            return Ok(());
        };
        let may_refuse = sim.noise().is_some() && matches!(action.as_str(), "CREATE" | "UPDATE" | "CHECK");
        let refuses = may_refuse && sim.dice.chance("plug-in refuses", 30);
        self.gate.pass().await;
        sim.told().answer(&operation, asked, if refuses { Answer::Refused } else { Answer::Admitted });
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
    let is_complete = settle.state.status == Status::Complete;
    let mut told = sim.told();
    let what = format!("{} of {}", settle.state.action, stack.name);
    match told.answers.get(&operation).map(|(_, answer)| *answer) {
        Some(answer) if answer == Answer::Admitted || (is_complete && told.admitted.contains(&operation)) => {
            told.due.push((operation, what));
        }
        // It has not begun.
        Some(Answer::None | Answer::Refused) if settle.state.status == Status::Failed => {}
        // After a panic, a request ends without it.
        None if settle.reason.starts_with("Internal error: ") => {}
        answer => {
            drop(told);
            sim.accuse(Rule::PluginSkipped, format!("the plug-in was not asked before the {what}: {answer:?}"));
        }
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
            told.due.iter().find(|(operation, _)| !told.ended.contains(operation)).map(|(_, what)| what.clone())
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
