//! A user who clears all hooks after some time.

use std::sync::Arc;
use std::time::Duration;

use kiln_plan::hook::waits_at;
use kiln_resource::MessageId;
use kiln_store::{HookClearing, Message, MessageBody, StackQuery};

use crate::dice;
use crate::simulation::Simulation;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(1_500);

/// Clears hooks as long as the run lasts. Some are cleared twice, which has no effect.
pub(crate) async fn clear_all(sim: Arc<Simulation>) {
    let any = |action: &crate::scenario::UserAction| match &action.ask {
        crate::scenario::Ask::Create(wish) | crate::scenario::Ask::Update(wish) => !wish.hooks.is_empty(),
        _ => false,
    };
    if !sim.scenario.actions.iter().any(any) {
        return;
    }
    for round in 0_u64.. {
        tokio::time::sleep(EVERY).await;
        let query = StackQuery { nested: true, ..StackQuery::default() };
        for stack in sim.store.stacks(&query).await.unwrap_or_default() {
            for row in sim.store.resources(stack.id).await.unwrap_or_default() {
                let Some(hook) = waits_at(&row) else { continue };
                if !sim.dice.chance("clear a hook", 500) {
                    continue;
                }
                let now = sim.store_clock.now();
                let high = dice::hash((sim.scenario.seed, round, &row.name, "hook"));
                let low = dice::hash((stack.id.to_string(), row.id.to_string(), round));
                let id = uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes());
                let message = Message {
                    id: MessageId(id.into_uuid()),
                    stack: stack.id,
                    resource: Some(row.name.clone()),
                    body: MessageBody::ClearHook(HookClearing { hook: hook.to_string() }),
                    due: now,
                    sent: now,
                };
                sim.trace.note("user", || format!("clears {hook} of {} in {}", row.name, stack.name));
                _ = sim.store.send(&message).await;
            }
        }
    }
}
