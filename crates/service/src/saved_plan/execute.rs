//! Executes a plan.

use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_resource::PlanId;
use kiln_stack::load;
use kiln_store::{EngineInfo, PlanQuery, Planned, Stack};
use kiln_template::StackIdentity;
use kiln_value::{Map, Value};

use super::{Checked, Content, PlanStatus, PlannedRequest, SavedPlan};
use crate::create::CheckedCreate;
use crate::update::CheckedUpdate;
use crate::{CreateStack, Error, Service, Settings, StackContent, TemplateText, UpdateStack, import};

fn into_map(value: Value) -> Option<Map> {
    match value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

impl Service {
    /// Executes a plan: stores its request, for who executes it. What the caller may do is checked again. `digest`: of the
    /// plan that the caller has seen. `disable_rollback` overrides the setting. The other change sets of the stack of a change
    /// set are deleted, because they belong to its former state.
    ///
    /// # Errors
    /// [`Error::PlanState`] or [`Error::StalePlan`] if it cannot be executed; then nothing was sent.
    pub async fn execute_plan(
        &self,
        caller: &Caller,
        saved: SavedPlan,
        digest: Option<&str>,
        disable_rollback: Option<bool>,
    ) -> Result<Stack, Error> {
        let (id, is_change_set) = (saved.plan.id, saved.plan.name.is_some());
        let stack = Box::pin(self.request_plan(caller, saved, digest, disable_rollback)).await?;
        if is_change_set {
            let (project, stack_name) = (stack.project.clone(), Some(stack.name.clone()));
            let query = PlanQuery { project, stack_name, without_bodies: true, ..PlanQuery::default() };
            let others = self.backends.store.plans(&query).await?;
            let others = others.iter().filter(|other| other.name.is_some() && other.id != id);
            let others: Vec<PlanId> = others.map(|other| other.id).collect();
            self.backends.store.delete_plans(&others).await?;
        }
        Ok(stack)
    }

    async fn request_plan(
        &self,
        caller: &Caller,
        saved: SavedPlan,
        digest: Option<&str>,
        disable_rollback: Option<bool>,
    ) -> Result<Stack, Error> {
        let refused = |why| Error::PlanState { plan: saved.plan.id, why };
        if digest.is_some_and(|digest| digest != saved.plan.digest) {
            return Err(refused("its digest is another one"));
        }
        if saved.content.refused.is_some() || saved.content.former.as_ref().is_some_and(|one| one.failure.is_some()) {
            return Err(refused("its change would be refused"));
        }
        if saved.status == PlanStatus::Stale {
            return Err(Error::StalePlan(self.moved(&saved).await?));
        }
        if let Some(why) = saved.status.obstacle() {
            return Err(refused(why));
        }
        self.refuse_unapproved(caller, &saved).await?;
        // As on AWS, a change set is only compared with the generation of its stack, so an older engine may execute it.
        if saved.plan.name.is_none() {
            self.refuse_older_engines(saved.plan.id).await?;
        }
        if let Some(stack) = saved.stack.as_ref().filter(|stack| stack.guards != 0)
            && let Some(document) = self.plan_document(&saved).await?
        {
            self.refuse_guarded_plan(stack, saved.plan.action, &document).await?;
        }
        let blueprint = Box::pin(self.allowed_again(caller, &saved)).await?;
        Box::pin(self.refuse_moved(caller, &saved, blueprint.as_ref())).await?;
        let SavedPlan { plan, stack, content, .. } = saved;
        let planned = Some(Planned { plan: plan.id, path: String::new() });
        let settings = Settings {
            disable_rollback: disable_rollback.or(content.settings.disable_rollback),
            if_version: content.version(),
            ..content.settings
        };
        if let Some(former) = content.former {
            let template = match former.template {
                Value::Map(template) => Some(TemplateText::of_map(template, &self.options.limits)?),
                _ => None,
            };
            let change = StackContent { sections: former.sections, ..StackContent::default() };
            let Some(stack) = stack else {
                let template = template.ok_or(Error::NoTemplate)?;
                let adopt = content.adopt.map(|data| Map::from([("resources".to_owned(), data)]));
                let new = CreateStack { name: plan.stack_name, template, content: change, settings, adopt };
                let checked = self.check_create(caller, new, plan.stack).await?;
                return self.request_create(caller, plan.stack, checked, planned).await;
            };
            let update = UpdateStack {
                template,
                content: change,
                settings,
                existing: former.existing,
                revision: None,
                clear_parameters: former.clear_parameters.into_iter().collect(),
                adopt: content.adopt.and_then(into_map).unwrap_or_default(),
                stack_policy: None,
            };
            self.allow_update(caller, &stack).await?;
            let checked = self.check_update(caller, &stack, update).await?;
            return self.request_update(caller, &stack, checked, planned).await;
        }
        let Some(blueprint) = blueprint else {
            let stack = stack.ok_or_else(|| Error::NoStack(plan.stack_name.clone()))?;
            return self.delete_planned(caller, &stack, settings.if_version.as_deref(), planned).await;
        };
        let desired = load::accepted(&self.backends, &blueprint);
        if let Some(stack) = stack {
            let adopt = content.adopt.and_then(into_map).unwrap_or_default();
            let checked = CheckedUpdate { desired, settings, adopt, stack_policy: None };
            return self.request_update(caller, &stack, checked, planned).await;
        }
        let checked =
            CheckedCreate { name: plan.stack_name, desired, settings, adopt: content.adopt, needs_plan: false };
        self.request_create(caller, plan.stack, checked, planned).await
    }

    /// Checks the request of a plan for the present state of its stack.
    pub(super) async fn check_again(&self, caller: &Caller, saved: &SavedPlan) -> Result<Checked, Error> {
        let SavedPlan { plan, stack, content, .. } = saved;
        if content.former.is_some() {
            return Err(Error::PlanState { plan: plan.id, why: "it is a change set of an older release" });
        }
        if plan.generation != 0 && stack.is_none() {
            return Err(Error::NoStack(plan.stack_name.clone()));
        }
        if let (Some(stack), None) = (stack, &plan.desired) {
            return Box::pin(self.check_request(caller, PlannedRequest::Delete(Box::new(stack.clone())))).await;
        }
        if let Some(stack) = stack.as_ref().filter(|stack| stack.is_pending()) {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let tree = match stack {
            Some(stack) => Content::of_tree(self.tree_of(stack).await?),
            None => Content::default(),
        };
        let Some(blueprint) = self.allowed_again(caller, saved).await? else {
            return Err(Error::NoStack(plan.stack_name.clone()));
        };
        let (document, hidden) = match stack {
            Some(stack) => self.document_of_update(stack.clone(), Arc::clone(&blueprint), self.terms(content)).await?,
            None => self.document_of_create(caller, plan.stack, Arc::clone(&blueprint)).await?,
        };
        Ok(Checked {
            action: plan.action,
            stack: stack.clone(),
            stack_id: plan.stack,
            stack_name: plan.stack_name.clone(),
            desired: Some(load::texts(blueprint.sources())),
            document,
            content: Content {
                settings: content.settings.clone(),
                adopt: content.adopt.clone(),
                replaced: content.replaced.clone(),
                parameters: blueprint.parameters().texts(),
                ..tree
            },
            observed: Vec::new(),
            hidden,
        })
    }

    /// The blueprint of the desired state, if it is allowed and valid for the caller today; `None` for a delete and for a
    /// change set of the release before.
    async fn allowed_again(&self, caller: &Caller, saved: &SavedPlan) -> Result<Option<Arc<Blueprint>>, Error> {
        let SavedPlan { plan, stack, content, .. } = saved;
        let Some(desired) = &plan.desired else { return Ok(None) };
        match stack {
            Some(stack) => self.allow_update(caller, stack).await?,
            None => _ = self.check_room(caller, &plan.stack_name).await?,
        }
        let sources = load::stored(&self.backends, desired).await?;
        let identity = StackIdentity::new(plan.project.clone(), plan.stack_name.clone(), plan.stack.to_string())?;
        let template = TemplateText::stored(&sources.template);
        let blueprint = self.build(&sources, &identity, &template, true).await?;
        self.accept(caller, &blueprint, &template).await?;
        let imports = plan.name.is_some() || stack.is_some();
        if let Some(Value::Map(adopt)) = content.adopt.as_ref().filter(|_| imports) {
            self.check_import(caller, &blueprint, &import::objects(adopt)).await?;
        }
        Ok(Some(Arc::new(blueprint)))
    }

    /// The name of a stack that has changed since a plan was made.
    async fn moved(&self, saved: &SavedPlan) -> Result<String, Error> {
        let Some(stack) = &saved.stack else { return Ok(saved.plan.stack_name.clone()) };
        let tree = self.tree_of(stack).await?;
        let seen = saved.content.seen.iter().flat_map(|seen| &seen.stacks);
        let planned: Vec<_> = seen.map(|stack| (stack.id, stack.generation)).collect();
        let moved = tree.iter().find(|stack| !planned.contains(&(stack.id, stack.generation)));
        Ok(moved.unwrap_or(stack).name.clone())
    }

    /// Refuses a plan while an engine of the release before runs: it would not keep to the plan, and purge its texts.
    pub(super) async fn refuse_older_engines(&self, plan: PlanId) -> Result<(), Error> {
        let engines = self.backends.store.engines().await?;
        if engines.iter().all(EngineInfo::keeps_plans) {
            return Ok(());
        }
        let why = "an engine of an older release is running, which does not keep to plans";
        Err(Error::PlanState { plan, why })
    }
}
