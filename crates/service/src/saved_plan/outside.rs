//! What others have changed in the objects that a plan changes or deletes.

use std::collections::HashMap;

use kiln_identity::Caller;
use kiln_plan::Sources;
use kiln_plan_document::{OutsideChange, PlanDocument, Then};
use kiln_store::Stack;
use kiln_view::observed_object::Seen;
use kiln_view::plan_document::Plan;

use super::PlannedRequest;
use crate::{Error, Masked as _, Service};

impl Service {
    /// The plan of a request like that of [`Service::save_plan`] with the objects, but it is not saved.
    pub async fn refreshed_plan(&self, caller: &Caller, request: PlannedRequest) -> Result<PlanDocument, Error> {
        let checked = Box::pin(self.check_request(caller, request)).await?;
        let checked = self.fenced(checked, String::new(), true).await?;
        let mut document = PlanDocument { version: checked.content.version(), ..checked.document };
        self.estimate(&mut document).await?;
        Ok(document)
    }

    /// A plan with what others have changed, without hidden values; `new` are the sources after the change.
    pub(super) async fn with_outside(
        &self,
        stack: &Stack,
        mut document: PlanDocument,
        seen: &[Seen],
        new: Option<&Sources>,
    ) -> Result<PlanDocument, Error> {
        if seen.iter().all(|one| one.outside.is_empty()) {
            return Ok(document);
        }
        let by_object: HashMap<_, _> =
            seen.iter().map(|one| ((one.object.path.as_str(), one.object.id.as_str()), one)).collect();
        let moved: HashMap<String, String> =
            document.moved_paths().into_iter().map(|(now, before)| (now.to_owned(), before)).collect();
        for entry in &mut document.resources {
            let Some(object) = entry.object.as_deref() else { continue };
            let path = moved.get(&entry.path).unwrap_or(&entry.path);
            let Some(seen) = by_object.get(&(path.as_str(), object)) else { continue };
            let changes = seen.outside.iter().map(|drift| OutsideChange {
                property: drift.name.clone(),
                applied: drift.expected.clone(),
                baseline: drift.baseline.clone(),
                live: drift.actual.clone(),
                then: Then::of(entry, &drift.name, seen.writes_all),
            });
            entry.outside = changes.collect();
        }
        let mut plan = Plan(document);
        plan.mask(&self.hidden_values_of_change(stack, new).await?);
        Ok(plan.0)
    }
}
