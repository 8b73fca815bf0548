//! What must not have changed between a plan and its execution: the plan itself, made again, and the objects that it changes or
//! deletes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_plan_document::{
    Action, Check, Decision, Entry, HiddenProperty, Moved, ObservedObject, PlanDocument, differences,
};
use kiln_resource::StackId;
use kiln_store::Stack;
use kiln_value::{Value, text};
use kiln_view::observed_object::{Seen, observe};
use kiln_view::plan_document::Plan;
use kiln_view::preview::{Preview, Terms};

use super::{Content, SavedPlan};
use crate::{Door, Error, Guarded, HiddenValues, Masked as _, Service};

/// What an error names at most.
const NAMED: usize = 5;
/// Characters of a value in an error.
const SHOWN: usize = 60;

impl Service {
    /// The plan of a create.
    pub(super) async fn document_of_create(
        &self,
        caller: &Caller,
        id: StackId,
        blueprint: Arc<Blueprint>,
    ) -> Result<(PlanDocument, Vec<HiddenProperty>), Error> {
        let mut planned = self.plan_blueprint(caller, id, blueprint).await?;
        self.preflight_create(caller, &mut planned).await;
        Ok(documented(&planned, |preview| preview, Action::Create))
    }

    /// The plan of an update to a checked blueprint.
    pub(super) async fn document_of_update(
        &self,
        stack: Stack,
        blueprint: Arc<Blueprint>,
        terms: Terms,
    ) -> Result<(PlanDocument, Vec<HiddenProperty>), Error> {
        let view = self.view(stack).await?;
        let mut previewed = self.preview_blueprint(view, String::new(), blueprint, terms).await?;
        self.preflight_update(&mut previewed).await;
        Ok(documented(&previewed, |one| &one.preview, Action::Update))
    }

    /// The terms of a planned update.
    pub(super) fn terms(&self, content: &Content) -> Terms {
        let converge = self.converges(&content.settings);
        Terms { converge, replaced: content.replaced.clone(), ..Terms::default() }
    }

    /// The plan of a delete.
    pub(super) async fn document_of_delete(&self, stack: Stack) -> Result<(PlanDocument, Vec<HiddenProperty>), Error> {
        let previewed = self.preview_delete(stack).await?;
        Ok(documented(&previewed, |(preview, _)| preview, Action::Delete))
    }

    /// Reads the objects that a plan changes or deletes.
    pub(super) async fn observed_objects(&self, stack: &Stack, document: &PlanDocument) -> Result<Vec<Seen>, Error> {
        let touches = |entry: &&Entry| {
            let changes = matches!(entry.decision.at_most, Decision::Update | Decision::Replace | Decision::Delete);
            changes && !entry.retained
        };
        // Rows have their names before the change.
        let moved = document.moved_paths();
        let path = |entry: &Entry| moved.get(entry.path.as_str()).cloned().unwrap_or_else(|| entry.path.clone());
        let paths = document.resources.iter().filter(touches).map(path).collect();
        self.observed(stack, &paths).await
    }

