//! Saved plans: a request that is checked and shown, and executed later exactly as shown, or refused.
//!
//! A plan fixes the texts of the desired state and the version of the tree of its stack. Executing it stores the request and
//! uses up the plan in one transaction. From then on the engine keeps to the plan ([`kiln_store::Planned`]).

mod approval;
mod content;
mod execute;
mod fences;
mod outside;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_identity::Caller;
use kiln_plan_document::{Action as PlannedAction, HiddenProperty, ObservedObject, PlanDocument, StackPart};
use kiln_resource::{Action, OperationId, PlanId, StackId};
use kiln_stack::load;
use kiln_store::quota::Quota;
use kiln_store::{
    Author, DesiredText, NewPlan, Operation, Plan, PlanPart, PlanQuery, PlanState, Stack, StackQuery, version_of,
};

use kiln_view::preview::Terms;

use crate::{CreateStack, Error, Service, Settings, TemplateText, UpdateStack};

pub(crate) use content::Content;
use fences::documented;

/// Maximum number of plans of a stack.
const MOST_OF_STACK: usize = 100;

/// What a plan requests.
#[derive(Clone, Debug)]
pub enum PlannedRequest {
    /// Creates a stack.
    Create(CreateStack),
    /// Updates a stack, or returns it to a revision. The resources with these paths are replaced even if they are healthy.
    Update(Box<Stack>, UpdateStack, BTreeSet<String>),
    /// Deletes a stack.
    Delete(Box<Stack>),
}

/// A saved plan.
#[derive(Clone, Debug)]
pub struct SavedPlan {
    /// The row.
    pub plan: Plan,
    /// The stack, if it exists.
    pub stack: Option<Stack>,
    /// Whether it can be executed.
    pub status: PlanStatus,
    pub(crate) content: Content,
}

/// Whether a plan can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    /// It can.
    Ready,
    /// A request has used it.
    Executed,
    /// A user has rejected it.
    Rejected,
    /// It has expired.
    Expired,
    /// The stack, or one of its nested stacks, has changed since.
    Stale,
}

impl PlanStatus {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Executed => "EXECUTED",
            Self::Rejected => "REJECTED",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
        }
    }

    /// Why a plan with this status cannot be executed; `None`: it can.
    fn obstacle(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::Executed => Some("it was executed"),
            Self::Rejected => Some("it was rejected"),
            Self::Expired => Some("it has expired"),
            Self::Stale => Some("it is out of date"),
        }
    }
}

impl SavedPlan {
    /// The description.
    pub fn description(&self) -> &str {
        &self.content.description
    }

    /// Whether it is made again, and its objects are read again, before it is executed.
    pub fn refreshes(&self) -> bool {
        self.content.fenced
    }

    /// The operation that executes it, once a request has used it.
    pub fn operation(&self) -> Option<OperationId> {
        let plan = &self.plan;
        // The request is refused unless it is the next one.
        (self.status == PlanStatus::Executed).then(|| Operation::id_of(plan.stack, plan.generation + 1))
    }

    /// The IDs of the users who made it, and the plans that it renews.
    pub(crate) fn authors(&self) -> impl Iterator<Item = &str> {
        let author = self.plan.author.as_ref().map(|author| author.user_id.as_str());
        author.into_iter().chain(self.content.earlier_authors.iter().map(String::as_str))
    }

    /// The document without the resources; `None` for a change set of the release before.
    pub fn header(&self) -> Option<&PlanDocument> {
        self.content.document.as_ref()
    }
}

/// What is saved of a checked request.
pub(crate) struct Checked {
    pub(crate) action: Action,
    pub(crate) stack: Option<Stack>,
    pub(crate) stack_id: StackId,
    pub(crate) stack_name: String,
    pub(crate) desired: Option<DesiredText>,
    pub(crate) document: PlanDocument,
    pub(crate) content: Content,
    pub(crate) observed: Vec<ObservedObject>,
    /// The values that the document masks.
    pub(crate) hidden: Vec<HiddenProperty>,
}

