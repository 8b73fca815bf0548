//! Conversion between rows and the types of the store.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{SoftwareConfig, SoftwareDeployment, State};
use sea_orm::sea_query::Expr;
use sea_orm::{QueryResult, TryGetable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::secrets::Vault;
use super::statement_retry::Fault;
use crate::outbox::NewEntry;
use crate::take_over::TakeOver;
use crate::{
    Author, Cause, Desired, Destination, Digest, Error, Event, Message, OutboxEntry, Parent, Plan, Resource, Snapshot,
    Stack, StackId, StackSummary,
};

/// Reads the columns of a row in order.
pub(super) struct Columns<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> Columns<'r> {
    /// Starts at the first column.
    pub(super) fn of(row: &'r QueryResult) -> Self {
        Self { row, next: 0 }
    }

    fn get<T: TryGetable>(&mut self) -> Result<T, Fault> {
        let value = self.row.try_get_by_index(self.next)?;
        self.next += 1;
        Ok(value)
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        self.get()
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, Fault> {
        self.get()
    }

    pub(super) fn int(&mut self) -> Result<i64, Fault> {
        self.get()
    }

    pub(super) fn optional_int(&mut self) -> Result<Option<i64>, Fault> {
        self.get()
    }

    /// A number that is not negative.
    pub(super) fn count(&mut self) -> Result<u64, Fault> {
        let number = self.int()?;
        u64::try_from(number).map_err(|_| damaged(format!("count {number}")))
    }

    pub(super) fn flag(&mut self) -> Result<bool, Fault> {
        Ok(self.int()? != 0)
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, Fault> {
        time_of(self.int()?)
    }

    pub(super) fn optional_time(&mut self) -> Result<Option<Timestamp>, Fault> {
        self.optional_int()?.map(time_of).transpose()
    }

    /// An ID, an action or a status.
    pub(super) fn parsed<T: FromStr<Err: Into<Cause>>>(&mut self) -> Result<T, Fault> {
        parse(&self.text()?)
    }

    pub(super) fn optional_parsed<T: FromStr<Err: Into<Cause>>>(&mut self) -> Result<Option<T>, Fault> {
        self.optional_text()?.as_deref().map(parse).transpose()
    }

    /// A value that [`json`] wrote.
    fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T, Fault> {
        match self.optional_text()? {
            None => Ok(T::default()),
            Some(text) => from_json(&text),
        }
    }

    /// A value that [`guarded`] or [`sealed`] wrote for the row with this ID.
    fn guarded<T: DeserializeOwned + Default>(&mut self, vault: &Vault, row: &str) -> Result<T, Fault> {
        match self.optional_text()? {
            None => Ok(T::default()),
            Some(text) => from_json(&vault.open_value(row, text)?),
        }
    }

    fn state(&mut self) -> Result<State, Fault> {
        Ok(State::new(self.parsed()?, self.parsed()?))
    }

    /// [`super::schema::STACK_COLUMNS`], and the numbers of batches and of guards.
    pub(super) fn stack(&mut self) -> Result<Stack, Fault> {
        Ok(Stack {
            id: self.parsed()?,
            name: self.text()?,
            project: self.text()?,
            parent: match (self.optional_parsed()?, self.optional_parsed()?, self.optional_text()?) {
                (Some(stack), Some(resource), Some(resource_name)) => Some(Parent { stack, resource, resource_name }),
                _ => None,
            },
            root: self.parsed()?,
            depth: u32::try_from(self.int()?).map_err(|_| damaged("depth of a stack"))?,
            state: self.state()?,
            reason: self.text()?,
            desired: unpack(&self.text()?)?,
            previous: self.optional_text()?.as_deref().map(unpack).transpose()?,
            generation: self.int()?,
            settled: self.int()?,
            disable_rollback: self.flag()?,
            timeout_mins: self.optional_int()?,
            tags: self.json()?,
            username: self.text()?,
            user_id: self.text()?,
            credentials: self.optional_parsed()?,
            user_project: self.optional_text()?,
            messages: self.int()?,
            details: self.json()?,
            created: self.time()?,
            updated: self.optional_time()?,
            deleted: self.optional_time()?,
            writes: self.optional_int()?.unwrap_or_default(),
            guards: self.int()?,
        })
    }

    /// [`super::schema::SUMMARY_COLUMNS`].
    pub(super) fn summary(&mut self) -> Result<StackSummary, Fault> {
        Ok(StackSummary {
            id: self.parsed()?,
            name: self.text()?,
            project: self.text()?,
            parent: self.optional_parsed()?,
            state: self.state()?,
            reason: self.text()?,
            disable_rollback: self.flag()?,
            timeout_mins: self.optional_int()?,
            tags: self.json()?,
            username: self.text()?,
            user_project: self.optional_text()?,
            created: self.time()?,
            updated: self.optional_time()?,
            deleted: self.optional_time()?,
        })
    }

    /// [`super::schema::RESOURCE_COLUMNS`].
    pub(super) fn resource(&mut self, vault: &Vault) -> Result<Resource, Fault> {
        let row = self.text()?;
        Ok(Resource {
            id: parse(&row)?,
            stack: self.parsed()?,
            name: self.text()?,
            resource_type: self.text()?,
            implementation: self.text()?,
            physical_id: self.optional_text()?,
            state: self.state()?,
            reason: self.text()?,
            operation: self.guarded(vault, &row)?,
            definition: self.guarded(vault, &row)?,
            metadata: self.guarded(vault, &row)?,
            data: self.guarded(vault, &row)?,
            attributes: self.guarded(vault, &row)?,
            requires: self.json()?,
            replaces: self.optional_parsed()?,
            replaced_by: self.optional_parsed()?,
            child: self.optional_parsed()?,
            generation: self.int()?,
            created: self.time()?,
            updated: self.time()?,
        })
    }

    /// [`super::schema::BRIEF_COLUMNS`].
    pub(super) fn brief_resource(&mut self, stack: StackId) -> Result<(Resource, u64), Fault> {
        let (id, name, kind) = (self.parsed()?, self.text()?, self.text()?);
        let row = Resource {
            implementation: self.text()?,
            physical_id: self.optional_text()?,
            state: self.state()?,
            reason: self.text()?,
            replaces: self.optional_parsed()?,
            replaced_by: self.optional_parsed()?,
            child: self.optional_parsed()?,
            generation: self.int()?,
            created: self.time()?,
            updated: self.time()?,
            ..Resource::new(stack, id, &name, &kind, Timestamp::UNIX_EPOCH)
        };
        Ok((row, self.count()?))
    }

    /// [`super::schema::EVENT_COLUMNS`].
    pub(super) fn event(&mut self, vault: &Vault) -> Result<Event, Fault> {
        let row = self.text()?;
        Ok(Event {
            id: parse(&row)?,
            stack: self.parsed()?,
            root: self.parsed()?,
            resource_name: self.text()?,
            resource_type: self.text()?,
            physical_id: self.optional_text()?,
            action: self.text()?,
            status: self.parsed()?,
            reason: self.text()?,
            properties: self.guarded(vault, &row)?,
            operation: self.optional_parsed()?,
            time: self.time()?,
        })
    }

    /// [`super::schema::ENTRY_COLUMNS`], with the time until it may be sent.
    pub(super) fn entry(&mut self, vault: &Vault) -> Result<(OutboxEntry, StackId, Destination, i64), Fault> {
        let (number, now): (i64, i64) = (self.int()?, self.int()?);
        let (due, created) = (self.int()?, self.int()?);
        let attempts = u32::try_from(self.int()?).map_err(damaged)?;
        let id: Uuid = self.parsed()?;
        let root = self.parsed()?;
        let destination = from_json(&self.text()?)?;
        let body = self.guarded(vault, &id.to_string())?;
        let age = Duration::from_micros(u64::try_from(now - created).unwrap_or_default());
        Ok((OutboxEntry { number, id, body, age, attempts }, root, destination, due - now))
    }

    /// [`super::schema::MESSAGE_COLUMNS`].
    pub(super) fn message(&mut self, vault: &Vault) -> Result<Message, Fault> {
        let row = self.text()?;
        Ok(Message {
            id: parse(&row)?,
            stack: self.parsed()?,
            resource: self.optional_text()?,
            kind: self.parsed()?,
            body: self.guarded(vault, &row)?,
            due: self.time()?,
            sent: self.time()?,
        })
    }

    /// [`super::schema::PLAN_COLUMNS`].
    pub(super) fn plan(&mut self, vault: &Vault) -> Result<Plan, Fault> {
        let row = self.text()?;
        Ok(Plan {
            id: parse(&row)?,
            project: self.text()?,
            stack: self.parsed()?,
            stack_name: self.text()?,
            name: self.optional_text()?,
            action: self.parsed()?,
            generation: self.int()?,
            author: self.author()?,
            desired: self.optional_text()?.as_deref().map(unpack).transpose()?,
            digest: self.text()?,
            state: self.parsed()?,
            body: self.guarded(vault, &row)?,
            created: self.time()?,
            expires: self.optional_time()?,
        })
    }

    /// The ID and the sealed body of a part of a plan.
    pub(super) fn plan_part(&mut self, vault: &Vault) -> Result<String, Fault> {
        let row = self.text()?;
        Ok(vault.open_value(&row, self.text()?)?)
    }

    /// ID and name of a user.
    pub(super) fn author(&mut self) -> Result<Option<Author>, Fault> {
        Ok(match (self.optional_text()?, self.optional_text()?) {
            (Some(user_id), Some(username)) => Some(Author { user_id, username }),
            _ => None,
        })
    }

    /// [`super::schema::SOFTWARE_CONFIG_COLUMNS`].
    pub(super) fn software_config(&mut self, vault: &Vault) -> Result<SoftwareConfig, Fault> {
        let id = self.text()?;
        Ok(SoftwareConfig {
            project: self.text()?,
            name: self.optional_text()?,
            group: self.optional_text()?,
            body: self.guarded(vault, &id)?,
            created: self.time()?,
            id,
        })
    }

    /// [`super::schema::SOFTWARE_DEPLOYMENT_COLUMNS`].
    pub(super) fn software_deployment(&mut self, vault: &Vault) -> Result<SoftwareDeployment, Fault> {
        let id = self.text()?;
        Ok(SoftwareDeployment {
            project: self.text()?,
            user_project: self.optional_text()?,
            config: self.text()?,
            server: self.text()?,
            body: self.guarded(vault, &id)?,
            created: self.time()?,
            updated: self.optional_time()?,
            id,
        })
    }

    /// [`super::schema::TAKE_OVER_COLUMNS`].
    pub(super) fn take_over(&mut self) -> Result<TakeOver, Fault> {
        Ok(TakeOver {
            root: self.parsed()?,
            project: self.text()?,
            name: self.text()?,
            digest: self.text()?,
            state: self.parsed()?,
            reason: self.text()?,
            time: self.time()?,
        })
    }

    /// [`super::schema::SNAPSHOT_COLUMNS`].
    pub(super) fn snapshot(&mut self, vault: &Vault) -> Result<Snapshot, Fault> {
        let row = self.text()?;
        Ok(Snapshot {
            id: parse(&row)?,
            stack: self.parsed()?,
            name: self.optional_text()?,
            state: self.state()?,
            reason: self.text()?,
            data: self.guarded(vault, &row)?,
            created: self.time()?,
        })
    }
}

/// The row of a resource.
pub(super) fn of_resource(resource: &Resource, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = resource.id.to_string();
    let data = sealed(vault, &id, &resource.data, resource.data.is_empty())?;
    let operation = guarded(vault, &id, &resource.operation, resource.operation.is_idle())?;
    let definition = guarded(vault, &id, &resource.definition, resource.definition.is_none())?;
    let metadata = guarded(vault, &id, &resource.metadata, resource.metadata.is_null())?;
    let attributes = guarded(vault, &id, &resource.attributes, resource.attributes.is_empty())?;
    Ok(vec![
        id.into(),
        resource.stack.to_string().into(),
        plain(&resource.name).into(),
        plain(&resource.resource_type).into(),
        plain(&resource.implementation).into(),
        resource.physical_id.as_deref().map(plain).into(),
        resource.state.action.as_str().into(),
        resource.state.status.as_str().into(),
        plain(&resource.reason).into(),
        operation,
        definition,
        metadata,
        data,
        attributes,
        json(&resource.requires, resource.requires.is_empty())?,
        optional_id(resource.replaces.as_ref()),
        optional_id(resource.replaced_by.as_ref()),
        optional_id(resource.child.as_ref()),
        resource.generation.into(),
        micros(resource.created).into(),
        micros(resource.updated).into(),
    ])
}

/// The row of an event.
pub(super) fn of_event(event: &Event, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = event.id.to_string();
    let properties = guarded(vault, &id, &event.properties, event.properties.is_null())?;
    Ok(vec![
        id.into(),
        event.stack.to_string().into(),
        event.root.to_string().into(),
        plain(&event.resource_name).into(),
        plain(&event.resource_type).into(),
        event.physical_id.as_deref().map(plain).into(),
        plain(&event.action).into(),
        event.status.as_str().into(),
        plain(&event.reason).into(),
        properties,
        optional_id(event.operation.as_ref()),
        micros(event.time).into(),
    ])
}

/// The row of an entry of the outbox, without its times.
pub(super) fn of_entry(entry: &NewEntry, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = entry.id.to_string();
    let body = guarded(vault, &id, &entry.body, false)?;
    Ok(vec![
        id.into(),
        entry.lane.as_str().into(),
        entry.root.to_string().into(),
        to_json(&entry.destination)?.into(),
        body,
    ])
}

/// The row of a message.
pub(super) fn of_message(message: &Message, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = message.id.to_string();
    let body = guarded(vault, &id, &message.body, message.body.is_null())?;
    Ok(vec![
        id.into(),
        message.stack.to_string().into(),
        message.resource.as_deref().map(plain).into(),
        message.kind.as_str().into(),
        body,
        micros(message.due).into(),
        micros(message.sent).into(),
    ])
}

/// The row of a plan.
pub(super) fn of_plan(plan: &Plan, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = plan.id.to_string();
    let body = sealed(vault, &id, &plan.body, plan.body.is_null())?;
    let author = plan.author.as_ref();
    Ok(vec![
        id.into(),
        plain(&plan.project).into(),
        plan.stack.to_string().into(),
        plain(&plan.stack_name).into(),
        plan.name.as_deref().map(plain).into(),
        plan.action.as_str().into(),
        plan.generation.into(),
        author.map(|author| plain(&author.user_id)).into(),
        author.map(|author| plain(&author.username)).into(),
        plan.desired.as_ref().map(pack).into(),
        plan.digest.clone().into(),
        plan.state.as_str().into(),
        body,
        micros(plan.created).into(),
        plan.expires.map(micros).into(),
    ])
}

/// The row of a software config.
pub(super) fn of_software_config(config: &SoftwareConfig, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    Ok(vec![
        plain(&config.id).into(),
        plain(&config.project).into(),
        config.name.as_deref().map(plain).into(),
        config.group.as_deref().map(plain).into(),
        sealed(vault, &config.id, &config.body, false)?,
        micros(config.created).into(),
    ])
}

/// The row of a software deployment.
pub(super) fn of_software_deployment(deployment: &SoftwareDeployment, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    Ok(vec![
        plain(&deployment.id).into(),
        plain(&deployment.project).into(),
        deployment.user_project.as_deref().map(plain).into(),
        plain(&deployment.config).into(),
        plain(&deployment.server).into(),
        sealed(vault, &deployment.id, &deployment.body, false)?,
        micros(deployment.created).into(),
        deployment.updated.map(micros).into(),
    ])
}

/// The row of a snapshot.
pub(super) fn of_snapshot(snapshot: &Snapshot, vault: &Vault) -> Result<Vec<Expr>, Fault> {
    let id = snapshot.id.to_string();
    let data = sealed(vault, &id, &snapshot.data, snapshot.data.is_null())?;
    Ok(vec![
        id.into(),
        snapshot.stack.to_string().into(),
        snapshot.name.as_deref().map(plain).into(),
        snapshot.state.action.as_str().into(),
        snapshot.state.status.as_str().into(),
        plain(&snapshot.reason).into(),
        data,
        micros(snapshot.created).into(),
    ])
}

/// Microseconds since 1970: how times are stored.
pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// A duration in microseconds.
pub(super) fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

fn time_of(micros: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_microsecond(micros).map_err(damaged)
}

/// A text that all databases accept: PostgreSQL does not allow NUL characters.
pub(super) fn plain(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() }
}

/// An optional ID.
pub(super) fn optional_id(id: Option<&impl ToString>) -> Expr {
    id.map(ToString::to_string).into()
}

/// JSON, or NULL for empty values: most columns of most rows.
pub(super) fn json(value: &impl Serialize, empty: bool) -> Result<Expr, Fault> {
    Ok(if empty { None } else { Some(to_json(value)?) }.into())
}

/// JSON, encrypted if the store encrypts values; NULL for empty values.
fn guarded(vault: &Vault, row: &str, value: &impl Serialize, empty: bool) -> Result<Expr, Fault> {
    Ok(if empty { None } else { Some(vault.seal_value(row, to_json(value)?)?) }.into())
}

/// Encrypted JSON; NULL for empty values.
pub(super) fn sealed(vault: &Vault, row: &str, value: &impl Serialize, empty: bool) -> Result<Expr, Fault> {
    Ok(if empty { None } else { Some(vault.seal(row, &to_json(value)?)?) }.into())
}

fn to_json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Error::Damaged(error.into()).into())
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(damaged)
}

fn parse<T: FromStr<Err: Into<Cause>>>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(damaged)
}

fn damaged(what: impl Into<Cause>) -> Fault {
    Error::Damaged(what.into()).into()
}

/// Behind the digests of a desired state that may have event sinks.
const WITH_SINKS: &str = "sinks";

/// Three digests in one column: they are always set together.
pub(super) fn pack(desired: &Desired) -> String {
    let digests = format!("{} {} {}", desired.template, desired.environment, desired.files);
    if desired.sinks { format!("{digests} {WITH_SINKS}") } else { digests }
}

pub(super) fn unpack(text: &str) -> Result<Desired, Fault> {
    let digest = |digest: &str| Digest(digest.to_owned());
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        [template, environment, files, sinks @ ..] if matches!(sinks, [] | [WITH_SINKS]) => Ok(Desired {
            template: digest(template),
            environment: digest(environment),
            files: digest(files),
            sinks: !sinks.is_empty(),
        }),
        _ => Err(damaged(format!("digests {text:?}"))),
    }
}
