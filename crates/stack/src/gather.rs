//! Prepares decisions: resolves definitions, looks up names, checks failed objects.
//!
//! The decision itself is [`kiln_plan::decide`]; here is only its input from the cloud.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use indexmap::IndexMap;
use kiln_plan::{
    Blueprint, Decision, Gathered, Guards, Kind, Live, Model, StackScope, Subject, decide, facts, failure_of, observe,
};
use kiln_resource::finder::Ids;
use kiln_resource::object_drift::Shown;
use kiln_resource::translation::{Answers, Lookup};
use kiln_resource::{Cloud, Context, Converging, Failure, Observed, Resource};
use kiln_store::Stack;
use kiln_value::{Class, Map, Path, steps};

use crate::backends::Backends;
use crate::call_retry::Attempts;
use crate::load::stack_facts;
use crate::meaning::{NewMeaning, new_meanings};
use crate::sizes::check_row;

/// Prepares decisions for a stack with its desired and actual state.
pub struct Gatherer<'a> {
    /// The backends.
    pub backends: &'a Backends,
    /// The desired state, and what template functions see.
    pub scope: &'a StackScope,
    /// The rows.
    pub model: &'a Model,
    /// The stack.
    pub stack: &'a Stack,
    /// The root of its tree, which has the credentials.
    pub root: Arc<Stack>,
    /// Whether this is a preview.
    pub is_preview: bool,
    /// Maximum number of retries of a call without a response.
    pub call_retries: u32,
    /// The running request; `None` for a preview, and for a rollback, which has the generation of an update.
    pub request: Option<i64>,
    /// Maximum depth of nested stacks.
    pub nested_depth: u32,
    /// How the object is compared with the stored properties first (`converge`).
    pub converging: Converging,
    /// The guards that the request heeds.
    pub guards: Option<&'a Guards>,
}

impl Gatherer<'_> {
    /// The properties of a resource that nobody writes. A nested stack judges its own resources.
    fn left(&self, name: &str, kind: &Kind) -> BTreeSet<String> {
        let guards = self.guards.filter(|_| !kind.is_nested());
        let now = self.backends.clock.now();
        guards.map(|guards| guards.left(now, name, kind.resource_type())).unwrap_or_default()
    }

    /// The question about a resource with the current row `row`; `None` if the template has no such resource. If its
    /// definition cannot be resolved, the decision is already made. `replacement` contains the properties of the row
    /// that replaced it, if there is one.
    pub fn question(
        &self,
        name: &str,
        row: Option<Resource>,
        replacement: Option<Map>,
    ) -> Option<Result<Question, Decision>> {
        let blueprint = self.scope.blueprint();
        let (definition, kind) = (blueprint.definitions().get(name)?, blueprint.kind(name)?);
        let definition = match steps::bounded(|| blueprint.resolve(definition, self.scope)) {
            Ok(definition) => definition,
            Err(error) => return Some(Err(Decision::Refuse { failure: failure_of(&error) })),
        };
        let becomes = row
            .as_ref()
            .and_then(|row| self.backends.resource_types.types.get(&row.implementation))
            .and_then(|entry| entry.resource_type.becomes.clone());
        let restricted = blueprint.sources().environment.registry.restricted_actions(name);
        let wanted = match &row {
            Some(_) if !kind.is_nested() => blueprint.wanted_names(name),
            _ => Vec::new(),
        };
        let observed = match (&row, kind.entry()) {
            (Some(row), Some(entry)) if !wanted.is_empty() => {
                let mut facts = facts(row, kind, &stack_facts(self.stack));
                let kind_of = |row: &Resource| blueprint.kind(&row.name).cloned();
                observe(self.model, row, &*entry.driver, kind_of, &mut facts);
                facts.observed
            }
            _ => Vec::new(),
        };
        Some(Ok(Question {
            subject: Subject {
                reached: row.as_ref().is_some_and(|row| Some(row.generation) == self.request),
                row,
                definition,
                kind: kind.clone(),
                stack: stack_facts(self.stack),
                becomes,
                converging: self.converging,
                left: self.left(name, kind),
                restricted: restricted.into_iter().map(str::to_owned).collect(),
                replacement,
            },
            observed,
            wanted,
            is_preview: self.is_preview,
            is_missing: false,
            parent: (!self.is_preview && kind.is_nested()).then(|| Arc::clone(blueprint)),
            name: name.to_owned(),
            depth: self.stack.depth + 1,
            nested_depth: self.nested_depth,
            backends: self.backends.clone(),
            root: Arc::clone(&self.root),
            call_retries: self.call_retries,
        }))
    }
}

