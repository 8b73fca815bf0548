//! `and`, `or`, `not` and booleans.

use crate::Error;
use crate::call::Call;
use crate::object::Object;
use crate::parameter::Type::{Any, Lambda};
use crate::parameter::{Overload, function, p};

pub(super) const FUNCTIONS: &[Overload] = &[
    function("#operator_and", &[p("left", Lambda), p("right", Lambda)], and),
    function("#operator_or", &[p("left", Lambda), p("right", Lambda)], or),
    function("#unary_operator_not", &[p("arg", Any)], |call| Ok((!call.truth(0)).into())),
    function("bool", &[p("value", Any)], |call| Ok(call.truth(0).into())),
    function("isBoolean", &[p("value", Any)], |call| Ok(matches!(call.take(0), Object::Bool(_)).into())),
];

/// The left value if it determines the result, else the right one.
fn and(call: &mut Call<'_>) -> Result<Object, Error> {
    let left = call.lambda(0)?.call(call.engine, &[])?;
    if left.is_truthy() { call.lambda(1)?.call(call.engine, &[]) } else { Ok(left) }
}

fn or(call: &mut Call<'_>) -> Result<Object, Error> {
    let left = call.lambda(0)?.call(call.engine, &[])?;
    if left.is_truthy() { Ok(left) } else { call.lambda(1)?.call(call.engine, &[]) }
}
