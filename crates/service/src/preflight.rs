//! The pre-flight of plans, and of templates.

use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan_document::{Action, Check};
use kiln_resource::{Cloud, StackId};
use kiln_store::Stack;
use kiln_template::StackIdentity;
use kiln_view::plan_document::Plan;
use kiln_view::preview::Preview;

use crate::{Door, Error, Guarded, PreviewedUpdate, Service, StackContent, TemplateText};

/// The name of a stack that is only checked.
const NO_STACK: &str = "dummy";

impl Service {
    /// Adds to a plan of a create what its pre-flight finds, with the cloud of the caller.
    pub async fn preflight_create(&self, caller: &Caller, planned: &mut Guarded<Preview>) {
        let Some(cloud) = self.identity.cloud(caller).await else { return };
        let checks = self.checked(&*cloud, planned.expose(), &caller.project_id).await;
        planned.content_mut().preflight = checks;
    }

    /// Adds to a plan of an update what its pre-flight finds, with the cloud of the stack.
    pub async fn preflight_update(&self, previewed: &mut Guarded<PreviewedUpdate>) {
        if !self.has_preflight() {
            return;
        }
        let checks = match self.backends.clouds.cloud(&previewed.expose().stack).await {
            Ok(cloud) => {
                let previewed = previewed.expose();
                self.checked(&*cloud, &previewed.preview, &previewed.stack.project).await
            }
            Err(failure) => {
                vec![Check::skipped("credentials", format!("the credentials of the stack: {failure}"))]
            }
        };
        previewed.content_mut().preview.preflight = checks;
    }

    /// The pre-flight of the create of a stack with a template, with its values as far as they are given.
    pub async fn preflight_template(
        &self,
        caller: &Caller,
        template: &TemplateText,
        content: StackContent,
    ) -> Result<Vec<Check>, Error> {
        let identity = StackIdentity::new(caller.project_id.clone(), NO_STACK.to_owned(), "None")?;
        let blueprint = Arc::new(self.new_blueprint(caller, identity, template, content).await?);
        let id = StackId(self.backends.chance.uuid());
        let mut planned = self.plan_blueprint(caller, id, blueprint).await?;
        self.preflight_create(caller, &mut planned).await;
        Ok(planned.shown(Door::Validation, |plan| Plan::of(plan, Action::Create)).0.preflight)
    }

    /// The pre-flight of the request in progress of a root stack, which has not begun yet.
    pub async fn preflight_of_request(&self, stack: &Stack) -> Result<Vec<Check>, kiln_store::Error> {
        if !self.options.preflight {
            let message = "[kiln] preflight is never".to_owned();
            return Ok(vec![Check::skipped("option", message)]);
        }
        // An engine does not follow whether there are quotas.
        let most = self.most_with(&self.backends.store.quotas(&stack.project).await?);
        kiln_view::preflight::preflight_of_request(&self.backends, stack.id, most).await
    }

    /// Whether plans are checked.
    pub(crate) fn has_preflight(&self) -> bool {
        self.options.preflight && !self.options.no_cloud
    }

    async fn checked(&self, cloud: &dyn Cloud, preview: &Preview, project: &str) -> Vec<Check> {
        if !self.has_preflight() {
            return Vec::new();
        }
        let most = self.most_resources(project).await.unwrap_or(self.options.limits.resources_per_stack);
        kiln_view::preflight::preflight(preview, cloud, &*self.backends.clock, most).await
    }
}
