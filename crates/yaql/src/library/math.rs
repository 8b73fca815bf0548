//! Numbers.

use std::hash::{BuildHasher, Hasher};

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::Error;
use crate::call::Call;
use crate::number;
use crate::object::Object;
use crate::overload::Arg;
use crate::parameter::Type::{Any, Int, Number};
use crate::parameter::{Default, Overload, Param, function, p};

const NUMBERS: &[Param] = &[p("left", Number), p("right", Number)];
const NUMBER: &[Param] = &[p("op", Number)];
const INTEGERS: &[Param] = &[p("left", Int), p("right", Int)];
const SHIFT: &[Param] = &[p("value", Int), p("bitsNumber", Int)];
const VALUE: &[Param] = &[p("value", Any)];
const PAIR: &[Param] = &[p("a", Any), p("b", Any)];

pub(super) const FUNCTIONS: &[Overload] = &[
    function("#operator_+", NUMBERS, |call| number::add(&call.take(0), &call.take(1))),
    function("#operator_-", NUMBERS, |call| number::subtract(&call.take(0), &call.take(1))),
    function("#operator_*", NUMBERS, |call| number::multiply(&call.take(0), &call.take(1))),
    function("#operator_/", NUMBERS, |call| number::divide(&call.take(0), &call.take(1))),
    function("#operator_mod", NUMBERS, |call| number::modulo(&call.take(0), &call.take(1))),
    function("#unary_operator_+", NUMBER, |call| Ok(call.take(0))),
    function("#unary_operator_-", NUMBER, |call| Ok(number::negate(&call.take(0)))),
    function("abs", NUMBER, |call| Ok(number::absolute(&call.take(0)))),
    function("int", VALUE, |call| match call.take(0) {
        Object::Null => Ok(Object::Int(0)),
        value => number::to_int(&value),
    }),
    function("float", VALUE, |call| match call.take(0) {
        Object::Null => Ok(Object::Float(0.0)),
        value => number::to_float(&value),
    }),
    function("random", &[], |_| Ok(Object::Float(chance()))),
    function("random", &[p("from", Any), p("to", Any)], random_between),
    function("bitwiseAnd", INTEGERS, |call| bitwise(call, |a, b| a & b)),
    function("bitwiseOr", INTEGERS, |call| bitwise(call, |a, b| a | b)),
    function("bitwiseXor", INTEGERS, |call| bitwise(call, |a, b| a ^ b)),
    function("bitwiseNot", &[p("arg", Int)], |call| Ok((!call.integer(0)?).into())),
    function("shiftBitsLeft", SHIFT, |call| number::shift(call.engine, &call.integer(0)?, &call.integer(1)?, true)),
    function("shiftBitsRight", SHIFT, |call| number::shift(call.engine, &call.integer(0)?, &call.integer(1)?, false)),
    function("max", PAIR, |call| extreme(call, true)),
    function("min", PAIR, |call| extreme(call, false)),
    function("pow", &[p("a", Number), p("b", Number), p("c", Number).nullable().or(Default::Null)], |call| {
        number::power(call.engine, &call.take(0), &call.take(1), &call.take(2))
    }),
    function("sign", &[p("num", Number)], |call| Ok(number::sign(&call.take(0)))),
    function("round", &[p("number", Number), p("ndigits", Int).or(Default::Int(0))], |call| {
        number::round(&call.take(0), call.int(1)?)
    }),
    function("isInteger", VALUE, |call| Ok(matches!(call.take(0), Object::Int(_) | Object::BigInt(_)).into())),
    function("isNumber", VALUE, |call| Ok(number::is_number(&call.take(0)).into())),
];

/// The result of two booleans is a boolean.
fn bitwise(call: &mut Call<'_>, apply: fn(BigInt, BigInt) -> BigInt) -> Result<Object, Error> {
    let result = apply(call.integer(0)?, call.integer(1)?);
    let truths = matches!((call.take(0), call.take(1)), (Object::Bool(_), Object::Bool(_)));
    Ok(if truths { (result != BigInt::ZERO).into() } else { result.into() })
}

/// A random number from 0 up to 1. Not for secrets.
fn chance() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    bits.to_f64().unwrap_or(0.0) / (1u64 << 53).to_f64().unwrap_or(1.0)
}

fn random_between(call: &mut Call<'_>) -> Result<Object, Error> {
    let (Some(from), Some(to)) = (call.take(0).as_int(), call.take(1).as_int()) else {
        return Err(Error::type_error("random() takes integers"));
    };
    if from > to {
        return Err(Error::value(format!("empty range for randrange() ({from}, {}, {})", &to + 1, &to + 1 - &from)));
    }
    let span: BigInt = to - &from + 1;
    let bits = BigInt::from(std::hash::RandomState::new().build_hasher().finish());
    Ok((from + bits % span).into())
}

/// The maximum or minimum of two values.
fn extreme(call: &mut Call<'_>, greatest: bool) -> Result<Object, Error> {
    let (a, b) = (call.take(0), call.take(1));
    let args = vec![Arg::Value(b.clone()), Arg::Value(a.clone())];
    let second_is_greater = call.engine.call_by_name("#operator_>", None, args, &call.context)?.is_truthy();
    Ok(if second_is_greater == greatest { b } else { a })
}
