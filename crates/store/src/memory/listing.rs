//! Lists of stacks and events, with filters, sorting and paging.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::{Action, Status};

use super::state::State;
use crate::{Error, Event, EventId, EventQuery, EventSpan, Sort, SortKey, Stack, StackId, StackQuery};

impl State {
    pub(super) fn list_stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error> {
        let marker = match query.marker {
            None => None,
            Some(marker) => {
                let row = self.stacks.get(&marker).ok_or_else(|| Error::NotFound(format!("stack {marker}")))?;
                Some(&row.stack)
            }
        };
        let order = |one: &Stack, other: &Stack| compare(query.sort.as_ref(), one, other);
        let mut found: Vec<&Stack> = self.listed(query).collect();
        found.retain(|stack| marker.is_none_or(|marker| order(marker, stack).is_lt()));
        found.sort_by(|one, other| order(one, other));
        found.truncate(limit_of(query.limit));
        Ok(found.into_iter().cloned().collect())
    }

    pub(super) fn count_stacks(&self, query: &StackQuery) -> u64 {
        self.listed(query).count() as u64
    }

    fn listed(&self, query: &StackQuery) -> impl Iterator<Item = &Stack> {
        self.stacks.values().map(|row| &row.stack).filter(|stack| is_listed(query, stack))
    }

    pub(super) fn list_events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        let marker = query.marker.map(|marker| self.event_number(marker)).transpose()?;
        let is_behind =
            |seq: u64| marker.is_none_or(|marker| if query.descending { seq < marker } else { seq > marker });
        let mut found = self.numbered(&self.stacks_of(query), query);
        found.retain(|(seq, _)| is_behind(*seq));
        if query.descending {
            found.reverse();
        }
        found.truncate(limit_of(query.limit));
        Ok(found.into_iter().map(|(_, event)| event.clone()).collect())
    }

    pub(super) fn event_number(&self, event: EventId) -> Result<u64, Error> {
        let place = self.event_places.get(&event);
        Ok(place.ok_or_else(|| Error::NotFound(format!("event {event}")))?.1)
    }

    pub(super) fn numbered_events(&self, span: &EventSpan, query: &EventQuery) -> Vec<(u64, Event)> {
        let mut found = match span {
            EventSpan::After(first) => {
                let mut found = self.numbered(&self.stacks_of(query), query);
                found.retain(|(seq, _)| seq > first);
                found
            }
            EventSpan::Between(stacks, last) => {
                let places: BTreeMap<StackId, u64> = stacks.iter().copied().collect();
                let mut found = self.numbered(&places.keys().copied().collect(), query);
                found.retain(|(seq, event)| seq <= last && places.get(&event.stack).is_some_and(|place| seq > place));
                found
            }
        };
        found.truncate(limit_of(query.limit));
        found.into_iter().map(|(seq, event)| (seq, event.clone())).collect()
    }

    pub(super) fn last_events(&self, query: &EventQuery, up_to: u64) -> Vec<(StackId, u64)> {
        let last = |stack: StackId| self.events_of(stack).map(|(place, _)| place.1).filter(|seq| *seq <= up_to).last();
        self.stacks_of(query).into_iter().filter_map(|stack| Some((stack, last(stack)?))).collect()
    }

    fn stacks_of(&self, query: &EventQuery) -> BTreeSet<StackId> {
        let of = |holds: &dyn Fn(&Stack) -> bool| -> BTreeSet<StackId> {
            self.stacks.values().map(|row| &row.stack).filter(|stack| holds(stack)).map(|stack| stack.id).collect()
        };
        match (&query.root, &query.project) {
            (Some(root), _) => of(&|stack| stack.root == *root),
            (None, Some(project)) => of(&|stack| stack.project == *project),
            (None, None) => query.stacks.iter().copied().collect(),
        }
    }

    /// The events of stacks that the filters leave, in the order of their numbers.
    fn numbered(&self, stacks: &BTreeSet<StackId>, query: &EventQuery) -> Vec<(u64, &Event)> {
        let mut found: Vec<(u64, &Event)> = stacks
            .iter()
            .flat_map(|stack| self.events_of(*stack))
            .map(|(place, event)| (place.1, event))
            .filter(|(_, event)| is_asked_for(query, event))
            .collect();
        found.sort_by_key(|(seq, _)| *seq);
        found
    }
}

fn limit_of(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// The first key that differs decides, and the ID breaks ties.
fn compare(sort: Option<&Sort>, one: &Stack, other: &Stack) -> Ordering {
    let keys = sort.map(|sort| sort.keys.as_slice()).unwrap_or_default();
    let (keys, descending) = match keys {
        [] => (&[SortKey::Created][..], true),
        keys => (keys, sort.is_some_and(|sort| sort.descending)),
    };
    let by_keys = keys.iter().map(|key| match key {
        SortKey::Name => one.name.cmp(&other.name),
        SortKey::Status => one.state.status.as_str().cmp(other.state.status.as_str()),
        SortKey::Created => one.created.cmp(&other.created),
        SortKey::Updated => one.updated.cmp(&other.updated),
    });
    let order = by_keys.fold(Ordering::Equal, Ordering::then).then(one.id.cmp(&other.id));
    if descending { order.reverse() } else { order }
}

fn is_listed(query: &StackQuery, stack: &Stack) -> bool {
    let parent = stack.parent.as_ref().map(|parent| parent.stack);
    let has = |tag: &String| stack.tags.contains(tag);
    query.project.as_ref().is_none_or(|project| *project == stack.project)
        && (query.user_project.is_none() || query.user_project == stack.user_project)
        && match query.parent {
            Some(asked) => parent == Some(asked),
            None => query.nested || parent.is_none(),
        }
        && query.root.is_none_or(|root| root == stack.root)
        && (query.roots.is_empty() || query.roots.contains(&stack.root))
        && (query.deleted || stack.deleted.is_none())
        && any_of(&query.ids, |id| *id == stack.id)
        && any_of(&query.names, |name| *name == stack.name)
        && any_of(&query.actions, |action| action == stack.state.action.as_str())
        && any_of(&query.usernames, |username| *username == stack.username)
        && any_of(&query.statuses, |word| has_status(stack, word))
        && query.tags.iter().all(has)
        && any_of(&query.tags_any, has)
        && (query.not_tags.is_empty() || !query.not_tags.iter().all(has))
        && !query.not_tags_any.iter().any(has)
}

fn is_asked_for(query: &EventQuery, event: &Event) -> bool {
    query.operation.is_none_or(|id| event.operation == Some(id))
        && query.resource.as_ref().is_none_or(|name| *name == event.resource_name)
        && any_of(&query.actions, |action| *action == event.action)
        && any_of(&query.statuses, |status| status == event.status.as_str())
        && any_of(&query.types, |resource_type| *resource_type == event.resource_type)
        && any_of(&query.ids, |id| *id == event.id.to_string())
}

/// Whether one of the values matches; without values there is no condition.
fn any_of<T>(values: &[T], holds: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(holds)
}

/// `FAILED`, or `CREATE_FAILED` with the action. Any other word matches no stack.
fn has_status(stack: &Stack, word: &str) -> bool {
    let (action, status) = (stack.state.action.as_str(), stack.state.status.as_str());
    if word.parse::<Status>().is_ok() {
        return word == status;
    }
    matches!(word.split_once('_'), Some((asked, rest)) if asked.parse::<Action>().is_ok() && asked == action && rest == status)
}
