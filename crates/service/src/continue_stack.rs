//! Continues a failed operation where it stood.

use std::collections::{BTreeMap, BTreeSet};

use kiln_identity::Caller;
use kiln_plan::{Model, Target};
use kiln_resource::{Action, ResourceId, Status};
use kiln_stack::load;
use kiln_store::{Details, Stack, StackId, StackRequest};

use crate::{Error, Forget, Service};

/// What is done with the resources that are skipped.
#[derive(Default)]
struct Skips {
    /// The paths of the resources that stay as they are.
    skipped: Vec<String>,
    /// The resources whose delete has failed, with their stacks: they are forgotten.
    forgotten: Vec<(Stack, String)>,
}

impl Service {
    /// Continues a failed create, update, rollback or delete. Nothing is done on the resources with the paths `skip`: they stay
    /// as they are, and a resource whose delete has failed is forgotten.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the stack is in another state; [`Error::Value`] if a path cannot be skipped.
    pub async fn continue_stack(
        &self,
        caller: &Caller,
        stack: &Stack,
        skip: &BTreeSet<String>,
    ) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        if stack.is_pending() {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let action = stack.state.action;
        let continues = matches!(action, Action::Create | Action::Update | Action::Rollback | Action::Delete);
        if stack.state.status != Status::Failed || !continues {
            return Err(Error::NotSupported(format!("Continuing a stack in the state {}", stack.state)));
        }
        if stack.parent.is_some() {
            return Err(Error::NotSupported("Continuing a nested stack".to_owned()));
        }
        if stack.details.snapshot.is_some() {
            return Err(Error::NotSupported("Continuing an operation that adopts objects".to_owned()));
        }
        if !skip.is_empty() {
            self.refuse_older_engines_to("A skip").await?;
        }
        let mut skips = Skips::default();
        for (place, names) in by_stack(skip) {
            self.check_skipped(stack, &place, &names, &mut skips).await?;
        }
        self.demand_plan_of(caller, stack, action).await?;
        for (of, resource) in skips.forgotten {
            let reason = Some("skipped when the operation was continued".to_owned());
            self.forget(caller, of, &Forget { resource, reason }).await?;
        }
        let now = self.backends.clock.now();
        let request = match action {
            Action::Delete => StackRequest::delete(stack, now),
            Action::Rollback => StackRequest::rollback(stack.generation, stack.details.only_adopted, now),
            _ => StackRequest { if_generation: Some(stack.generation), ..StackRequest::new(action, now) },
        };
        let Details { converge, preflight, admitted, .. } = stack.details.clone();
        let preflight = preflight && !admitted;
        let details = Details { skip: skips.skipped, converge, preflight, ..request.details };
        let credentials = self.offered_credentials(caller, stack).await;
        self.request(caller, stack, StackRequest { credentials, details, ..request }).await
    }

    /// Rolls back a failed create or update that was not rolled back.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the stack is in another state.
    pub async fn roll_back(&self, caller: &Caller, stack: &Stack) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        let can = stack.state.status == Status::Failed && matches!(stack.state.action, Action::Create | Action::Update);
        if stack.is_pending() || !can || stack.parent.is_some() {
            return Err(Error::NotSupported(format!("Rolling back a stack in the state {}", stack.state)));
        }
        self.demand_plan_of(caller, stack, Action::Rollback).await?;
        let now = self.backends.clock.now();
        let request = StackRequest::rollback(stack.generation, stack.adopts(), now);
        let credentials = self.offered_credentials(caller, stack).await;
        self.request(caller, stack, StackRequest { credentials, ..request }).await
    }

    /// Neither can be planned.
    async fn demand_plan_of(&self, caller: &Caller, stack: &Stack, action: Action) -> Result<(), Error> {
        let is_guarded = self.heed_guards(stack, action).await?;
        self.demand_plan(caller, &Details::default(), is_guarded)
    }

    /// Checks the skipped resources of one stack of the tree.
    async fn check_skipped(
        &self,
        root: &Stack,
        place: &[String],
        names: &BTreeSet<String>,
        skips: &mut Skips,
    ) -> Result<(), Error> {
        let store = &self.backends.store;
        let mut stack = root.clone();
        for name in place {
            let rows = store.resources_named(stack.id, name).await?;
            let child: Option<StackId> = rows.iter().rev().find_map(|row| row.child);
            let missing = || Error::NoResource { resource: name.clone(), stack: stack.name.clone() };
            stack = load::stack(&**store, child.ok_or_else(missing)?).await?;
        }
        let model = Model::new(store.resources(stack.id).await?);
        let wanted = match stack.state.action {
            Action::Delete => None,
            Action::Rollback => stack.previous.clone(),
            _ => Some(stack.desired.clone()),
        };
        let blueprint = match wanted {
            Some(desired) => Some(load::blueprint(&self.backends, &stack, &desired).await?),
            None => None,
        };
        let blueprint = blueprint.transpose().map_err(|error| Error::Internal(error.to_string()))?;
        let fresh = || ResourceId(self.backends.chance.uuid());
        let targets = blueprint.as_ref().map(|blueprint| blueprint.targets(fresh)).unwrap_or_default();
        for name in names {
            let path = place.iter().chain([name]).cloned().collect::<Vec<_>>().join("/");
            let row = model.current(name);
            if row.is_none() && targets.iter().all(|target| target.name != *name) {
                return Err(Error::NoResource { resource: name.clone(), stack: stack.name.clone() });
            }
            if let Some(row) = row {
                let is_done = row.state.status == Status::Complete && row.state.action != Action::Init;
                if is_done && row.generation >= stack.generation {
                    let text = format!("the resource {path} is {}: there is nothing to skip", row.state);
                    return Err(Error::Value(text));
                }
                if row.state.action == Action::Delete && row.child.is_none() {
                    skips.forgotten.push((stack.clone(), name.clone()));
                    continue;
                }
            }
            if let Some(needs) = dependant(&targets, name, names) {
                let text = format!("the resource {needs} needs {path}: skip it too, or neither of them");
                return Err(Error::Value(text));
            }
            skips.skipped.push(path);
        }
        Ok(())
    }
}

/// The skipped names of each stack, by the names on the way to it.
fn by_stack(skip: &BTreeSet<String>) -> BTreeMap<Vec<String>, BTreeSet<String>> {
    let mut found: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    for path in skip {
        let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
        let name = names.pop().unwrap_or_default();
        found.entry(names).or_default().insert(name);
    }
    found
}

/// A resource that needs another one and is not skipped with it. What needs a resource that is not done has not begun.
fn dependant<'a>(targets: &'a [Target], name: &str, skipped: &BTreeSet<String>) -> Option<&'a str> {
    let mut needing = targets.iter().filter(|target| target.requires.iter().any(|required| required == name));
    needing.find(|target| !skipped.contains(&target.name)).map(|target| target.name.as_str())
}
