//! Equality of all values, and order of numbers, strings and null.

use std::cmp::Ordering;

use crate::Error;
use crate::call::Call;
use crate::number;
use crate::object::Object;
use crate::parameter::Type::{Any, Null, Number, Text};
use crate::parameter::{Body, Overload, Param, Type, function, p};

const ANY: &[Param] = &[p("left", Any), p("right", Any)];
const BEFORE_NULL: &[Param] = &[p("left", Any).not_null(), p("right", Null)];
const BEHIND_NULL: &[Param] = &[p("left", Null), p("right", Any).not_null()];
const NULLS: &[Param] = &[p("left", Null), p("right", Null)];

const fn pair(kind: Type) -> [Param; 2] {
    [p("left", kind), p("right", kind)]
}

const NUMBERS: &[Param] = &pair(Number);
const TEXTS: &[Param] = &pair(Text);

const YES: Body = |_| Ok(Object::Bool(true));
const NO: Body = |_| Ok(Object::Bool(false));

pub(super) const FUNCTIONS: &[Overload] = &[
    function("*equal", ANY, |call| Ok((call.take(0) == call.take(1)).into())),
    function("*not_equal", ANY, |call| Ok((call.take(0) != call.take(1)).into())),
    // Null is less than all other values.
    function("#operator_<", BEFORE_NULL, NO),
    function("#operator_<=", BEFORE_NULL, NO),
    function("#operator_>", BEFORE_NULL, YES),
    function("#operator_>=", BEFORE_NULL, YES),
    function("#operator_<", BEHIND_NULL, YES),
    function("#operator_<=", BEHIND_NULL, YES),
    function("#operator_>", BEHIND_NULL, NO),
    function("#operator_>=", BEHIND_NULL, NO),
    function("#operator_<", NULLS, NO),
    function("#operator_<=", NULLS, YES),
    function("#operator_>", NULLS, NO),
    function("#operator_>=", NULLS, YES),
    function("#operator_<", NUMBERS, |call| Ok(numbers(call, Ordering::is_lt))),
    function("#operator_<=", NUMBERS, |call| Ok(numbers(call, Ordering::is_le))),
    function("#operator_>", NUMBERS, |call| Ok(numbers(call, Ordering::is_gt))),
    function("#operator_>=", NUMBERS, |call| Ok(numbers(call, Ordering::is_ge))),
    function("#operator_<", TEXTS, |call| texts(call, Ordering::is_lt)),
    function("#operator_<=", TEXTS, |call| texts(call, Ordering::is_le)),
    function("#operator_>", TEXTS, |call| texts(call, Ordering::is_gt)),
    function("#operator_>=", TEXTS, |call| texts(call, Ordering::is_ge)),
];

fn numbers(call: &mut Call<'_>, holds: fn(Ordering) -> bool) -> Object {
    number::compare(&call.take(0), &call.take(1)).is_some_and(holds).into()
}

fn texts(call: &mut Call<'_>, holds: fn(Ordering) -> bool) -> Result<Object, Error> {
    Ok(holds(call.text(0)?.cmp(&call.text(1)?)).into())
}
