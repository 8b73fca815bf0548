//! A plan that gives objects the values of the template again, after others have changed or deleted them.

use std::collections::BTreeSet;

use kiln_identity::Caller;
use kiln_resource::Converge;
use kiln_store::Stack;
use kiln_view::stack_drift::{Drift, ResourceDrift};

use crate::{Error, PlannedRequest, SavedPlan, Service, Settings, UpdateStack};

impl Service {
    /// Saves the plan of a repair: an update to the present template that compares only what has drifted. No names: all
    /// resources. With `replace`, the resources with a property that cannot be changed in place are replaced; else this
    /// property stays as it is. `None`: nothing has drifted.
    ///
    /// # Errors
    /// [`Error::NoResource`] and those of [`Service::save_plan`].
    pub async fn plan_repair(
        &self,
        caller: &Caller,
        stack: Stack,
        names: &[String],
        replace: bool,
    ) -> Result<Option<SavedPlan>, Error> {
        self.repair_plan(caller, stack, names, replace, "repair of drift").await
    }

    /// [`Service::plan_repair`] with another description.
    pub(crate) async fn repair_plan(
        &self,
        caller: &Caller,
        stack: Stack,
        names: &[String],
        replace: bool,
        description: &str,
    ) -> Result<Option<SavedPlan>, Error> {
        let view = self.view(stack.clone()).await?;
        let compared = self.compared(&view, names).await?;
        let drifted = compared.drifted();
        if drifted.is_empty() {
            return Ok(None);
        }
        let replaced = drifted.iter().filter(|(_, one)| replace && needs_replacement(one));
        let replaced = replaced.map(|(path, _)| path.clone()).collect();
        let converge = Converge::only(paths(&drifted));
        let update = UpdateStack {
            existing: true,
            settings: Settings { converge: Some(converge), ..Settings::default() },
            ..UpdateStack::default()
        };
        let request = PlannedRequest::Update(Box::new(stack), update, replaced);
        self.save_plan(caller, request, description.to_owned(), None, true).await.map(Some)
    }
}

fn needs_replacement(one: &ResourceDrift) -> bool {
    matches!(&one.drift, Drift::Modified(properties) if properties.iter().any(|property| property.needs_replacement))
}

/// The paths of drifted resources.
pub(crate) fn paths(drifted: &[(String, &ResourceDrift)]) -> BTreeSet<String> {
    drifted.iter().map(|(path, _)| path.clone()).collect()
}
