//! Checks that messages are handled once and in order.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{Action, Resource};
use kiln_store::{Event, EventQuery, Message, MessageBody, Stack};
use kiln_value::Value;

use crate::clock::TrueTime;
use crate::rule::Rule;
use crate::scenario::Ask;
use crate::simulation::Simulation;
use crate::template_model::Plain;

/// Records the messages of a row: no other row may receive them.
pub(crate) fn note(sim: &Simulation, row: &Resource) {
    for body in row.data.get("received").and_then(Value::as_list).unwrap_or_default() {
        if sim.ledger.received(row.stack, body, row.id) != row.id {
            sim.accuse(Rule::Inbox, format!("{} received {body:?}, which another row has received", row.name));
        }
    }
}

/// Checks that the resources of a stack received the messages that were sent to them, in order and once.
pub(crate) async fn check(sim: &Simulation, stack: &Stack) {
    let rows = sim.store.resources(stack.id).await.unwrap_or_default();
    let query = EventQuery { stacks: vec![stack.id], ..EventQuery::default() };
    let events = sim.store.events(&query).await.unwrap_or_default();
    let from_and_to =
        |event: &Event| Some((event.reason.strip_prefix("moved from ")?.to_owned(), event.resource_name.clone()));
    let moves: BTreeSet<(String, String)> = events.iter().filter_map(from_and_to).collect();
    for row in &rows {
        check_row(sim, stack, row, &moves);
    }
}

/// Checks that the end of every change of a group is recorded, and that no signal has changed a group twice.
pub(crate) async fn check_scaling(sim: &Simulation, stack: &Stack) {
    let rows = sim.store.resources(stack.id).await.unwrap_or_default();
    for row in &rows {
        if row.metadata.get("scaling_in_progress").is_some_and(Value::is_truthy) {
            sim.accuse(Rule::Stuck, format!("{} of {} is said to be changing its size", row.name, stack.name));
        }
    }
    let query = EventQuery { stacks: vec![stack.id], ..EventQuery::default() };
    let events = sim.store.events(&query).await.unwrap_or_default();
    let of_policies = |event: &&Event| event.action == "SIGNAL" && event.resource_type == "OS::Heat::ScalingPolicy";
    let sent = sim.ledger.messages();
    let sent = sent
        .iter()
        .filter(|message| matches!(message.body, MessageBody::Signal(_)) && message.stack == stack.id)
        .count();
    let changes = events.iter().filter(of_policies).filter(|event| event.reason == "Unknown").count();
    if changes > sent {
        sim.accuse(Rule::Inbox, format!("{changes} changes of size after {sent} signals to {}", stack.name));
    }
}

/// Whether messages to a resource may be refused, also those that were sent before: the stack is suspended or deleted, or
/// gets a template without the resource, also if that fails.
fn may_refuse(sim: &Simulation, stack: &Stack, name: &str, since: Timestamp) -> bool {
    let place = stack.name.trim_start_matches('s');
    let mut asked = sim.scenario.actions.iter().filter(|action| action.stack.to_string() == place);
    asked.any(|action| match &action.ask {
        Ask::Suspend | Ask::Delete => true,
        Ask::Create(wish) | Ask::Update(wish) => {
            wish.template.get(name).is_none() && TrueTime::at(Duration::from_millis(action.at_ms)) >= since
        }
        _ => false,
    })
}

fn check_row(sim: &Simulation, stack: &Stack, row: &Resource, moves: &BTreeSet<(String, String)>) {
    let received = row.data.get("received").and_then(Value::as_list).unwrap_or_default();
    let mut sent = sim.ledger.messages();
    let template = sim.ledger.meaning(&stack.desired);
    // What was sent to a former name reaches the resource that has the present one now, as with a name that stays. A move in the
    // template is none if there was no resource to move.
    let is_moved = |name: &str| moves.contains(&(name.to_owned(), row.name.clone()));
    sent.retain(|message| {
        let name = message.resource.as_deref().unwrap_or_default();
        let is_to_row = name == row.name || row.former_names().any(|former| former == name) || is_moved(name);
        matches!(message.body, MessageBody::Signal(_)) && message.stack == stack.id && is_to_row
    });
    sent.sort_by_key(|message| (message.due, message.sent, message.id));
    // Messages that were sent while the resource existed must have arrived.
    let is_wanted = template.as_ref().is_none_or(|template| template.get(&row.name).is_some());
    if let Some(since) = sim.ledger.born(row.id)
        && is_wanted
        && stack.state.action != Action::Delete
        // A rollback has begun to delete it.
        && row.state.action != Action::Delete
        && row.resource_type == Plain::Inbox.resource_type()
        && !may_refuse(sim, stack, &row.name, since)
    {
        let is_later = |message: &Message| sim.ledger.stored(message).is_some_and(|(sent, _)| sent > since);
        let missed = sent.iter().find(|message| is_later(message) && !sim.ledger.was_received(message));
        if let Some(message) = missed {
            sim.accuse(Rule::Inbox, format!("{} never received {:?}: {received:?}", row.name, message.body.details()));
            return;
        }
    }
    // The database sorts by its clock where that is behind the sender's.
    let unsorted = sim.scenario.sets_store_clock_back();
    let mut left: Vec<_> = sent.iter().collect();
    for body in received {
        if let Some(place) = left.iter().position(|message| *message.body.details() == *body) {
            let received = left.remove(place);
            // Messages that were sent at the same time have no order.
            let sent = sim.ledger.stored(received).map(|(sent, _)| sent);
            let is_before =
                |other: &Message| sim.ledger.stored(other).zip(sent).is_none_or(|((_, stored), sent)| stored < sent);
            let mut earlier: Vec<_> = left.drain(..place).collect();
            earlier.retain(|other| unsorted || !is_before(other));
            left.splice(..0, earlier);
        } else {
            let text = format!("{} received {body:?} twice, or before an earlier one: {received:?}", row.name);
            sim.accuse(Rule::Inbox, text);
            return;
        }
    }
}