impl Service {
    /// Checks a request like the request itself, computes its plan and saves that. `lifetime`: at most that of the option,
    /// which is the default. `refresh`: the objects that it changes or deletes are read, and read again when it is executed.
    pub async fn save_plan(
        &self,
        caller: &Caller,
        request: PlannedRequest,
        description: String,
        lifetime: Option<Duration>,
        refresh: bool,
    ) -> Result<SavedPlan, Error> {
        let checked = Box::pin(self.check_request(caller, request)).await?;
        let checked = self.fenced(checked, description, refresh).await?;
        self.keep_plan(caller, checked, None, Some(self.lifetime(lifetime))).await
    }

    /// How long a plan can be executed.
    fn lifetime(&self, asked: Option<Duration>) -> Duration {
        asked.map_or(self.options.plan_lifetime, |asked| asked.min(self.options.plan_lifetime))
    }

    /// With what is fenced besides the tree: the objects, if `refresh`.
    async fn fenced(&self, checked: Checked, description: String, refresh: bool) -> Result<Checked, Error> {
        let refused = checked.document.is_refused().then(|| "its change would be refused".to_owned());
        let content = Content { description, refused, fenced: refresh, ..checked.content };
        let Some(stack) = checked.stack.as_ref().filter(|_| refresh) else { return Ok(Checked { content, ..checked }) };
        let new = checked.desired.as_ref().map(load::sources).transpose()?;
        let (mut document, mut hidden) = (checked.document, checked.hidden);
        let mut seen = self.observed_objects(stack, &document).await?;
        let missing = fences::missing(&document, seen.iter().map(|one| &one.object));
        if let Some(sources) = new.as_ref().filter(|_| !missing.is_empty()) {
            // An update of an object that is gone turns into a replacement, and others that refer to it change too.
            let identity = load::identity(stack).ok_or_else(|| Error::NoStack(stack.name.clone()))?;
            let blueprint =
                Arc::new(self.build(sources, &identity, &TemplateText::stored(&sources.template), true).await?);
            let terms = Terms { missing, ..self.terms(&content) };
            (document, hidden) = Box::pin(self.document_of_update(stack.clone(), blueprint, terms)).await?;
            seen = self.observed_objects(stack, &document).await?;
        }
        let document = self.with_outside(stack, document, &seen, new.as_ref()).await?;
        let observed = seen.into_iter().map(|one| one.object).collect();
        Ok(Checked { document, content, observed, hidden, ..checked })
    }

