//! Messages are handled once and in order.

use kiln_resource::Resource;
use kiln_store::{Stack, Store as _};
use kiln_value::Value;

use crate::rule::Rule;
use crate::world::World;

/// What the resources of a stack received is what was sent to them, in order; none twice.
pub(crate) async fn check(world: &World, stack: &Stack) {
    let rows = world.store.resources(stack.id).await.unwrap_or_default();
    for row in &rows {
        check_row(world, stack, row);
    }
}

fn check_row(world: &World, stack: &Stack, row: &Resource) {
    let received = row.data.get("received").and_then(Value::as_list).unwrap_or_default();
    let mut sent = world.ledger.messages();
    sent.retain(|message| message.stack == stack.id && message.resource.as_ref() == Some(&row.name));
    sent.sort_by_key(|message| (message.due, message.sent, message.id));
    let mut left = sent.iter();
    for body in received {
        if !left.any(|message| message.body == *body) {
            let text = format!("{} received {body:?} twice, or before an earlier one: {received:?}", row.name);
            world.accuse(Rule::Inbox, text);
            return;
        }
    }
}
