//! Guards: adds and lifts them, and refuses at once what they forbid.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kiln_identity::{Caller, DefaultCheck, DefaultRule};
use kiln_plan::{Blueprint, Event, Guards, HeldGuard, Model};
use kiln_plan_document::{Decision, PlanDocument};
use kiln_resource::{Action, GuardId, GuardRule, GuardedRequest, Resource, StackPolicy, Status, Verb};
use kiln_stack::guards::{heeded, held, held_for, replace_policy, words};
use kiln_stack::load;
use kiln_store::{Author, Guard, GuardTerms, Stack, StackId, StackQuery};
use kiln_view::preview::Preview;

use crate::{Error, Service};

/// The rule of who may add a guard.
pub const ADD_GUARD: DefaultRule = DefaultRule { name: "guards:create", check: DefaultCheck::MEMBER };
/// The rule of who may lift one.
pub const LIFT_GUARD: DefaultRule = DefaultRule { name: "guards:lift", check: DefaultCheck::MEMBER };

/// Guards of a project that are not lifted.
const MOST_GUARDS: usize = 1_000;
/// Characters of a reason.
const LONGEST_REASON: usize = 1_000;

/// A guard that was added, or was there already.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedGuard {
    /// The guard.
    pub guard: Guard,
    /// The operations that it forbids and that had begun before it: these are not stopped, all others are.
    pub in_flight: Vec<InFlight>,
    /// The paths of the resources whose objects are locked in the cloud.
    pub locked: Vec<String>,
}

/// An operation that had begun when a guard was added that forbids it.
#[derive(Clone, Debug, PartialEq)]
pub struct InFlight {
    /// The root stack.
    pub stack: StackId,
    /// The path of the resource below it.
    pub path: String,
    /// What is done with it.
    pub action: Action,
}

/// The rows of the tree of a stack, and what guards say about them.
pub(crate) struct GuardedTree {
    guards: Guards,
    /// By path. A name that is being replaced has several rows.
    rows: BTreeMap<String, Vec<Resource>>,
    stack_name: String,
}

impl GuardedTree {
    /// Refuses the delete of the objects with some paths.
    ///
    /// # Errors
    /// [`Error::UnderGuard`]
    fn refuse_deletes(&self, now: Timestamp, goes: impl Fn(&str) -> bool) -> Result<(), Error> {
        let rows = self.rows.iter().filter(|(path, _)| goes(path));
        let rows = rows.flat_map(|(path, rows)| rows.iter().map(move |row| (path, row)));
        let mut refused = rows.filter(|(_, row)| row.may_have_object()).filter_map(|(path, row)| {
            let why = self.guards.refusal(now, Verb::Delete, (path, &row.resource_type), Some(row))?;
            Some(Error::UnderGuard { what: format!("the resource {path} of the stack {}", self.stack_name), why })
        });
        refused.next().map_or(Ok(()), Err)
    }

    /// Refuses to move resources from one path to another where a guard would not hold for them any more. No path: they leave
    /// the stack, and with it all of its guards.
    ///
    /// # Errors
    /// [`Error::UnderGuard`]
    fn refuse_move(&self, now: Timestamp, from: &str, to: Option<&str>) -> Result<(), Error> {
        for (path, rows) in self.rows.iter().filter(|(path, _)| is_inside(path, from)) {
            let moved = to.map(|to| format!("{to}{}", path.strip_prefix(from).unwrap_or_default()));
            for row in rows {
                let holding = |path: &str| -> Vec<Option<&HeldGuard>> {
                    let verbs = [Verb::Delete, Verb::Replace, Verb::Update].into_iter();
                    let what = (path, row.resource_type.as_str());
                    let forbidding = verbs.map(|verb| self.guards.forbidding(now, verb, what, Some(row)));
                    let ignoring = row.properties().keys().map(|name| Some(self.guards.ignoring(now, path, name)?.0));
                    forbidding.chain(ignoring).collect()
                };
                let there = moved.as_deref().map(holding).unwrap_or_default();
                let there = there.into_iter().map(|guard| guard.is_some()).chain(std::iter::repeat(false));
                let lost = holding(path).into_iter().zip(there).find_map(|(guard, holds)| guard.filter(|_| !holds));
                if let Some(guard) = lost {
                    let what = format!("the resource {path} of the stack {}", self.stack_name);
                    let why = match &moved {
                        Some(moved) => format!("it would move to {moved}, where {} does not hold", guard.words),
                        None => format!("it would leave the stack, and {} holds only there", guard.words),
                    };
                    return Err(Error::UnderGuard { what, why });
                }
            }
        }
        Ok(())
    }