/// A resource to decide about. The definition is resolved; the rest may need the cloud.
#[derive(Clone)]
pub struct Question {
    /// What is decided about.
    pub subject: Subject,
    /// Attributes that other resources read.
    wanted: Vec<String>,
    /// What their driver reads of other resources.
    observed: Vec<Observed>,
    is_preview: bool,
    /// Whether it is known that the object does not exist any more: a saved plan has found it.
    pub is_missing: bool,
    /// The parent stack, if the resource has a nested stack, which is validated before it is created; `None` for a
    /// preview.
    pub(crate) parent: Option<Arc<Blueprint>>,
    /// The name of the resource.
    pub name: String,
    /// The depth of the nested stack.
    pub(crate) depth: u32,
    pub(crate) nested_depth: u32,
    pub(crate) backends: Backends,
    root: Arc<Stack>,
    call_retries: u32,
}

/// A decision, with the attributes that were read.
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// Attributes of an unchanged resource that are read for the first time.
    pub attributes: Map,
    /// In a preview, the names that keep their IDs but mean other objects today.
    pub meanings: Vec<NewMeaning>,
    /// In a preview, the values of the object that differ from the stored ones.
    pub drifted: Map,
}

impl Answer {
    /// A decision without anything else.
    pub fn of(decision: Decision) -> Self {
        Self { decision, attributes: Map::new(), meanings: Vec::new(), drifted: Map::new() }
    }
}

/// The failure after a panic.
pub fn bug() -> Failure {
    Failure::other(Class::InternalError, "bug in the driver of the resource type or in Kiln, see the log of the engine")
}