    /// Checks a request and computes its plan. The version is read first: if the stack changes meanwhile, the plan is stale.
    pub(crate) async fn check_request(&self, caller: &Caller, request: PlannedRequest) -> Result<Checked, Error> {
        if let PlannedRequest::Update(stack, ..) | PlannedRequest::Delete(stack) = &request
            && stack.parent.is_some()
        {
            // A plan is of a whole tree.
            return Err(Error::NotSupported("A plan of a nested stack".to_owned()));
        }
        match request {
            PlannedRequest::Create(new) => {
                let id = StackId(self.backends.chance.uuid());
                self.check_new(caller, &new).await?;
                let blueprint = Arc::new(self.blueprint_of_new(caller, &new, id).await?);
                let (document, hidden) = self.document_of_create(caller, id, Arc::clone(&blueprint)).await?;
                let CreateStack { name, settings, adopt, .. } = new;
                let adopt = adopt.map(|mut data| data.swap_remove("resources").unwrap_or_default());
                let parameters = blueprint.parameters().texts();
                Ok(Checked {
                    action: if adopt.is_some() { Action::Adopt } else { Action::Create },
                    stack: None,
                    stack_id: id,
                    stack_name: name,
                    desired: Some(load::texts(blueprint.sources())),
                    content: Content { settings, adopt, parameters, ..Content::default() },
                    document,
                    observed: Vec::new(),
                    hidden,
                })
            }
            PlannedRequest::Update(stack, update, replaced) => {
                let tree = self.settled_tree_of(&stack).await?;
                self.allow_update(caller, &stack).await?;
                // Tags that are not given are no change, even where the request removes them.
                let has_same_tags = update.settings.tags.as_ref().is_none_or(|tags| *tags == stack.tags);
                let (settings, adopt) = (update.all_settings(), update.adopt.clone());
                let mut previewed =
                    self.preview_replacements(caller, Stack::clone(&stack), update, replaced.clone()).await?;
                if adopt.is_empty() {
                    self.preflight_update(&mut previewed).await;
                }
                let (document, hidden) = documented(&previewed, |one| &one.preview, PlannedAction::Update);
                let previewed = previewed.expose();
                let content = Content {
                    adopt: (!adopt.is_empty()).then(|| adopt.into()),
                    parameters: previewed.parameters.clone(),
                    same_sources: previewed.same_sources && has_same_tags && replaced.is_empty(),
                    replaced,
                    settings: Settings { if_version: None, ..settings },
                    ..Content::of_tree(tree)
                };
                Ok(Checked {
                    action: Action::Update,
                    stack_id: stack.id,
                    stack_name: stack.name.clone(),
                    stack: Some(*stack),
                    desired: Some(previewed.desired.clone()),
                    content,
                    document,
                    observed: Vec::new(),
                    hidden,
                })
            }
            PlannedRequest::Delete(stack) => {
                let tree = self.settled_tree_of(&stack).await?;
                self.allow_types_of(caller, &stack).await?;
                let content = Content::of_tree(tree);
                let (document, hidden) = self.document_of_delete(Stack::clone(&stack)).await?;
                Ok(Checked {
                    action: Action::Delete,
                    stack_id: stack.id,
                    stack_name: stack.name.clone(),
                    stack: Some(*stack),
                    desired: None,
                    content,
                    document,
                    observed: Vec::new(),
                    hidden,
                })
            }
        }
    }

    /// The stacks of a tree, none of which is being changed: what a running operation still makes would be in no plan.
    async fn settled_tree_of(&self, stack: &Stack) -> Result<Vec<Stack>, Error> {
        let tree = self.tree_of(stack).await?;
        match tree.iter().find(|one| one.is_pending()) {
            Some(busy) => Err(Error::Busy { stack: busy.name.clone(), action: busy.state.action }),
            None => Ok(tree),
        }
    }

    /// Stores a plan; `name` is that of a change set.
    pub(crate) async fn keep_plan(
        &self,
        caller: &Caller,
        checked: Checked,
        name: Option<String>,
        lifetime: Option<Duration>,
    ) -> Result<SavedPlan, Error> {
        let Checked { action, stack, stack_id, stack_name, desired, document, content, observed, hidden } = checked;
        self.make_room(caller, &stack_name).await?;
        let version = content.version();
        let id = PlanId(self.backends.chance.uuid());
        if name.is_none() {
            self.refuse_older_engines(id).await?;
        }
        let mut document = PlanDocument { version, ..document };
        self.estimate(&mut document).await?;
        let digest = content::digest(id, &document)?;
        let resources = std::mem::take(&mut document.resources);
        let parts = StackPart::split(resources, observed, hidden, &content.generations()).map_err(content::damaged)?;
        let parts = parts
            .into_iter()
            .map(|(path, part)| Ok(PlanPart { path, body: serde_json::to_string(&part).map_err(content::damaged)? }));
        let parts = parts.collect::<Result<Vec<_>, Error>>()?;
        let content = Content { document: Some(document), ..content };
        let created = self.backends.clock.now();
        let plan = Plan {
            id,
            project: stack.as_ref().map_or(&caller.project_id, |stack| &stack.project).clone(),
            stack: stack_id,
            stack_name,
            name,
            action,
            generation: stack.as_ref().map_or(0, |stack| stack.generation),
            author: Some(Author { user_id: caller.user_id.clone(), username: caller.username.clone() }),
            desired: desired.as_ref().map(DesiredText::digests),
            digest,
            state: PlanState::Ready,
            body: content.to_body()?,
            created,
            expires: lifetime.map(|time| created.saturating_add(time).unwrap_or(Timestamp::MAX)),
        };
        let new = NewPlan { plan, desired, parts };
        self.backends.store.save_plan(&new).await?;
        Ok(SavedPlan { plan: new.plan, stack, status: PlanStatus::Ready, content })
    }

