//! What others have changed in the objects that a plan changes or deletes.

use std::collections::HashMap;

use kiln_identity::Caller;
use kiln_plan_document::{ObservedObject, OutsideChange, PlanDocument, Then};
use kiln_stack::load;
use kiln_store::{DesiredText, Stack};
use kiln_view::observed_object::Seen;

use super::PlannedRequest;
use crate::{Error, HiddenValues, Masked as _, Service};

impl Service {
    /// The plan of a request like that of [`Service::save_plan`] with the objects, but it is not saved.
    pub async fn refreshed_plan(&self, caller: &Caller, request: PlannedRequest) -> Result<PlanDocument, Error> {
        let checked = Box::pin(self.check_request(caller, request)).await?;
        let checked = self.fenced(checked, String::new(), true).await?;
        Ok(PlanDocument { version: checked.content.version(), ..checked.document })
    }

    /// Notes in a plan what others have changed, without hidden values; `desired` is the state after the change. Returns the
    /// objects.
    pub(super) async fn note_outside(
        &self,
        stack: &Stack,
        document: &mut PlanDocument,
        seen: Vec<Seen>,
        desired: Option<&DesiredText>,
    ) -> Result<Vec<ObservedObject>, Error> {
        if seen.iter().any(|one| !one.outside.is_empty()) {
            let mut hidden = self.hidden_values_of_tree(stack).await?;
            if let Some(desired) = desired {
                hidden.extend(HiddenValues::of(&[&load::sources(desired)?]));
            }
            let by_object: HashMap<_, _> =
                seen.iter().map(|one| ((one.object.path.as_str(), one.object.id.as_str()), one)).collect();
            for entry in &mut document.resources {
                let Some(object) = entry.object.as_deref() else { continue };
                let Some(seen) = by_object.get(&(entry.path.as_str(), object)) else { continue };
                let changes = seen.outside.iter().map(|drift| {
                    let then = Then::of(entry, &drift.name, seen.writes_all);
                    let [mut applied, mut live] = [drift.expected.clone(), drift.actual.clone()];
                    let mut baseline = drift.baseline.clone();
                    applied.mask(&hidden);
                    live.mask(&hidden);
                    baseline.mask(&hidden);
                    OutsideChange { property: drift.name.clone(), applied, baseline, live, then }
                });
                entry.outside = changes.collect();
            }
        }
        Ok(seen.into_iter().map(|one| one.object).collect())
    }
}