impl Question {
    /// Gathers the input and decides. A panic of a driver only refuses the resource.
    pub async fn answer(self) -> Answer {
        match AssertUnwindSafe(self.gather()).catch_unwind().await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => Answer::of(Decision::Refuse { failure }),
            Err(_) => Answer::of(Decision::Refuse { failure: bug() }),
        }
    }

    async fn gather(self) -> Result<Answer, Failure> {
        let now = self.backends.clock.now().as_duration().as_secs_f64();
        let constraints = self.backends.resource_types.constraints.clone();
        let mut gathered = Gathered { now, constraints, ..Gathered::default() };
        let lookups = self.subject.lookups();
        self.look_up_all(lookups.wanted, &mut gathered.answers).await?;
        self.look_up_some(lookups.may_fail, &mut gathered.answers).await?;
        if self.subject.needs_look() {
            gathered.must_replace_failed = self.must_replace_failed().await?;
        }
        if self.is_missing || self.has_lost_its_stack().await {
            gathered.live = Some(Live::Missing);
        } else if self.subject.needs_live() {
            gathered.live = self.live().await;
        }
        let mut decision = decide(&self.subject, &gathered);
        if let Decision::Replace { .. } = decision {
            self.look_up_all(self.subject.all_lookups(), &mut gathered.answers).await?;
            decision = decide(&self.subject, &gathered);
        }
        let refusal = match &decision {
            Decision::Update { definition, changed, .. } => self.child_refusal(definition, Some(changed)).await,
            Decision::Create { definition } | Decision::Replace { definition, .. } => {
                self.child_refusal(definition, None).await
            }
            Decision::Keep { .. } | Decision::Refuse { .. } | Decision::Restrict { .. } => None,
        };
        // The update itself would begin and fail.
        let refusal = refusal.or_else(|| match &decision {
            Decision::Update { definition, before, .. } if self.is_preview => {
                self.subject.refusal(before, &definition.properties)
            }
            _ => None,
        });
        if let Some(failure) = refusal {
            decision = Decision::Refuse { failure };
        }
        check_row(&*self.backends.store, &self.subject, &decision)?;
        let attributes = match &decision {
            Decision::Keep { definition } => self.read(definition.is_some()).await?,
            _ => Map::new(),
        };
        let meanings = match &decision {
            Decision::Keep { .. } | Decision::Update { .. } if self.is_preview => {
                let kept = self.subject.kept_names(&gathered);
                let names: Vec<Lookup> = kept.values().map(|kept| kept.lookup.clone()).collect();
                // What cannot be looked up is no reason to refuse: the update itself does not ask.
                _ = self.look_up_some(names, &mut gathered.answers).await;
                new_meanings(kept, &gathered.answers)
            }
            _ => Vec::new(),
        };
        let drifted = match (&gathered.live, &self.subject.row) {
            (Some(Live::Properties(shown)), Some(row)) if self.is_preview => {
                shown.drift(self.subject.kind.resource_type(), row.properties())
            }
            _ => Map::new(),
        };
        Ok(Answer { decision, attributes, meanings, drifted })
    }

    /// Looks up names without which there is no decision.
    async fn look_up_all(&self, names: IndexMap<Lookup, Path>, answers: &mut Answers) -> Result<(), Failure> {
        for (lookup, place) in names {
            if answers.contains_key(&lookup) {
                continue;
            }
            match self.look_up(&lookup).await {
                Ok(id) => answers.insert(lookup, id),
                Err(failure) if failure.is_passing() => return Err(failure),
                Err(failure) if self.is_found_in_calls(&lookup) => return Err(failure),
                Err(failure) => return Err(self.subject.unresolved(&place, &failure)),
            };
        }
        Ok(())
    }

    /// Whether Heat finds the name in a call, and not before it.
    fn is_found_in_calls(&self, lookup: &Lookup) -> bool {
        let finders = self.backends.resource_types.types.finders();
        finders.get(&lookup.finder).is_some_and(|finder| finder.ids == Ids::Taken)
    }

    /// Looks up names that may mean nothing any more.
    async fn look_up_some(
        &self,
        names: impl IntoIterator<Item = Lookup>,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        for lookup in names {
            if answers.contains_key(&lookup) {
                continue;
            }
            match self.look_up(&lookup).await {
                Ok(id) => _ = answers.insert(lookup, id),
                Err(failure) if failure.is_passing() => return Err(failure),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn look_up(&self, lookup: &Lookup) -> Result<String, Failure> {
        let mut attempts = self.attempts();
        loop {
            let found = async { self.cloud().await?.find(&lookup.finder, &lookup.value).await };
            if let Some(found) = attempts.result(found.await).await {
                return found;
            }
        }
    }

    async fn must_replace_failed(&self) -> Result<bool, Failure> {
        let (Some(row), Some(entry)) = (&self.subject.row, self.subject.kind.entry()) else { return Ok(false) };
        let facts = facts(row, &self.subject.kind, &self.subject.stack);
        let mut attempts = self.attempts();
        loop {
            let needs = async {
                let cloud = self.cloud().await?;
                let software = &self.backends.software(&facts.stack.project_id);
                let cx = Context::reading(&*cloud, software, &facts);
                entry.driver.needs_replace_failed(&cx).await
            };
            if let Some(needs) = attempts.result(needs.await).await {
                return needs;
            }
        }
    }

    /// Whether the nested stack of the resource is deleted, as far as the database answers: an operation on it would fail.
    async fn has_lost_its_stack(&self) -> bool {
        let Some(child) = self.subject.row.as_ref().and_then(|row| row.child) else { return false };
        let found = self.backends.store.stack(child).await;
        found.is_ok_and(|found| found.is_some_and(|child| child.deleted.is_some()))
    }

    /// What the cloud shows of the object. As in Heat, an object that cannot be read counts as unchanged.
    async fn live(&self) -> Option<Live> {
        let (row, entry) = (self.subject.row.as_ref()?, self.subject.kind.entry()?);
        if row.physical_id.is_none() {
            return Some(Live::Missing);
        }
        let facts = facts(row, &self.subject.kind, &self.subject.stack);
        let mut attempts = self.attempts();
        let found = loop {
            let read = async {
                let cloud = self.cloud().await?;
                let software = &self.backends.software(&facts.stack.project_id);
                let cx = Context::reading(&*cloud, software, &facts);
                Shown::read(&*entry.driver, &cx).await
            };
            if let Some(found) = attempts.result(read.await).await {
                break found;
            }
        };
        match found {
            Ok(shown) => Some(Live::Properties(shown)),
            Err(failure) if failure.is_not_found() => Some(Live::Missing),
            Err(failure) => {
                tracing::warn!(resource = self.name, %failure, "cannot compare a resource with its object");
                None
            }
        }
    }

    /// Attributes that were not read before, or with `again` all. Missing ones are null, so that they are read only once.
    async fn read(&self, again: bool) -> Result<Map, Failure> {
        let (Some(row), Some(entry)) = (&self.subject.row, self.subject.kind.entry()) else { return Ok(Map::new()) };
        let settled = row.running().is_none() && (row.physical_id.is_some() || !entry.driver.has_object());
        let is_unread = |name: &&str| again || !row.attributes.contains_key(*name);
        let names: Vec<&str> = self.wanted.iter().map(String::as_str).filter(is_unread).collect();
        if names.is_empty() || !settled {
            return Ok(Map::new());
        }
        let mut facts = facts(row, &self.subject.kind, &self.subject.stack);
        facts.observed.clone_from(&self.observed);
        let mut attempts = self.attempts();
        let mut found = loop {
            let read = async {
                let cloud = self.cloud().await?;
                let software = &self.backends.software(&facts.stack.project_id);
                let cx = Context::reading(&*cloud, software, &facts);
                entry.driver.attributes(&cx, &names).await
            };
            if let Some(found) = attempts.result(read.await).await {
                break found?;
            }
        };
        for name in names.into_iter().filter(|name| entry.resource_type.has_attribute(name)) {
            found.entry(name.to_owned()).or_default();
        }
        Ok(found)
    }

    /// The question is dropped when the engine stops.
    fn attempts(&self) -> Attempts {
        Attempts::new(&self.backends, self.call_retries, None)
    }

    async fn cloud(&self) -> Result<Arc<dyn Cloud>, Failure> {
        let needs = self.subject.kind.entry().is_none_or(|entry| entry.driver.needs_cloud());
        self.backends.cloud(&self.root, needs).await
    }

    /// The cloud for the resources of a nested stack.
    pub async fn child_cloud(&self) -> Result<Arc<dyn Cloud>, Failure> {
        self.backends.cloud(&self.root, true).await
    }
}
