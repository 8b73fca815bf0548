//! Lists of stacks and events, with filters, sorting and paging.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kiln_resource::{Action, Status};

use super::state::State;
use crate::{Error, Event, EventQuery, Sort, SortKey, Stack, StackQuery};

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
        let marker = match query.marker {
            None => None,
            Some(marker) => {
                let place = self.event_places.get(&marker);
                Some(place.ok_or_else(|| Error::NotFound(format!("event {marker}")))?.1)
            }
        };
        let of = |holds: &dyn Fn(&Stack) -> bool| -> BTreeSet<crate::StackId> {
            self.stacks.values().map(|row| &row.stack).filter(|stack| holds(stack)).map(|stack| stack.id).collect()
        };
        let stacks = match (&query.root, &query.project) {
            (Some(root), _) => of(&|stack| stack.root == *root),
            (None, Some(project)) => of(&|stack| stack.project == *project),
            (None, None) => query.stacks.iter().copied().collect(),
        };
        let mut found: Vec<(u64, &Event)> = stacks
            .into_iter()
            .flat_map(|stack| self.events_of(stack))
            .map(|(place, event)| (place.1, event))
            .filter(|(seq, _)| marker.is_none_or(|marker| if query.descending { *seq < marker } else { *seq > marker }))
            .filter(|(_, event)| is_asked_for(query, event))
            .collect();
        found.sort_by_key(|(seq, _)| *seq);
        if query.descending {
            found.reverse();
        }
        found.truncate(limit_of(query.limit));
        Ok(found.into_iter().map(|(_, event)| event.clone()).collect())
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
    query.resource.as_ref().is_none_or(|name| *name == event.resource_name)
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