    /// Why something must not be done with a resource.
    pub(crate) fn refusal(&self, now: Timestamp, verb: Verb, path: &str, resource_type: &str) -> Option<String> {
        let row = self.rows.get(path).and_then(|rows| rows.iter().find(|row| row.replaced_by.is_none()));
        self.guards.refusal(now, verb, (path, resource_type), row)
    }
}

impl Service {
    /// Adds a guard for a root stack, or for all stacks of the project of the caller. A guard that is there already is
    /// returned; its objects are locked again.
    ///
    /// # Errors
    /// [`Error::Value`], [`Error::Limit`], [`Error::Lock`], and errors of the store.
    pub async fn add_guard(
        &self,
        caller: &Caller,
        stack: Option<&Stack>,
        terms: GuardTerms,
    ) -> Result<AddedGuard, Error> {
        let now = self.backends.clock.now();
        check_terms(&terms, stack, now)?;
        let store = &self.backends.store;
        let there = store.guards(&caller.project_id).await?;
        let root = stack.map(|stack| stack.id);
        if let Some(same) = there.iter().find(|guard| guard.stack == root && guard.terms == terms) {
            return self.with_effect(same.clone()).await;
        }
        if there.len() >= MOST_GUARDS {
            return Err(Error::Limit(format!("You have reached the maximum guards per project, {MOST_GUARDS}.")));
        }
        self.refuse_older_engines_to("A guard").await?;
        let guard = Guard {
            id: GuardId(self.backends.chance.uuid()),
            project: caller.project_id.clone(),
            stack: root,
            terms,
            author: author(caller),
            created: now,
        };
        store.add_guard(&guard).await?;
        tracing::info!(guard = %guard.id, project = guard.project, user = caller.user_id, "guard added");
        self.with_effect(guard).await
    }

    /// Locks the objects of a guard that is stored.
    async fn with_effect(&self, guard: Guard) -> Result<AddedGuard, Error> {
        let in_flight = self.in_flight(&guard, self.backends.clock.now()).await?;
        let locked = self.lock_objects(&guard).await?;
        Ok(AddedGuard { guard, in_flight, locked })
    }

    /// The guards of the project of the caller, or those that hold for the tree of a root stack.
    pub async fn guards(&self, caller: &Caller, root: Option<StackId>) -> Result<Vec<Guard>, Error> {
        let now = self.backends.clock.now();
        let mut guards = self.backends.store.guards(&caller.project_id).await?;
        guards.retain(|guard| match root {
            Some(root) => guard.holds_for(root, now),
            None => guard.is_in_force(now),
        });
        Ok(guards)
    }

