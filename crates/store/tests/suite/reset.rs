//! The operator resets the status of a stack (`heat-manage reset_stack_status`).

use std::sync::Arc;

use kiln_resource::{Action, Operation, OperationState, Phase, Resource, Running, State, Status, StoredDefinition};
use kiln_store::{Batch, SqlStore};
use kiln_value::{Map, value};

use crate::bed::{beds, options};
use crate::make::{claimed, engine, resource};

fn running(operation: Operation, definition: Option<&str>, afterwards: OperationState) -> OperationState {
    let definition = definition.map(|name| Arc::new(StoredDefinition::of_type(name)));
    let token = "t".to_owned();
    Running { operation, definition, phase: Phase::Intent, token, attempt: 1, requires: Vec::new(), afterwards }.into()
}

#[tokio::test]
async fn what_was_in_progress_fails_and_what_was_tried_is_kept() {
    let tried = |name: &str| OperationState::HalfMade(Arc::new(StoredDefinition::of_type(name)));
    let update = Operation::Update { before: Map::new(), changed: Map::new() };
    let cases = [
        ("created", running(Operation::Create, None, OperationState::Idle), OperationState::Idle),
        ("updated", running(update, Some("New"), OperationState::Idle), tried("New")),
        ("checked", running(Operation::Check, None, tried("Old")), tried("Old")),
        ("unknown", OperationState::Unknown(value!({"format": 99})), OperationState::Idle),
    ];
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let store = SqlStore::open(options(bed.url())).await.unwrap();
            let (stack, lease) = claimed(&*bed.store, "web").await;
            let row = |name: &str, operation: &OperationState| Resource {
                operation: operation.clone(),
                state: State::new(Action::Update, Status::InProgress),
                ..resource(stack.id, name)
            };
            let save = cases.iter().map(|(name, operation, _)| row(name, operation)).collect();
            bed.store.commit(lease, Batch { save, ..Batch::default() }).await.unwrap();

            store.reset(stack.id, engine()).await.unwrap();
            let after = bed.store.stack(stack.id).await.unwrap().unwrap();
            assert_eq!(after.state, State::new(Action::Create, Status::Failed));
            assert_eq!(after.settled, after.generation);
            let rows = bed.store.resources(stack.id).await.unwrap();
            for (name, _, expected) in &cases {
                let row = rows.iter().find(|row| row.name == *name).unwrap();
                assert_eq!((&row.operation, row.state.status), (expected, Status::Failed), "{name} on {}", bed.url());
            }
        }
        bed.end().await;
    }
}