    /// The plans of a project, newest first, with its change sets.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no plan with the ID of the marker.
    pub async fn plans(&self, query: &PlanQuery) -> Result<Vec<SavedPlan>, Error> {
        let plans = self.backends.store.plans(query).await?;
        let mut now = self.stacks_of(&plans).await?;
        // Only a plan that may be ready needs the whole tree of its stack.
        let is_current = |plan: &&Plan| now.get(&plan.stack).is_some_and(|stack| stack.generation == plan.generation);
        let ready = plans.iter().filter(|plan| plan.state == PlanState::Ready && !self.has_expired(plan));
        let roots: BTreeSet<StackId> = ready.filter(is_current).map(|plan| plan.stack).collect();
        let mut trees: HashMap<StackId, Vec<Stack>> = HashMap::new();
        if !roots.is_empty() {
            let query = StackQuery { roots: roots.into_iter().collect(), nested: true, ..StackQuery::default() };
            for stack in self.backends.store.stacks(&query).await? {
                trees.entry(stack.root).or_default().push(stack);
            }
        }
        // The tree is newer than the row.
        now.extend(trees.values().flatten().filter(|stack| stack.id == stack.root).map(|root| (root.id, root.clone())));
        let versions: HashMap<StackId, String> = trees.into_iter().map(|(id, tree)| (id, version_of(tree))).collect();
        let saved = plans.into_iter().map(|plan| {
            let version = versions.get(&plan.stack).cloned();
            let stack = now.get(&plan.stack).cloned();
            self.saved(plan, stack.map(|stack| (stack, version)))
        });
        saved.collect()
    }

    /// The live stacks of plans by their IDs.
    async fn stacks_of(&self, plans: &[Plan]) -> Result<HashMap<StackId, Stack>, Error> {
        let ids: BTreeSet<StackId> = plans.iter().map(|plan| plan.stack).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let query = StackQuery { ids: ids.into_iter().collect(), ..StackQuery::default() };
        let stacks = self.backends.store.stacks(&query).await?;
        Ok(stacks.into_iter().map(|stack| (stack.id, stack)).collect())
    }

    fn has_expired(&self, plan: &Plan) -> bool {
        plan.expires.is_some_and(|end| end <= self.backends.clock.now())
    }

