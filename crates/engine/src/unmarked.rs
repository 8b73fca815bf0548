//! Creates whose objects have no mark.
//!
//! A name from a template is not unique, so the object of a lost create would need a mark that says whose it is, and a
//! second request that removes the mark. Without one, the object is found by its name, its properties, and its time or
//! that it did not exist before: only if exactly one fits, and only when the call cannot be in progress any more. Otherwise nobody can tell
//! (docs/decisions/lost-creates.md).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kiln_resource::{
    Alike, Cloud, Facts, Failure, FailureKind, Found, LOST_CREATE, Operation, Phase, Resource, ResourceId, Step,
};
use kiln_stack::clock::micros;
use kiln_store::Error;
use kiln_value::{Class, Map, Value, text, value};

use crate::step::{Advance, Job};

/// The entry of a resource's data during a create without a mark: the time of the service before the call (`since`, in
/// seconds), that of the database (`at`, in microseconds), how many calls had no response before (`calls`), and the
/// IDs of the objects that look alike and existed before, if the service does not show times (`others`).
pub(crate) const UNMARKED: &str = "kiln_unmarked";

/// A call is made at most this long after `since`.
const FRESH: Duration = Duration::from_secs(30);

/// How much the clocks of the servers of one service may differ.
const SKEW: Duration = Duration::from_secs(10);

/// What became of a lost create.
pub(crate) enum Verdict {
    /// It created the object.
    Made(Step),
    /// It created nothing, unless its call is still in progress.
    NotMade,
    /// Nobody can tell, and why.
    CannotTell(String),
}

/// The time of the service before the call of a create without a mark.
pub(crate) fn since(data: &Map) -> Option<i64> {
    data.get(UNMARKED)?.get("since")?.as_i64()
}

/// The entry [`LOST_CREATE`] of a create whose call may have been made, for a later delete. `data` is that of the resource,
/// `until` the end of the call at the latest, in microseconds.
pub(crate) fn lost(data: &Map, token: &str, until: i64) -> Value {
    let others = data.get(UNMARKED).and_then(|noted| noted.get("others")).cloned();
    value!({"token": token, "until": until, "since": (since(data)), "others": others})
}

/// The token of a create whose call may be in progress.
pub(crate) fn open_create(row: &Resource) -> Option<&str> {
    let running = row.running().filter(|running| running.operation == Operation::Create)?;
    let is_open = row.physical_id.is_none() && matches!(running.phase, Phase::Intent | Phase::Lost(_));
    is_open.then_some(running.token.as_str())
}

/// The creates without a mark that this engine has in progress, by what their objects have in common.
#[derive(Default)]
pub struct Creating(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_likeness: HashMap<String, (ResourceId, Duration)>,
    by_row: HashMap<ResourceId, String>,
}

impl Creating {
    /// Whether no other create makes an object that looks alike. Then this one does, until a time.
    fn enter(&self, likeness: String, row: ResourceId, now: Duration, until: Duration) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.by_likeness.get(&likeness).is_some_and(|(other, until)| *other != row && *until > now) {
            return false;
        }
        entries.by_row.insert(row, likeness.clone());
        entries.by_likeness.insert(likeness, (row, until));
        true
    }

    /// The outcome of a create is known.
    pub(crate) fn leave(&self, row: ResourceId) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(likeness) = entries.by_row.remove(&row)
            && entries.by_likeness.get(&likeness).is_some_and(|(other, _)| *other == row)
        {
            entries.by_likeness.remove(&likeness);
        }
    }

    /// Drops the creates that have ended without a known outcome.
    pub(crate) fn expire(&self, now: Duration) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_likeness, by_row } = &mut *entries;
        by_likeness.retain(|_, (_, until)| *until > now);
        by_row.retain(|row, likeness| by_likeness.get(likeness).is_some_and(|(other, _)| other == row));
    }
}

impl Job {
    /// Before the call of a create: stores the time of the service if the object can do without a mark. `None`: nothing
    /// to store.
    pub(crate) async fn leave_unmarked(&mut self, cloud: &dyn Cloud) -> Option<Advance> {
        let unmarked = self.driver.unmarked(&self.facts)?;
        let clock = &self.backends.clock;
        let (now, monotonic) = (clock.now().as_microsecond(), clock.monotonic());
        let noted = self.facts.data.get(UNMARKED);
        let number = |key| noted.and_then(|noted| noted.get(key)).and_then(Value::as_i64);
        let calls = number("calls").and_then(|calls| u32::try_from(calls).ok()).unwrap_or_default();
        self.memory.unanswered = self.memory.unanswered.max(calls);
        let likeness = format!("{} {} {}", self.root.project, self.facts.resource_type, text::json(&unmarked.likeness));
        let alone = self.creating.enter(likeness, self.row, monotonic, monotonic + self.call_limit);
        let fresh = number("at").is_some_and(|at| (0..=micros(FRESH)).contains(&now.saturating_sub(at)));
        if alone && fresh {
            return None;
        }
        let noted = noted.is_some();
        let (since, others) = match (alone, unmarked.listed) {
            (false, _) => (None, Value::Null),
            (true, false) => (cloud.time(&unmarked.service).await, Value::Null),
            (true, true) => match self.look_alikes(cloud).await {
                Some(others) => (Some(now / 1_000_000), others),
                None => (None, Value::Null),
            },
        };
        let calls = i64::from(self.memory.unanswered);
        let entry = match since {
            Some(since) => value!({"since": since, "at": now, "calls": calls, "others": others}),
            None if !noted => return None,
            None => Value::Null,
        };
        let (attempt, token) = (self.running.attempt, self.running.token.clone());
        Some(self.stepped(Step::done().data(UNMARKED, entry), Phase::Intent, attempt, token).into())
    }