    /// A guard of the project of the caller, also one that has ended by itself.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub async fn guard(&self, caller: &Caller, id: &str) -> Result<Guard, Error> {
        let guards = self.backends.store.guards(&caller.project_id).await?;
        let found = guards.into_iter().find(|guard| guard.id.to_string() == id);
        found.ok_or_else(|| Error::NotFound(format!("Guard {id}")))
    }

    /// Lifts a guard, and unlocks its objects before.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Lock`]
    pub async fn lift_guard(&self, caller: &Caller, guard: &Guard) -> Result<(), Error> {
        self.unlock_objects(guard).await?;
        if !self.backends.store.lift_guard(&guard.project, guard.id, &author(caller)).await? {
            return Err(Error::NotFound(format!("Guard {}", guard.id)));
        }
        tracing::info!(guard = %guard.id, project = guard.project, user = caller.user_id, "guard lifted");
        Ok(())
    }

    /// Protects a root stack from being deleted, or no longer. Guards of its whole project stay.
    pub async fn protect_from_deletion(&self, caller: &Caller, stack: &Stack, protect: bool) -> Result<(), Error> {
        if protect {
            let terms = GuardTerms { rule: termination_protection(), until: None, reason: String::new() };
            return self.add_guard(caller, Some(stack), terms).await.map(drop);
        }
        self.lift_own(caller, stack, |rule| *rule == termination_protection()).await
    }

    /// Whether a root stack is protected from being deleted.
    pub async fn is_protected_from_deletion(&self, stack: &Stack) -> Result<bool, Error> {
        let guards = held_for(&*self.backends.store, stack, self.backends.clock.now()).await?;
        let protects = |guard: &Guard| match &guard.terms.rule {
            GuardRule::Protect { from, resources: None, .. } => from.contains(&Verb::Delete),
            _ => false,
        };
        Ok(guards.iter().any(protects))
    }

    /// Sets the stack policy of a root stack. The new one holds before the former one is lifted.
    pub async fn set_stack_policy(&self, caller: &Caller, stack: &Stack, policy: StackPolicy) -> Result<(), Error> {
        let rule = GuardRule::StackPolicy(policy);
        let terms = GuardTerms { rule: rule.clone(), until: None, reason: String::new() };
        self.add_guard(caller, Some(stack), terms).await?;
        self.lift_own(caller, stack, |other| matches!(other, GuardRule::StackPolicy(_)) && *other != rule).await
    }

    /// The stack policy of a stack.
    pub async fn stack_policy(&self, stack: &Stack) -> Result<Option<StackPolicy>, Error> {
        let guards = held_for(&*self.backends.store, stack, self.backends.clock.now()).await?;
        let mut policies = guards.into_iter().filter_map(|guard| match guard.terms.rule {
            GuardRule::StackPolicy(policy) => Some(policy),
            _ => None,
        });
        Ok(policies.next_back())
    }

    /// Lifts guards of a stack itself.
    async fn lift_own(
        &self,
        caller: &Caller,
        stack: &Stack,
        is_meant: impl Fn(&GuardRule) -> bool,
    ) -> Result<(), Error> {
        let guards = self.backends.store.guards(&stack.project).await?;
        for guard in guards.iter().filter(|guard| guard.stack == Some(stack.id) && is_meant(&guard.terms.rule)) {
            self.lift_guard(caller, guard).await?;
        }
        Ok(())
    }

    /// Refuses a request to a stack that guards forbid, as far as that is known before it begins; whether it needs a plan.
    pub(crate) async fn heed_guards(&self, stack: &Stack, action: Action) -> Result<bool, Error> {
        let now = self.backends.clock.now();
        let guards = held_for(&*self.backends.store, stack, now).await?;
        let request = GuardedRequest { action, is_signal: false };
        if let Some(guard) = guards.iter().find(|guard| guard.terms.rule.forbids_request(request)) {
            return Err(refused(stack, guard));
        }
        if action == Action::Delete
            && let Some(tree) = self.guarded_tree(stack, action, None).await?
        {
            let root = load::place(&*self.backends.store, stack).await?.join("/");
            tree.refuse_deletes(now, |path| root.is_empty() || is_inside(path, &root))?;
        }
        Ok(guards.iter().any(|guard| guard.terms.rule == GuardRule::RequirePlans))
    }

    /// Refuses an update that removes guarded resources from the template. `policy`: its own stack policy, if it has one.
    pub(crate) async fn refuse_removals(
        &self,
        stack: &Stack,
        new: &Blueprint,
        policy: Option<&StackPolicy>,
    ) -> Result<(), Error> {
        let Some(tree) = self.guarded_tree(stack, Action::Update, policy).await? else { return Ok(()) };
        let root = load::place(&*self.backends.store, stack).await?.join("/");
        let name = |path: &str| {
            let inside = if root.is_empty() { Some(path) } else { path.strip_prefix(&root)?.strip_prefix('/') };
            inside?.split('/').next().map(str::to_owned)
        };
        let (now, moves) = (self.backends.clock.now(), new.moves());
        let stays = |name: &String| new.definitions().contains_key(name);
        let moves: Vec<&(String, String)> = moves.iter().filter(|(from, _)| !stays(from)).collect();
        for (from, to) in &moves {
            tree.refuse_move(now, &inside(&root, from), Some(&inside(&root, to)))?;
        }
        let goes = |name: &String| !stays(name) && moves.iter().all(|(from, _)| from != name);
        tree.refuse_deletes(now, |path| name(path).is_some_and(|name| goes(&name)))
    }

    /// Refuses to give guarded resources of a root stack names for which the guard does not hold, or to take them out of it (no
    /// name).
    pub(crate) async fn refuse_moves(&self, stack: &Stack, moves: &[(&str, Option<&str>)]) -> Result<(), Error> {
        let Some(tree) = self.guarded_tree(stack, Action::Update, None).await? else { return Ok(()) };
        let now = self.backends.clock.now();
        moves.iter().try_for_each(|(from, to)| tree.refuse_move(now, from, *to))
    }

    /// Refuses a change of a frozen stack that is no request to it; `is_signal`: a signal to one of its resources.
    pub(crate) async fn refuse_frozen(&self, stack: &Stack, is_signal: bool) -> Result<(), Error> {
        let guards = held_for(&*self.backends.store, stack, self.backends.clock.now()).await?;
        let freezes = |guard: &&Guard| match guard.terms.rule {
            GuardRule::Freeze { signals } => signals || !is_signal,
            _ => false,
        };
        guards.iter().find(freezes).map_or(Ok(()), |guard| Err(refused(stack, guard)))
    }

    /// Refuses a new stack in a project that is frozen; whether its create needs a plan. `guards`: as the store has counted
    /// them.
    pub(crate) async fn heed_guards_of_project(&self, caller: &Caller, guards: i64) -> Result<bool, Error> {
        if guards == 0 {
            return Ok(false);
        }
        let now = self.backends.clock.now();
        let mut guards = self.backends.store.guards(&caller.project_id).await?;
        guards.retain(|guard| guard.stack.is_none() && guard.is_in_force(now));
        if let Some(guard) = guards.iter().find(|guard| matches!(guard.terms.rule, GuardRule::Freeze { .. })) {
            let what = "a new stack in this project".to_owned();
            return Err(Error::UnderGuard { what, why: format!("{} forbids it", words(guard)) });
        }
        Ok(guards.iter().any(|guard| guard.terms.rule == GuardRule::RequirePlans))
    }

    /// Notes in a preview what guards forbid.
    pub(crate) async fn note_guards(&self, stack: &Stack, action: Action, preview: &mut Preview) -> Result<(), Error> {
        if let Some(guards) = self.placed_guards(stack, action).await? {
            let now = self.backends.clock.now();
            preview.note_ignored(&|path, property| {
                let (guard, leaves) = guards.ignoring(now, path, property)?;
                Some((guard.words.clone(), leaves))
            });
            preview.heed(&|verb, resource, row| Some(guards.forbidding(now, verb, resource, row)?.words.clone()));
        }
        Ok(())
    }

    /// Refuses to execute a plan that certainly does what a guard forbids.
    pub(crate) async fn refuse_guarded_plan(
        &self,
        stack: &Stack,
        action: Action,
        plan: &PlanDocument,
    ) -> Result<(), Error> {
        let Some(tree) = self.guarded_tree(stack, action, None).await? else { return Ok(()) };
        let now = self.backends.clock.now();
        let refused = plan.resources.iter().filter(|entry| entry.decision.is_certain()).find_map(|entry| {
            let verb = match entry.decision.at_most {
                Decision::Update => Verb::Update,
                Decision::Replace => Verb::Replace,
                Decision::Delete => Verb::Delete,
                Decision::Create => Verb::Create,
                Decision::Keep | Decision::Refuse => return None,
            };
            let why = tree.refusal(now, verb, &entry.path, &entry.resource_type)?;
            Some(Error::UnderGuard { what: format!("the resource {} of the stack {}", entry.path, stack.name), why })
        });
        refused.map_or(Ok(()), Err)
    }

    /// The guards that hold for the tree of a stack during a request, with its place; `None`: there are none.
    pub(crate) async fn placed_guards(&self, stack: &Stack, action: Action) -> Result<Option<Guards>, Error> {
        let Some(mut guards) = self.guards_for(stack, action, None).await? else { return Ok(None) };
        guards.path = load::place(&*self.backends.store, stack).await?.join("/");
        Ok(Some(guards))
    }

    /// The guards that hold for the tree of a stack during a request; `None`: there are none. `policy`: the stack policy of
    /// the request instead of that of the stack.
    async fn guards_for(
        &self,
        stack: &Stack,
        action: Action,
        policy: Option<&StackPolicy>,
    ) -> Result<Option<Guards>, Error> {
        let mut guards = held_for(&*self.backends.store, stack, self.backends.clock.now()).await?;
        if let Some(policy) = policy {
            replace_policy(&mut guards, policy);
        }
        let request = GuardedRequest { action, is_signal: false };
        let guards: Vec<_> = guards.into_iter().map(held).collect();
        Ok((!guards.is_empty()).then(|| Guards { guards, path: String::new(), request, made_since: None }))
    }

    /// The rows of the whole tree of a stack; `None`: no guard holds for it, and nothing is read.
    async fn guarded_tree(
        &self,
        stack: &Stack,
        action: Action,
        policy: Option<&StackPolicy>,
    ) -> Result<Option<GuardedTree>, Error> {
        let Some(guards) = self.guards_for(stack, action, policy).await? else { return Ok(None) };
        let tree = self.tree_of(stack).await?;
        let ids: Vec<StackId> = tree.iter().map(|stack| stack.id).collect();
        let places = load::places(&tree);
        let mut rows: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
        for row in self.backends.store.resources_of(&ids).await? {
            let place = places.get(&row.stack).map(String::as_str).unwrap_or_default();
            rows.entry(inside(place, &row.name)).or_default().push(row);
        }
        let root =
            tree.into_iter().find(|one| one.id == stack.root).map_or_else(|| stack.name.clone(), |root| root.name);
        Ok(Some(GuardedTree { guards, rows, stack_name: root }))
    }

    /// The running operations that a guard would forbid.
    async fn in_flight(&self, guard: &Guard, now: Timestamp) -> Result<Vec<InFlight>, Error> {
        let query = StackQuery {
            project: Some(guard.project.clone()),
            root: guard.stack,
            nested: true,
            statuses: vec![Status::InProgress.as_str().to_owned()],
            ..StackQuery::default()
        };
        let mut found = Vec::new();
        for stack in self.backends.store.stacks(&query).await? {
            let guards = heeded(&*self.backends.store, &stack, vec![guard.clone()]).await?;
            let place = guards.path.clone();
            let mut model = Model::new(self.backends.store.resources(stack.id).await?);
            model.decide(now, Event::Guarded(Some(guards.into())));
            let running = model.rows().filter(|row| row.child.is_none() && model.guarded(row.id).is_some());
            found.extend(running.map(|row| InFlight {
                stack: stack.root,
                path: inside(&place, &row.name),
                action: row.state.action,
            }));
        }
        Ok(found)
    }

    /// Refuses what an engine of a release before would ignore, while one runs.
    pub async fn refuse_older_engines_to(&self, what: &str) -> Result<(), Error> {
        let engines = self.backends.store.engines().await?;
        let Some(old) = engines.iter().find(|engine| !engine.heeds_guards()) else { return Ok(()) };
        let host = &old.hostname;
        Err(Error::NotSupported(format!("{what} while an engine of an older release is running on {host}")))
    }
}

