//! Creates, lists, deletes and restores snapshots of a stack.

use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Sources};
use kiln_resource::{Action, SnapshotId, State, Status};
use kiln_stack::{export, load};
use kiln_store::quota::Quota;
use kiln_store::{Details, MessageBody, Snapshot, SnapshotRemoval, Stack, StackRequest};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Value};

use crate::{Error, Service, TemplateText};

impl Service {
    /// Requests a snapshot of a stack without a running operation.
    pub async fn create_snapshot(
        &self,
        stack: &Stack,
        name: Option<String>,
        caller: &Caller,
    ) -> Result<Snapshot, Error> {
        if stack.is_pending() {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let store = &self.backends.store;
        if let Some(limit) = self.limit_of(&stack.project, Quota::SnapshotsPerStack).await?.filter(|_| !caller.is_admin)
            && store.snapshots(stack.id).await?.len() as u64 >= limit
        {
            let text =
                format!("You have reached the maximum snapshots per stack, {limit}. Please delete some snapshots.");
            return Err(Error::Limit(text));
        }
        let now = self.backends.clock.now();
        let snapshot = Snapshot {
            id: SnapshotId(self.backends.chance.uuid()),
            stack: stack.id,
            name,
            state: State::new(Action::Snapshot, Status::InProgress),
            reason: "Stack SNAPSHOT started".to_owned(),
            data: Value::Null,
            created: now,
        };
        // What is saved must not be in the cloud without a record.
        if store.limits_sizes() {
            let data = export(&self.backends, stack).await?;
            store.check_snapshot(&Snapshot { data, ..snapshot.clone() })?;
        }
        let request = StackRequest {
            details: Details { snapshot: Some(snapshot.id), ..Details::default() },
            snapshot: Some(snapshot.clone()),
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Snapshot, now)
        };
        self.request(caller, stack, request).await?;
        Ok(snapshot)
    }

    /// The snapshots of a stack, oldest first.
    pub async fn snapshots(&self, stack: &Stack) -> Result<Vec<Snapshot>, Error> {
        Ok(self.backends.store.snapshots(stack.id).await?)
    }

    /// A snapshot of a stack.
    pub async fn snapshot(&self, stack: &Stack, id: &str) -> Result<Snapshot, Error> {
        let found = match id.parse() {
            Ok(id) => self.backends.store.snapshot(stack.id, id).await?.filter(Snapshot::is_listed),
            Err(_) => None,
        };
        found.ok_or_else(|| Error::NoSnapshot { snapshot: id.to_owned(), stack: stack.name.clone() })
    }

    /// Requests the deletion of a snapshot. The engine of the stack deletes it, settled or not.
    pub async fn delete_snapshot(&self, stack: &Stack, id: &str) -> Result<(), Error> {
        let snapshot = self.snapshot(stack, id).await?;
        if snapshot.state == State::new(Action::Snapshot, Status::InProgress) {
            return Err(Error::NotSupported("Deleting in-progress snapshot".to_owned()));
        }
        self.refuse_frozen(stack, false).await?;
        let removal = SnapshotRemoval { snapshot: snapshot.id };
        let message = self.backends.message(stack.id, None, MessageBody::DeleteSnapshot(removal));
        Ok(self.backends.store.send(&message).await?)
    }

    /// Requests an update of a stack to its state at a snapshot.
    pub async fn restore_snapshot(&self, caller: &Caller, stack: &Stack, id: &str) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        let snapshot = self.snapshot(stack, id).await?;
        if !snapshot.state.is_complete(Action::Snapshot) {
            return Err(Error::NotSupported("Restoring incomplete snapshot".to_owned()));
        }
        if stack.state.action == Action::Delete {
            return Err(Error::NotSupported("Updating a stack when it is deleting".to_owned()));
        }
        let blueprint = self.restored_blueprint(caller, stack, &snapshot).await?;
        self.refuse_removals(stack, &blueprint, None).await?;
        let request = StackRequest {
            desired: Some(load::accepted(&self.backends, &blueprint)),
            details: Details { snapshot: Some(snapshot.id), ..Details::default() },
            credentials: self.renewed_credentials(caller, stack).await?,
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Restore, self.backends.clock.now())
        };
        self.request(caller, stack, request).await
    }

    /// The template of the snapshot. As in Heat, its resources get the properties that restore their objects, so that a
    /// later update with the stored template does not change them again.
    async fn restored_blueprint(
        &self,
        caller: &Caller,
        stack: &Stack,
        snapshot: &Snapshot,
    ) -> Result<Blueprint, Error> {
        let damaged = || Error::Internal(format!("the data of snapshot {} cannot be read", snapshot.id));
        let part = |key: &str| snapshot.data.get(key).ok_or_else(damaged);
        let files = part("files")?.as_map().into_iter().flatten();
        let files = files.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
        let mut sources = Sources {
            template: Arc::new(part("template")?.clone()),
            environment: Arc::new(Environment::from_value(part("environment")?)?),
            files: Arc::new(Files(files)),
        };
        let identity = load::identity(stack).ok_or_else(damaged)?;
        let saved = self.build(&sources, &identity, &TemplateText::stored(&sources.template), true).await?;
        if let Some(template) = restored_template(&saved, part("resources")?)? {
            sources.template = Arc::new(template);
        }
        let template = TemplateText::stored(&sources.template);
        let blueprint = self.build(&sources, &identity, &template, true).await?;
        self.accept(caller, &blueprint, &template).await?;
        Ok(blueprint)
    }
}

/// The template with the properties that restore the objects; `None` if nothing changes.
fn restored_template(saved: &Blueprint, resources: &Value) -> Result<Option<Value>, Error> {
    let words = saved.bound().template().words();
    let mut template = Value::clone(&saved.sources().template);
    let mut is_other = false;
    for (name, resource) in resources.as_map().into_iter().flatten() {
        let Some(data) = resource.get("resource_data").and_then(Value::as_map) else { continue };
        let entry = saved.kind(name).and_then(|kind| kind.entry().cloned());
        let Some(changes) = entry.and_then(|entry| entry.driver.restored(data)) else { continue };
        let place = template.as_map_mut().and_then(|sections| sections.get_mut(words.resources));
        let place = place.and_then(Value::as_map_mut).and_then(|resources| resources.get_mut(name));
        let Some(definition) = place.and_then(Value::as_map_mut) else { continue };
        let properties = definition.entry(words.properties.to_owned()).or_insert_with(|| Map::new().into());
        let is_call = saved.definitions().get(name).is_some_and(|definition| definition.properties.is_call());
        let (Value::Map(properties), false) = (properties, is_call) else {
            let text = format!("Restoring {name}, whose properties are a function,");
            return Err(Error::NotSupported(text));
        };
        for (property, value) in changes {
            if value.is_null() {
                properties.shift_remove(&property);
            } else {
                properties.insert(property, value);
            }
        }
        is_other = true;
    }
    Ok(is_other.then_some(template))
}
