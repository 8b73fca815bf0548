//! Snapshots of users, and stacks that they abandon and adopt.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use futures::future::{BoxFuture, FutureExt as _};
use kiln_plan::Sources;
use kiln_resource::{Action, SnapshotId, StackId, State, Status};
use kiln_stack::load;
use kiln_store::{
    Desired, DesiredText, Details, Error, MessageBody, NewStack, Snapshot, SnapshotRemoval, Stack, StackQuery,
    StackRequest, Store as _,
};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Value, value};

use crate::cloud::Phase;
use crate::simulation::Simulation;
use crate::states;
use crate::trusts;
use crate::users::Users;

/// What an abandoned stack has left.
#[derive(Clone)]
pub(crate) struct Left {
    stack: StackId,
    texts: DesiredText,
    desired: Desired,
    data: Value,
    /// Whether the objects have the properties of the template.
    exact: bool,
}

impl Users {
    pub(crate) fn abandoned(&self, name: &str) -> Option<Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// As the service: a stack without a running operation is deleted without its objects.
    pub(crate) async fn abandon(&self, name: &str, stack: &Stack) -> Result<(), Error> {
        if stack.is_pending() {
            return Ok(());
        }
        let data = value!({ "resources": (data_of(&self.sim, stack.id).await?) });
        let texts = self.sim.store.desired(&stack.desired).await?;
        let (now, root) = (self.sim.time.ms(), stack.id);
        // A rollback that the database has broken off may have asked nested stacks to delete theirs.
        let query = StackQuery { roots: vec![root], nested: true, ..StackQuery::default() };
        let tree = self.sim.store.stacks(&query).await?;
        let stays = |stack: &Stack| !(stack.is_pending() && stack.state.action == Action::Delete);
        let staying: BTreeSet<StackId> = tree.iter().filter(|stack| stays(stack)).map(|stack| stack.id).collect();
        let of_tree = |object: &&crate::cloud::Object| {
            object.phase == Phase::Active && object.stack.parse().is_ok_and(|stack| staying.contains(&stack))
        };
        let objects: Vec<String> = self.sim.cloud().live(now).filter(of_tree).map(|object| object.id.clone()).collect();
        let request = StackRequest {
            details: Details { keep_objects: true, ..Details::default() },
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Delete, self.sim.store_clock.now())
        };
        let reached = [Action::Create, Action::Update, Action::Rollback, Action::Adopt, Action::Restore];
        let exact = reached.iter().any(|action| stack.state == State::new(*action, Status::Complete));
        let exact = exact && stack.details.skip.is_empty() && !self.sim.ledger.deviates(stack.id);
        // The response may be lost.
        self.sim.ledger.abandon(stack.id, objects);
        let left = Left { stack: stack.id, texts, desired: stack.desired.clone(), data, exact };
        self.left.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), left);
        let asked = self.store.request(stack.id, request).await;
        // Another user was faster, and did not abandon it too.
        if let Err(Error::Changed(_)) = &asked
            && self.sim.store.stack(stack.id).await?.is_none_or(|stack| !stack.details.keep_objects)
        {
            self.sim.ledger.keep(stack.id);
            self.forget(name);
        }
        asked.map(drop)
    }

    pub(crate) async fn adopt(&self, number: (usize, u32), name: &str, left: &Left) -> Result<(), Error> {
        let id = StackId(self.uuid(("stack", number.0)));
        if self.store.stack(id).await?.is_some() {
            return Ok(());
        }
        let mark = self.uuid(("trust", number.0, number.1)).to_string();
        let credentials = trusts::make(&self.sim, &self.store, &mark).await?;
        let adopt = Snapshot {
            id: SnapshotId(self.uuid(("adopt", number.0))),
            stack: id,
            name: None,
            state: State::new(Action::Adopt, Status::InProgress),
            reason: String::new(),
            data: left.data.clone(),
            created: self.sim.store_clock.now(),
        };
        let stack = NewStack {
            action: Action::Adopt,
            disable_rollback: number.0.is_multiple_of(2),
            username: "user".to_owned(),
            user_id: "user".to_owned(),
            credentials: Some(credentials),
            adopt: Some(adopt),
            ..NewStack::new(id, name.to_owned(), "sim".to_owned(), left.texts.clone(), self.sim.store_clock.now())
        };
        if let Some(template) = self.sim.ledger.meaning(&left.desired) {
            self.sim.ledger.learn(&stack.desired.digests(), template);
        }
        self.sim.ledger.adopt(left.stack);
        if !left.exact {
            self.sim.ledger.deviate(id);
        }
        let made = self.store.create_stack(stack).await?;
        self.sim.ledger.see(&self.sim, &made, true);
        self.forget(name);
        Ok(())
    }

    /// Another stack has adopted what was left, or its user has given up.
    pub(crate) fn forget(&self, name: &str) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    pub(crate) async fn snapshot(&self, number: usize, stack: &Stack) -> Result<(), Error> {
        if !states::user_may_ask(stack.state, stack.is_pending(), Action::Snapshot) {
            return Ok(());
        }
        let snapshot = Snapshot {
            id: SnapshotId(self.uuid(("snapshot", number))),
            stack: stack.id,
            name: None,
            state: State::new(Action::Snapshot, Status::InProgress),
            reason: String::new(),
            data: Value::Null,
            created: self.sim.store_clock.now(),
        };
        if self.store.snapshot(stack.id, snapshot.id).await?.is_some() {
            return Ok(());
        }
        let request = StackRequest {
            details: Details { snapshot: Some(snapshot.id), ..Details::default() },
            snapshot: Some(snapshot),
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Snapshot, self.sim.store_clock.now())
        };
        self.store.request(stack.id, request).await.map(drop)
    }

    pub(crate) async fn restore(&self, stack: &Stack) -> Result<(), Error> {
        let complete = |snapshot: &&Snapshot| snapshot.state.is_complete(Action::Snapshot);
        let snapshots = self.store.snapshots(stack.id).await?;
        let Some(snapshot) = snapshots.iter().rev().find(complete) else { return Ok(()) };
        if !states::user_may_ask(stack.state, stack.is_pending(), Action::Restore) {
            return Ok(());
        }
        let part = |key: &str| snapshot.data.get(key).cloned().unwrap_or_default();
        let files = part("files");
        let files = files.as_map().into_iter().flatten();
        let files = files.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
        let sources = Sources {
            template: Arc::new(part("template")),
            environment: Arc::new(Environment::from_value(&part("environment")).unwrap_or_default()),
            files: Arc::new(Files(files)),
        };
        let request = StackRequest {
            desired: Some(load::texts(&sources)),
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Restore, self.sim.store_clock.now())
        };
        self.store.request(stack.id, request).await.map(drop)
    }

    pub(crate) async fn drop_snapshot(&self, number: usize, stack: &Stack) -> Result<(), Error> {
        let ended = |snapshot: &&Snapshot| snapshot.state.status != Status::InProgress;
        let snapshots = self.store.snapshots(stack.id).await?;
        let Some(snapshot) = snapshots.iter().rev().find(ended) else { return Ok(()) };
        let body = MessageBody::DeleteSnapshot(SnapshotRemoval { snapshot: snapshot.id });
        self.send((number, 0), stack, None, body).await
    }
}

/// The data of the resources of a stack, as an export has it.
fn data_of(sim: &Simulation, stack: StackId) -> BoxFuture<'_, Result<Map, Error>> {
    async move {
        let mut all = Map::new();
        for row in sim.store.resources(stack).await? {
            let data = if let Some(child) = row.child {
                value!({ "resources": (data_of(sim, child).await?) })
            } else {
                let own = |key: &str| key == "received" || key.starts_with("kiln_");
                let data: Map = row.data.into_iter().filter(|(key, _)| !own(key)).collect();
                value!({ "resource_id": (row.physical_id), "resource_data": data, "metadata": (row.metadata) })
            };
            all.insert(row.name, data);
        }
        Ok(all)
    }
    .boxed()
}
