//! Users, whose requests a service writes to the store as the API does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_plan::Sources;
use kiln_resource::{Action, MessageId, Resource, StackId, State, Status};
use kiln_stack::load;
use kiln_store::{
    Cancel, Error, GuardId, GuardStore as _, HealthMark, Message, MessageBody, NewStack, OperationQuery,
    OperationStore as _, Operations, Stack, StackRequest, Store,
};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, value};
use uuid::Uuid;

use crate::dice;
use crate::gate::Gate;
use crate::left::Left;
use crate::scenario::{Ask, UserAction, Wish};
use crate::simulation::{Label, Simulation};
use crate::states;
use crate::store_link::StoreLink;
use crate::template_model::alias;
use crate::{continued, crashes, guards, plans, sinks, trusts};

/// Maximum number of attempts of a user.
const TRIES: u32 = 40;

/// The service of the users.
pub(crate) struct Users {
    pub(crate) sim: Arc<Simulation>,
    pub(crate) store: StoreLink,
    /// What abandoned stacks have left, by name.
    pub(crate) left: Mutex<BTreeMap<String, Left>>,
}

impl Users {
    /// A service on the store.
    pub(crate) fn new(sim: &Arc<Simulation>) -> Arc<Self> {
        let label = Label { slot: None, life: 0 };
        let store = StoreLink::new(Arc::clone(sim), label, Arc::new(Gate::default()));
        Arc::new(Self { sim: Arc::clone(sim), store, left: Mutex::default() })
    }

    /// Sends a request until there is a response.
    pub(crate) async fn act(&self, number: usize, action: &UserAction) {
        let mut meant = None;
        for attempt in 0..TRIES {
            let trying = self.attempt((number, attempt), action, &mut meant);
            let tried = match crashes::breaks_off(&self.sim, number) {
                None => trying.await,
                Some(after) => tokio::time::timeout(after, trying)
                    .await
                    .unwrap_or_else(|_| Err(Error::Database("the user has broken the request off".into()))),
            };
            match tried {
                Ok(()) => return,
                Err(error) => {
                    self.sim.trace.note("user", || format!("{:?} of {}: {error}", action.ask, action.stack));
                    // Shared credentials may be revoked in the meantime.
                    let is_shared = matches!((&error, &action.ask), (Error::NotFound(_), Ask::Create(_)));
                    if !is_shared && !matches!(error, Error::Database(_) | Error::Changed(_)) {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(200 * u64::from(attempt + 1))).await;
                }
            }
        }
    }

    /// `meant`: the stack of the first attempt.
    async fn attempt(
        &self,
        (number, attempt): (usize, u32),
        action: &UserAction,
        meant: &mut Option<StackId>,
    ) -> Result<(), Error> {
        let name = stack_name(action.stack);
        let stack = self.store.stack_by_name("sim", &name).await?;
        match (&action.ask, stack) {
            (Ask::Create(wish), None) => match self.abandoned(&name) {
                Some(left) => self.adopt((number, attempt), &name, &left).await,
                None => self.create((number, attempt), &name, wish).await,
            },
            (Ask::Create(_), Some(stack)) => {
                // The response to an attempt was lost.
                if stack.id == StackId(self.uuid(("stack", number))) {
                    self.forget(&name);
                }
                Ok(())
            }
            (_, None) => Ok(()),
            // The service refuses all requests to an abandoned stack except a delete.
            (ask, Some(stack)) if stack.is_abandoned() && ask.is_request() => Ok(()),
            // The URL of a signal contains the ID of the stack, not only its name.
            (Ask::Signal { .. }, Some(stack)) if *meant.get_or_insert(stack.id) != stack.id => Ok(()),
            (Ask::Signal { resource, count }, Some(stack)) => self.signal(number, &stack, resource, *count).await,
            (Ask::Mark(resource), Some(stack)) => self.mark(number, &stack, resource).await,
            (Ask::Protect, Some(stack)) => self.protect(number, &stack).await,
            (Ask::Unprotect, Some(stack)) => self.unprotect(&stack).await,
            (Ask::Stay, Some(stack)) => self.stay(number, &stack).await,
            (Ask::Continue, Some(stack)) => {
                let skips = continued::skips(&self.sim, number, &stack).await?;
                self.go_on(&stack, skips).await
            }
            (Ask::Return(back), Some(stack)) => self.return_to(&stack, *back).await,
            (Ask::Snapshot, Some(stack)) => self.snapshot(number, &stack).await,
            (Ask::Restore, Some(stack)) => self.restore(&stack).await,
            (Ask::DropSnapshot, Some(stack)) => self.drop_snapshot(number, &stack).await,
            (Ask::Abandon, Some(stack)) => self.abandon(&name, &stack).await,
            (ask, Some(stack)) => self.ask(ask, &stack).await,
        }
    }

