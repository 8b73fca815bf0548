//! The cost of a template: there is none.

use kiln_value::{Value, value};

use crate::call::Call;
use crate::fault::Fault;

#[expect(clippy::unused_async, reason = "like all actions")]
pub(super) async fn run(_: &Call) -> Result<Value, Fault> {
    Ok(value!({ "Url": "http://en.wikipedia.org/wiki/Gratis" }))
}
