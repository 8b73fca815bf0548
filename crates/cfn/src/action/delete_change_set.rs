//! Deletes a change set. As in AWS, this succeeds if it does not exist.

use kiln_value::{Map, Value};

use super::Action;
use super::parameter::CHANGE_SET;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "DeleteChangeSet",
    rule: "cloudformation:UpdateStack",
    parameters: &[CHANGE_SET],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    match call.change_set().await {
        Ok(prepared) => call.service().delete_change_set(prepared).await?,
        Err(fault) if fault == Fault::no_change_set(call.params.required("ChangeSetName")?) => {}
        Err(fault) => return Err(fault),
    }
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_change_set_that_does_not_exist_is_deleted() {
        let app = App::new().await;
        app.create("app").await;
        let deleted = app.post("DeleteChangeSet", &[("StackName", "app"), ("ChangeSetName", "none")]).await;
        assert_eq!(deleted.status.as_u16(), 200, "as on AWS: {}", deleted.text);
    }
}