    async fn create(&self, (number, attempt): (usize, u32), name: &str, wish: &Wish) -> Result<(), Error> {
        let id = StackId(self.uuid(("stack", number)));
        if self.store.stack(id).await?.is_some() {
            // The response to the first attempt was lost.
            return Ok(());
        }
        let mark = self.uuid(("trust", number, attempt)).to_string();
        let credentials = match trusts::shared(&self.sim, attempt) {
            Some(shared) => shared,
            None => trusts::make(&self.sim, &self.store, &mark).await?,
        };
        let sources = sources(wish, self.sim.scenario.sink);
        let stack = NewStack {
            disable_rollback: !wish.rollback,
            timeout_mins: wish.timeout_mins,
            username: "user".to_owned(),
            user_id: "user".to_owned(),
            credentials: Some(credentials),
            ..NewStack::new(id, name.to_owned(), "sim".to_owned(), load::texts(&sources), self.sim.store_clock.now())
        };
        self.sim.ledger.learn(&stack.desired.digests(), Arc::new(wish.template.clone()));
        let made = self.store.create_stack(stack).await?;
        self.sim.ledger.see(&self.sim, &made, true);
        Ok(())
    }

    async fn ask(&self, ask: &Ask, stack: &Stack) -> Result<(), Error> {
        let (action, wish) = match ask {
            Ask::Update(wish) => (Action::Update, Some(wish)),
            Ask::Cancel => (Action::Rollback, None),
            Ask::Delete => (Action::Delete, None),
            Ask::Suspend => (Action::Suspend, None),
            Ask::Resume => (Action::Resume, None),
            Ask::Check => (Action::Check, None),
            Ask::Create(_)
            | Ask::Signal { .. }
            | Ask::Mark(_)
            | Ask::Protect
            | Ask::Unprotect
            | Ask::Stay
            | Ask::Return(_)
            | Ask::Continue
            | Ask::Snapshot
            | Ask::Restore
            | Ask::DropSnapshot
            | Ask::Abandon => return Ok(()),
        };
        if !states::user_may_ask(stack.state, stack.is_pending(), action) {
            return Ok(());
        }
        let now = self.sim.store_clock.now();
        let mut request = match action {
            Action::Delete => StackRequest::delete(stack, now),
            _ => StackRequest { if_generation: Some(stack.generation), ..StackRequest::new(action, now) },
        };
        if let Some(wish) = wish {
            let sources = sources(wish, self.sim.scenario.sink);
            let texts = load::texts(&sources);
            if wish.planned
                && let Some(saved) = plans::save(&self.sim, &self.store, stack, sources).await?
            {
                request.details.planned = Some(saved.planned);
                request.if_version = Some(saved.version);
            }
            self.sim.ledger.learn(&texts.digests(), Arc::new(wish.template.clone()));
            request.desired = Some(texts);
            request.disable_rollback = Some(!wish.rollback);
            request.timeout_mins = wish.timeout_mins;
        }
        self.store.request(stack.id, request).await.map(drop)
    }

    async fn signal(&self, number: usize, stack: &Stack, resource: &str, count: u32) -> Result<(), Error> {
        for nth in 0..count {
            let body = value!({"message": (format!("{number}.{nth}"))});
            self.send((number, nth), stack, Some(resource), MessageBody::Signal(body)).await?;
        }
        Ok(())
    }

    async fn mark(&self, number: usize, stack: &Stack, resource: &str) -> Result<(), Error> {
        let rows = self.store.resources(stack.id).await?;
        let of_name = |row: &&Resource| row.name == resource;
        if rows.iter().filter(of_name).any(|row| row.state.status == Status::InProgress) {
            return Ok(());
        }
        let mark = HealthMark { unhealthy: true, reason: Some("it looks bad".to_owned()) };
        self.send((number, 0), stack, Some(resource), MessageBody::MarkUnhealthy(mark)).await
    }

    async fn protect(&self, number: usize, stack: &Stack) -> Result<(), Error> {
        let id = GuardId(self.uuid(("guard", number)));
        self.store.add_guard(&guards::guard(id, stack, &self.sim)).await
    }