    /// The IDs of the objects that look like the one of this create; `None` if they cannot be listed.
    async fn look_alikes(&mut self, cloud: &dyn Cloud) -> Option<Value> {
        let since = self.facts.attempt.unmarked_since.replace(0);
        let found = self.driver.find(&self.context(cloud)).await;
        self.facts.attempt.unmarked_since = since;
        match found {
            Ok(Found::Alike(alike)) => Some(alike.into_iter().filter_map(|object| object.step.physical_id).collect()),
            _ => None,
        }
    }

    /// Looks for the object of a lost create. While the call may be in progress, an object without a mark is not found:
    /// another one may look like it.
    pub(crate) async fn find(&self, cloud: &dyn Cloud, in_progress: bool) -> Result<Verdict, Failure> {
        match self.driver.find(&self.context(cloud)).await? {
            Found::Made(step) => Ok(Verdict::Made(step)),
            Found::NotMade => Ok(Verdict::NotMade),
            Found::CannotTell(why) => Ok(Verdict::CannotTell(why)),
            Found::Alike(_) if in_progress => Ok(Verdict::NotMade),
            Found::Alike(alike) => self.tell_apart(alike).await,
        }
    }

    /// Which of these objects a create without a mark has made.
    async fn tell_apart(&self, alike: Vec<Alike>) -> Result<Verdict, Failure> {
        let since = self.facts.attempt.unmarked_since.unwrap_or(i64::MIN);
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let until = since.saturating_add(seconds(FRESH + self.call_limit));
        let data = &self.facts.data;
        let others = [UNMARKED, LOST_CREATE].into_iter().find_map(|key| data.get(key)?.get("others")?.as_list());
        let mut suspects = Vec::new();
        for object in alike {
            let is_older = match others {
                Some(others) => others.iter().any(|id| id.as_str() == object.step.physical_id.as_deref()),
                None => object.created.is_some_and(|created| created < since.saturating_sub(seconds(SKEW))),
            };
            if !is_older && !self.is_of_a_row(&object).await? {
                suspects.push(object);
            }
        }
        let one = match suspects.as_slice() {
            [] => return Ok(Verdict::NotMade),
            [one] => one,
            _ => return Ok(Verdict::CannotTell(format!("{} objects look like it", suspects.len()))),
        };
        let in_time = match others {
            // It did not exist before the call, and nobody has had much time to create another one since then.
            Some(_) => self.backends.clock.now().as_second() <= until.saturating_add(seconds(self.call_limit)),
            None => one.created.is_some_and(|created| (since..=until).contains(&created)),
        };
        if one.fits && in_time && !self.has_rival().await? {
            return Ok(Verdict::Made(one.step.clone()));
        }
        let id = one.step.physical_id.as_deref().unwrap_or_default();
        Ok(Verdict::CannotTell(format!("the object {id} may be it, or that of somebody else")))
    }

    /// Whether an object belongs to another resource.
    async fn is_of_a_row(&self, object: &Alike) -> Result<bool, Failure> {
        let id = object.step.physical_id.as_deref().unwrap_or_default();
        let rows = self
            .backends
            .store
            .resources_by_physical_id(&self.root.project, id)
            .await
            .map_err(|error| unread(&error))?;
        Ok(rows.iter().any(|row| row.id != self.row))
    }

    /// Whether an object may be that of another create whose outcome is unknown.
    async fn has_rival(&self) -> Result<bool, Failure> {
        let likeness = |facts: &Facts| self.driver.unmarked(facts).map(|unmarked| unmarked.likeness);
        let (store, own) = (&self.backends.store, likeness(&self.facts));
        let rows = store.creates_without_object(&self.root.project, &self.facts.resource_type).await;
        Ok(rows.map_err(|error| unread(&error))?.iter().any(|row| {
            let is_unknown = row.running().is_some() || row.data.contains_key(LOST_CREATE);
            let facts = Facts { properties: row.properties().clone(), ..Facts::default() };
            row.id != self.row && is_unknown && likeness(&facts) == own
        }))
    }
}

fn unread(error: &Error) -> Failure {
    Failure::new(FailureKind::NotSent, Class::ServiceUnavailable, error.to_string())
}