/// What protects a stack from being deleted.
fn termination_protection() -> GuardRule {
    GuardRule::Protect { from: BTreeSet::from([Verb::Delete]), resources: None, lock: false }
}

/// Refuses terms that protect nothing, or not what they say.
fn check_terms(terms: &GuardTerms, stack: Option<&Stack>, now: Timestamp) -> Result<(), Error> {
    let invalid = |why: &str| Err(Error::Value(why.to_owned()));
    if stack.is_some_and(|stack| stack.parent.is_some()) {
        return invalid("a guard is of a root stack: name what is in a nested stack by its path (group/0/server)");
    }
    if terms.until.is_some_and(|until| until <= now) {
        return invalid("the guard would end in the past");
    }
    if terms.reason.chars().count() > LONGEST_REASON {
        return invalid("the reason of a guard has at most 1000 characters");
    }
    match &terms.rule {
        GuardRule::Protect { from, .. } if from.is_empty() || from.contains(&Verb::Create) => {
            invalid("a guard protects from update, replace or delete")
        }
        GuardRule::Protect { from, resources: None, .. } if from.contains(&Verb::Replace) => invalid(
            "a stack as a whole is protected from update or delete: name resources to protect them from replace",
        ),
        GuardRule::Protect { resources: Some(pattern), .. } if pattern.split('/').any(str::is_empty) => {
            invalid("a path of resources has names between its slashes")
        }
        GuardRule::Protect { lock: true, .. } if stack.is_none() || terms.until.is_some() => {
            invalid("a guard that locks objects in the cloud is of one stack, and does not end by itself")
        }
        GuardRule::Ignore { .. } if stack.is_none() => invalid("what others do is ignored in one stack"),
        GuardRule::Ignore { properties, .. }
            if properties.is_empty() || !properties.iter().all(|one| is_property(one)) =>
        {
            invalid("a property is named by the path of its resource, a dot and its name: group/0/server.tags")
        }
        GuardRule::StackPolicy(_) if stack.is_none() => invalid("a stack policy is of a stack"),
        _ => Ok(()),
    }
}

/// Whether a pattern names a property of a resource.
fn is_property(pattern: &str) -> bool {
    let parts = pattern.rsplit_once('.');
    parts.is_some_and(|(path, name)| {
        !name.is_empty() && !name.contains('/') && path.split('/').all(|part| !part.is_empty())
    })
}

fn author(caller: &Caller) -> Author {
    Author { user_id: caller.user_id.clone(), username: caller.username.clone() }
}

/// The error of a request that a guard forbids.
fn refused(stack: &Stack, guard: &Guard) -> Error {
    Error::UnderGuard { what: format!("the stack {}", stack.name), why: format!("{} forbids it", words(guard)) }
}

/// The path of a resource in a stack with this path.
pub(crate) fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") }
}

/// Whether a path is that of a place or inside of it.
fn is_inside(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