    /// A plan of the caller's project.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub async fn plan(&self, caller: &Caller, id: &str) -> Result<SavedPlan, Error> {
        let found = match id.parse() {
            Ok(id) => self.backends.store.plan(&caller.project_id, id).await?,
            Err(_) => None,
        };
        let plan = found.ok_or_else(|| Error::NotFound(format!("plan {id}")))?;
        let now = self.live(plan.stack).await?;
        self.saved(plan, now)
    }

    /// The document of a plan, as it was shown; `None` for a change set of the release before.
    pub async fn plan_document(&self, saved: &SavedPlan) -> Result<Option<PlanDocument>, Error> {
        Ok(self.whole_plan(saved).await?.map(|(document, _)| document))
    }

    /// The document of a plan, and the objects that were read for it.
    async fn whole_plan(&self, saved: &SavedPlan) -> Result<Option<(PlanDocument, Vec<ObservedObject>)>, Error> {
        let Some(header) = saved.content.document.clone() else { return Ok(None) };
        let parts = self.backends.store.plan_parts(saved.plan.id, None).await?;
        let parts = parts.iter().map(|part| serde_json::from_str(part).map_err(content::damaged));
        let parts = parts.collect::<Result<Vec<StackPart>, Error>>()?;
        let (resources, observed) = StackPart::joined(parts);
        // Sorted again, as the parts are stored by their stacks.
        let PlanDocument { resources, .. } = PlanDocument::new(header.action, String::new(), resources, Vec::new());
        let document = PlanDocument { resources, ..header };
        Ok(Some((document, observed)))
    }

    /// Rejects a plan that nobody has executed.
    pub async fn reject_plan(&self, saved: &SavedPlan) -> Result<(), Error> {
        if self.backends.store.reject_plan(saved.plan.id).await? {
            return Ok(());
        }
        Err(Error::PlanState { plan: saved.plan.id, why: "it was executed or rejected" })
    }

    /// Deletes a plan, unless its request is in progress: the engine reads it.
    ///
    /// # Errors
    /// [`Error::PlanState`]
    pub async fn delete_plan(&self, saved: &SavedPlan) -> Result<(), Error> {
        let plan = saved.plan.id;
        if self.backends.store.delete_plans(&[plan]).await?.is_empty() {
            return Ok(());
        }
        Err(Error::PlanState { plan, why: "it is being executed" })
    }

    /// A live stack with the version of its tree.
    async fn live(&self, stack: StackId) -> Result<Option<(Stack, Option<String>)>, Error> {
        let Some(stack) = self.backends.store.stack(stack).await?.filter(|stack| stack.deleted.is_none()) else {
            return Ok(None);
        };
        let version = self.version_of(&stack).await?;
        Ok(Some((stack, Some(version))))
    }

    /// A plan with its present status; `now` is the stack with its version, which an old plan does not need.
    fn saved(&self, plan: Plan, now: Option<(Stack, Option<String>)>) -> Result<SavedPlan, Error> {
        let content = Content::of_body(&plan.body)?;
        let is_current = match &now {
            Some((stack, version)) => {
                stack.generation == plan.generation && content.version().is_none_or(|planned| Some(planned) == *version)
            }
            None => plan.generation == 0,
        };
        let status = match plan.state {
            PlanState::Executed => PlanStatus::Executed,
            PlanState::Rejected => PlanStatus::Rejected,
            PlanState::Ready if self.has_expired(&plan) => PlanStatus::Expired,
            PlanState::Ready if is_current => PlanStatus::Ready,
            PlanState::Ready => PlanStatus::Stale,
        };
        Ok(SavedPlan { plan, stack: now.map(|(stack, _)| stack), status, content })
    }

    /// Limits the number of plans: old ones that cannot be executed are deleted first.
    async fn make_room(&self, caller: &Caller, stack_name: &str) -> Result<(), Error> {
        let (store, project) = (&self.backends.store, caller.project_id.clone());
        let stack_name = Some(stack_name.to_owned());
        let plans =
            store.plans(&PlanQuery { project, stack_name, without_bodies: true, ..PlanQuery::default() }).await?;
        let excess = (plans.len() + 1).saturating_sub(MOST_OF_STACK);
        if excess > 0 {
            let stacks = self.stacks_of(&plans).await?;
            let is_spent = |plan: &&Plan| self.is_spent(plan, stacks.get(&plan.stack));
            let spent: Vec<PlanId> = plans.iter().rev().filter(is_spent).take(excess).map(|plan| plan.id).collect();
            if spent.len() < excess || !store.delete_plans(&spent).await?.is_empty() {
                return Err(Error::Limit(format!("a stack can have {MOST_OF_STACK} plans and change sets")));
            }
        }
        if let Some(limit) = self.limit_of(&caller.project_id, Quota::SavedPlans).await?
            && store.count_plans(&caller.project_id).await? >= limit
        {
            return Err(Error::Limit(format!("a project can have {limit} plans and change sets")));
        }
        Ok(())
    }

    /// Whether a plan has no use any more. A change of a nested stack is not looked for.
    fn is_spent(&self, plan: &Plan, stack: Option<&Stack>) -> bool {
        let (generation, is_pending) = stack.map_or((0, false), |stack| (stack.generation, stack.is_pending()));
        match plan.state {
            PlanState::Ready => self.has_expired(plan) || generation != plan.generation,
            PlanState::Executed => !(is_pending && generation == plan.generation + 1),
            PlanState::Rejected => true,
        }
    }
}
