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