    async fn observed(&self, stack: &Stack, paths: &BTreeSet<String>) -> Result<Vec<Seen>, Error> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let view = self.view(stack.clone()).await?;
        Ok(observe(&view, paths).await?)
    }

    /// Refuses a plan if its pre-flight fails today, or if it would be another one, or if others have changed its objects. Nothing
    /// is changed.
    ///
    /// # Errors
    /// [`Error::FailedPreflight`], [`Error::MovedPlan`]
    pub(super) async fn refuse_moved(
        &self,
        caller: &Caller,
        saved: &SavedPlan,
        blueprint: Option<&Arc<Blueprint>>,
    ) -> Result<(), Error> {
        let is_checked = self.has_preflight() && blueprint.is_some() && saved.content.adopt.is_none();
        if !saved.content.fenced && !is_checked {
            return Ok(());
        }
        let Some((planned, observed)) = self.whole_plan(saved).await? else { return Ok(()) };
        let (now, _) = match (&saved.stack, blueprint) {
            (None, Some(blueprint)) => self.document_of_create(caller, saved.plan.stack, Arc::clone(blueprint)).await?,
            (Some(stack), Some(blueprint)) => {
                let terms = Terms { missing: missing(&planned, &observed), ..self.terms(&saved.content) };
                self.document_of_update(stack.clone(), Arc::clone(blueprint), terms).await?
            }
            (Some(stack), None) => self.document_of_delete(stack.clone()).await?,
            (None, None) => return Err(Error::NoStack(saved.plan.stack_name.clone())),
        };
        let failures: Vec<String> = now.failures().take(NAMED).map(Check::text).collect();
        if is_checked && !failures.is_empty() {
            return Err(Error::FailedPreflight { plan: saved.plan.id, what: failures.join("; ") });
        }
        if !saved.content.fenced {
            return Ok(());
        }
        let mut what = differences(&planned, &now, NAMED);
        if let Some(stack) = saved.stack.as_ref().filter(|_| !observed.is_empty()) {
            let paths = observed.iter().map(|object| object.path.clone()).collect();
            let today = self.observed(stack, &paths).await?;
            let today: HashMap<_, _> =
                today.iter().map(|now| ((&now.object.path, &now.object.id), &now.object)).collect();
            let mut hidden = None;
            for object in &observed {
                if what.len() >= NAMED {
                    break;
                }
                let Some(now) = today.get(&(&object.path, &object.id)) else {
                    what.push(format!("{}: its object {} cannot be read", object.path, object.id));
                    continue;
                };
                for moved in object.moved(now) {
                    if hidden.is_none() {
                        // What is hidden after the change may be there already.
                        let new = blueprint.map(|blueprint| blueprint.sources());
                        hidden = Some(self.hidden_values_of_change(stack, new).await?);
                    }
                    what.extend(hidden.as_ref().map(|hidden| said(&object.path, moved, hidden)));
                }
            }
        }
        what.truncate(NAMED);
        if what.is_empty() { Ok(()) } else { Err(Error::MovedPlan { plan: saved.plan.id, what: what.join("; ") }) }
    }
}

/// The paths of the resources that a plan updates or replaces although their objects do not exist any more.
pub(super) fn missing<'a>(
    document: &PlanDocument,
    observed: impl IntoIterator<Item = &'a ObservedObject>,
) -> BTreeSet<String> {
    let gone = observed.into_iter().filter(|object| object.properties.is_none());
    let gone: BTreeSet<&str> = gone.map(|object| object.path.as_str()).collect();
    let stays =
        |entry: &&Entry| matches!(entry.decision.at_most, Decision::Update | Decision::Replace) && !entry.former;
    let moved = document.moved_paths();
    let is_gone = |path: &&str| gone.contains(moved.get(*path).map_or(*path, String::as_str));
    let paths = document.resources.iter().filter(stays).map(|entry| entry.path.as_str());
    paths.filter(is_gone).map(str::to_owned).collect()
}

/// The document of a preview, and the values that it masks.
pub(super) fn documented<T>(
    previewed: &Guarded<T>,
    preview: impl Fn(&T) -> &Preview,
    action: Action,
) -> (PlanDocument, Vec<HiddenProperty>) {
    let shown = previewed.shown(Door::Plan, |one| Plan::of(preview(one), action)).0;
    if !previewed.hides() {
        return (shown, Vec::new());
    }
    let hidden = HiddenProperty::all(&shown, Plan::of(preview(previewed.expose()), action).0);
    (shown, hidden)
}

/// What has moved, without hidden values.
fn said(path: &str, moved: Moved, hidden: &HiddenValues) -> String {
    let shown = |mut value: Value| {
        value.mask(hidden);
        let text = text::json(&value);
        if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN).collect::<String>() + "…" }
    };
    match moved {
        Moved::Gone => format!("{path}: its object does not exist any more"),
        Moved::Back => format!("{path}: its object exists again"),
        Moved::Property { name, before, now } => {
            format!("{path}: others have changed {name} from {} to {}", shown(before), shown(now))
        }
    }
}
