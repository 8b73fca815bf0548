//! The columns of a row: read in order, and how values are written into them.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::State;
use kiln_value::Value;
use sea_orm::sea_query::Expr;
use sea_orm::{QueryResult, TryGetable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::row::Row;
use super::secrets::{CLOSED, Vault};
use super::statement_retry::Fault;
use crate::outbox::NewEntry;
use crate::{Author, Cause, Desired, Destination, Digest, Error, OutboxEntry, Resource, StackId};

/// Reads the columns of a row in order.
pub(super) struct Columns<'r> {
    row: &'r QueryResult,
    next: usize,
    vault: &'r Vault,
}

impl<'r> Columns<'r> {
    /// Starts at the first column of a row without encrypted values.
    pub(super) fn of(row: &'r QueryResult) -> Self {
        Self::opening(row, &CLOSED)
    }

    /// Starts at the first column, and decrypts values.
    pub(super) fn opening(row: &'r QueryResult, vault: &'r Vault) -> Self {
        Self { row, next: 0, vault }
    }

    /// Reads the columns of a type.
    pub(super) fn read<T: Row>(&mut self) -> Result<T, Fault> {
        T::read(self)
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
    pub(super) fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T, Fault> {
        match self.optional_text()? {
            None => Ok(T::default()),
            Some(text) => from_json(&text),
        }
    }

    /// A value that [`guarded`] or [`sealed`] wrote, for a row whose ID is its first column.
    pub(super) fn guarded<T: DeserializeOwned + Default>(&mut self) -> Result<T, Fault> {
        self.guarded_text()?.map_or_else(|| Ok(T::default()), |text| from_json(&text))
    }

    /// A text that may be encrypted, in a row whose ID is its first column.
    pub(super) fn guarded_text(&mut self) -> Result<Option<String>, Fault> {
        let Some(text) = self.optional_text()? else { return Ok(None) };
        let id: String = self.row.try_get_by_index(0)?;
        Ok(Some(self.vault.open_value(&id, text)?))
    }

    pub(super) fn state(&mut self) -> Result<State, Fault> {
        Ok(State::new(self.parsed()?, self.parsed()?))
    }

    /// [`super::schema::BRIEF_COLUMNS`]: a resource without its data, and its place.
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

    /// An entry of the outbox, its root and destination, and the microseconds until it may be sent. Its columns: `seq`, now,
    /// `due`, `created`, `attempts`, `id`, `root`, `destination`, `body`.
    pub(super) fn entry(&mut self) -> Result<(OutboxEntry, StackId, Destination, i64), Fault> {
        let (number, now): (i64, i64) = (self.int()?, self.int()?);
        let (due, created) = (self.int()?, self.int()?);
        let attempts = u32::try_from(self.int()?).map_err(damaged)?;
        let id: Uuid = self.parsed()?;
        let root = self.parsed()?;
        let destination = from_json(&self.text()?)?;
        let body = match self.optional_text()? {
            None => Value::Null,
            Some(text) => from_json(&self.vault.open_value(&id.to_string(), text)?)?,
        };
        let age = Duration::from_micros(u64::try_from(now - created).unwrap_or_default());
        Ok((OutboxEntry { number, id, body, age, attempts }, root, destination, due - now))
    }

    /// The ID and the sealed body of a part of a plan.
    pub(super) fn plan_part(&mut self) -> Result<String, Fault> {
        let row = self.text()?;
        Ok(self.vault.open_value(&row, self.text()?)?)
    }

    /// ID and name of a user.
    pub(super) fn author(&mut self) -> Result<Option<Author>, Fault> {
        Ok(match (self.optional_text()?, self.optional_text()?) {
            (Some(user_id), Some(username)) => Some(Author { user_id, username }),
            _ => None,
        })
    }
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
pub(super) fn guarded(vault: &Vault, row: &str, value: &impl Serialize, empty: bool) -> Result<Expr, Fault> {
    Ok(if empty { None } else { Some(vault.seal_value(row, to_json(value)?)?) }.into())
}

/// Encrypted JSON; NULL for empty values.
pub(super) fn sealed(vault: &Vault, row: &str, value: &impl Serialize, empty: bool) -> Result<Expr, Fault> {
    Ok(if empty { None } else { Some(vault.seal(row, &to_json(value)?)?) }.into())
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Error::Damaged(error.into()).into())
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(damaged)
}

fn parse<T: FromStr<Err: Into<Cause>>>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(damaged)
}

pub(super) fn damaged(what: impl Into<Cause>) -> Fault {
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
