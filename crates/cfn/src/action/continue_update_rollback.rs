//! Continues a rollback of an update that has failed.

use std::collections::BTreeSet;

use kiln_resource::{Action as StackAction, State, Status};
use kiln_value::{Map, Value};

use super::Action;
use super::parameter::{STACK_NAME, TOKEN, optional};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "ContinueUpdateRollback",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[
        STACK_NAME,
        TOKEN,
        optional(
            "ResourcesToSkip",
            "Names of resources with which nothing is done; below a nested stack NAME.RESOURCE",
        ),
    ]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    if stack.state != State::new(StackAction::Rollback, Status::Failed) {
        let text = format!("Stack [{}] is in {} state and can not continue rollback", stack.name, stack.state);
        return Err(Fault::validation(text));
    }
    let skip: BTreeSet<String> =
        call.params.list("ResourcesToSkip").iter().map(|name| name.replace('.', "/")).collect();
    call.service().continue_stack(&call.caller, &stack, &skip).await?;
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kiln_resource::{Action, Resource, ResourceId, State, Status};
    use kiln_store::{Batch, EngineId, Settle};

    use crate::support::App;

    #[tokio::test]
    async fn only_a_failed_rollback_is_continued() {
        let app = App::new().await;
        app.create("app").await;
        let refused = app.post("ContinueUpdateRollback", &[("StackName", "app")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
        let text = "Stack [app] is in CREATE_IN_PROGRESS state and can not continue rollback";
        assert_eq!(refused.element("Message"), text);
    }

    #[tokio::test]
    async fn a_failed_rollback_is_continued_without_what_is_skipped() {
        let app = App::new().await;
        app.create("app").await;
        let stack = app.store.stack_by_name("tenant1", "app").await.unwrap().unwrap();
        let (owner, time) = (EngineId(uuid::Uuid::from_u128(1)), std::time::Duration::from_mins(1));
        let lease = app.store.claim(owner, time, &[stack.id], 1).await.unwrap().remove(0);
        let now = Timestamp::UNIX_EPOCH;
        let mut row = Resource::new(stack.id, ResourceId(uuid::Uuid::from_u128(2)), "stuck", "OS::Heat::Value", now);
        row.state = State::new(Action::Update, Status::Failed);
        let state = State::new(Action::Rollback, Status::Failed);
        let settle =
            Settle { generation: stack.generation, state, reason: String::new(), deleted: false, reached: false, now };
        let batch = Batch { save: vec![row].into(), settle: Some(settle), ..Batch::default() };
        app.store.commit(lease, batch).await.unwrap();
        let skip = |name: &'static str| [("StackName", "app"), ("ResourcesToSkip.member.1", name)];
        let unknown = app.post("ContinueUpdateRollback", &skip("none")).await;
        assert_eq!(unknown.element("Code"), "InvalidParameterValue", "{}", unknown.text);
        let continued = app.post("ContinueUpdateRollback", &skip("stuck")).await;
        assert_eq!(continued.status.as_u16(), 200, "{}", continued.text);
        let stack = app.store.stack(stack.id).await.unwrap().unwrap();
        assert_eq!(
            (stack.state, stack.details.skip),
            (State::new(Action::Rollback, Status::InProgress), vec!["stuck".to_owned()])
        );
    }
}
