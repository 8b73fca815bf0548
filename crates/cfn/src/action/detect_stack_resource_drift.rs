//! Compares a resource with its object.

use kiln_value::{Value, value};

use crate::call::Call;
use crate::fault::Fault;
use crate::view::drift;

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let name = call.params.required("LogicalResourceId")?.to_owned();
    let compared = call.service().drift(call.stack().await?, &[name]).await?;
    let shown = compared.resources.first().map(|one| drift::resource(call, &compared, one));
    Ok(value!({ "StackResourceDrift": shown }))
}