    async fn unprotect(&self, stack: &Stack) -> Result<(), Error> {
        for guard in self.store.guards(&stack.project).await? {
            if guard.stack == Some(stack.id) {
                self.store.lift_guard(&stack.project, guard.id, &guards::author()).await?;
            }
        }
        Ok(())
    }

    async fn stay(&self, number: usize, stack: &Stack) -> Result<(), Error> {
        let begun = [Action::Create, Action::Update].map(|action| State::new(action, Status::InProgress));
        if !begun.contains(&stack.state) {
            return Ok(());
        }
        let cancel = Cancel { generation: Some(stack.generation), ..Cancel::default() };
        self.send((number, 0), stack, None, MessageBody::Cancel(cancel)).await
    }

    /// Continues what has failed, without the resources with these paths.
    pub(crate) async fn go_on(&self, stack: &Stack, skip: Vec<String>) -> Result<(), Error> {
        let action = stack.state.action;
        let continues = matches!(action, Action::Create | Action::Update | Action::Rollback | Action::Delete);
        if stack.is_pending() || stack.state.status != Status::Failed || !continues || stack.details.snapshot.is_some()
        {
            return Ok(());
        }
        let now = self.sim.store_clock.now();
        let mut request = match action {
            Action::Delete => StackRequest::delete(stack, now),
            Action::Rollback => StackRequest::rollback(stack.generation, stack.details.only_adopted, now),
            _ => StackRequest { if_generation: Some(stack.generation), ..StackRequest::new(action, now) },
        };
        request.details.converge = stack.details.converge.clone();
        request.details.skip = skip;
        self.store.request(stack.id, request).await.map(drop)
    }

    async fn return_to(&self, stack: &Stack, back: u64) -> Result<(), Error> {
        if !states::user_may_ask(stack.state, stack.is_pending(), Action::Update) {
            return Ok(());
        }
        let query = OperationQuery { of: Operations::Revisions(stack.id), marker: None, limit: Some(back + 1) };
        let newest_first = self.store.operations(&query).await?;
        let Some(desired) = newest_first.last().and_then(|revision| revision.desired.as_ref()) else { return Ok(()) };
        let request = StackRequest {
            desired: Some(self.store.desired(desired).await?),
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Update, self.sim.store_clock.now())
        };
        self.store.request(stack.id, request).await.map(drop)
    }

    pub(crate) async fn send(
        &self,
        number: (usize, u32),
        stack: &Stack,
        resource: Option<&str>,
        body: MessageBody,
    ) -> Result<(), Error> {
        let now = self.sim.store_clock.now();
        let id = MessageId(self.uuid(("message", number)));
        let resource = resource.map(str::to_owned);
        self.store.send(&Message { id, stack: stack.id, resource, body, due: now, sent: now }).await
    }

    /// The same in every run and every attempt.
    pub(crate) fn uuid(&self, of: impl std::hash::Hash) -> Uuid {
        let (high, low) = (dice::hash((self.sim.scenario.seed, &of)), dice::hash((&of, self.sim.scenario.seed)));
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
    }
}

/// The name of a stack.
pub(crate) fn stack_name(stack: usize) -> String {
    format!("s{stack}")
}

fn sources(wish: &Wish, sink: bool) -> Sources {
    let (template, files) = wish.template.hot(wish.aliases);
    let environment = Arc::new(environment(wish, &files, sink));
    Sources { template: Arc::new(template), environment, files: Arc::new(Files(files)) }
}

/// The environment with the hooks, also for the resources of nested stacks with the same names, with the types of nested
/// templates, and with the event sink.
fn environment(wish: &Wish, files: &BTreeMap<String, String>, sink: bool) -> Environment {
    let mut patterns: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (pattern, hook) in &wish.hooks {
        patterns.entry(pattern).or_default().push(hook);
    }
    let hooks: Map = patterns
        .into_iter()
        .map(|(pattern, hooks)| {
            (pattern.to_owned(), value!({ "hooks": (hooks.clone()), (pattern): { "hooks": hooks } }))
        })
        .collect();
    let mut registry = Map::from([("resources".to_owned(), hooks.into())]);
    registry.extend(files.keys().filter(|_| wish.aliases).map(|file| (alias(file), file.as_str().into())));
    let mut sections = Map::from([("resource_registry".to_owned(), registry.into())]);
    if sink {
        sections.insert("event_sinks".to_owned(), sinks::section());
    }
    Environment::from_sections(&sections).unwrap_or_default()
}
