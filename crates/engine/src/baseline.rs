//! What an object shows when a create or an update has ended, for comparisons with it later. No request is sent for it.

use kiln_resource::baseline::{BASELINE, Baseline};
use kiln_resource::object_drift::Shown;
use kiln_resource::{NoCloud, Operation, Step};

use crate::step::Job;

impl Job {
    /// The last step of a create or update, with the new baseline to store if it is another one.
    pub(crate) async fn with_baseline(&self, mut step: Step) -> Step {
        let Some(object) = step.answer.take() else { return step };
        let written = match &self.running.operation {
            Operation::Create => None,
            Operation::Update { changed, .. } => Some(changed),
            _ => return step,
        };
        let cx = self.context(&NoCloud);
        // What cannot be read without requests has no baseline.
        let Ok(shown) = Shown::in_answer(&*self.driver, &cx, &object).await else { return step };
        let applied = &self.facts.properties;
        let old = Baseline::of(&self.facts.data);
        let new = old.clone().after(written, shown.unlike(applied), applied);
        if new == old { step } else { step.data(BASELINE, new.to_entry()) }
    }
}
