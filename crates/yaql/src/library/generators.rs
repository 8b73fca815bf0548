//! Generated collections: ranges, sequences, repetition, recurrence.

use std::collections::VecDeque;

use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use crate::Error;
use crate::call::Call;
use crate::cursor::{Cursor, Iter};
use crate::engine::Engine;
use crate::memory;
use crate::object::{Key, Object};
use crate::parameter::Type::{Any, Bool, Int, Iterable, Lambda};
use crate::parameter::{Default, Overload, function, method, p};
use crate::set::Members;

pub(super) const FUNCTIONS: &[Overload] = &[
    function("range", &[p("stop", Int)], |call| range(BigInt::ZERO, Some(call.integer(0)?), BigInt::from(1))),
    function("range", &[p("start", Int), p("stop", Int), p("step", Int).or(Default::Int(1))], |call| {
        range(call.integer(0)?, Some(call.integer(1)?), call.integer(2)?)
    }),
    function("sequence", &[p("start", Int).or(Default::Int(0)), p("step", Int).or(Default::Int(1))], |call| {
        range(call.integer(0)?, None, call.integer(1)?)
    }),
    method("repeat", &[p("value", Any), p("times", Int).or(Default::Int(-1))], repeat),
    method("cycle", &[p("collection", Iterable)], cycle),
    function(
        "generate",
        &[
            p("initial", Any),
            p("predicate", Lambda),
            p("producer", Lambda),
            p("selector", Lambda).or(Default::Null),
            p("decycle", Bool).or(Default::Bool(false)),
        ],
        generate,
    ),
    function(
        "generateMany",
        &[
            p("initial", Any),
            p("producer", Lambda),
            p("selector", Lambda).or(Default::Null),
            p("decycle", Bool).or(Default::Bool(false)),
            p("depthFirst", Bool).or(Default::Bool(false)),
        ],
        generate_many,
    ),
];

/// Integers from a start, up to an end or unlimited.
fn range(start: BigInt, end: Option<BigInt>, step: BigInt) -> Result<Object, Error> {
    if end.is_some() && step.is_zero() {
        return Err(Error::value("range() arg 3 must not be zero"));
    }
    let mut next = start;
    Iter::stream(0, move |_| {
        let over = end.as_ref().is_some_and(|end| if step.is_negative() { next <= *end } else { next >= *end });
        if over {
            return Ok(None);
        }
        let following = &next + &step;
        Ok(Some(std::mem::replace(&mut next, following).into()))
    })
}

/// A repeated value.
fn repeat(call: &mut Call<'_>) -> Result<Object, Error> {
    let times = call.int(1)?;
    let mut left = u64::try_from(times).ok();
    let value = call.take(0);
    let depth = value.measure().depth();
    Iter::stream(depth, move |_| match &mut left {
        Some(0) => Ok(None),
        Some(left) => {
            *left -= 1;
            Ok(Some(value.clone()))
        }
        None => Ok(Some(value.clone())),
    })
}

fn cycle(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = Some(call.cursor(0)?);
    let mut seen: Vec<Object> = Vec::new();
    let mut index = 0;
    call.iterator(move |engine| {
        if let Some(open) = &mut cursor {
            if let Some(item) = open.next(engine)? {
                seen.push(item.clone());
                return Ok(Some(item));
            }
            cursor = None;
        }
        let item = seen.get(index).cloned();
        index = if index + 1 < seen.len() { index + 1 } else { 0 };
        Ok(item)
    })
}

/// Whether a value is new; always true if values are not recorded.
fn is_new(past: &mut Option<Members>, value: &Object, engine: &Engine) -> Result<bool, Error> {
    let Some(past) = past else { return Ok(true) };
    let new = past.insert(Key::new(value.clone())?);
    engine.charge_bytes(memory::set_table(past.len()))?;
    Ok(new)
}

/// A value, then the result of the producer for it and so on, while the predicate is true.
fn generate(call: &mut Call<'_>) -> Result<Object, Error> {
    let (predicate, producer, selector) = (call.lambda(1)?, call.lambda(2)?, call.optional_lambda(3));
    let mut past = call.truth(4).then(Members::default);
    let mut last: Option<Object> = None;
    let mut first = Some(call.take(0));
    call.iterator(move |engine| {
        let value = match (first.take(), last.take()) {
            (Some(first), _) => first,
            (None, Some(last)) => producer.call(engine, &[last])?,
            (None, None) => return Ok(None),
        };
        let value = [value];
        if !predicate.test(engine, &value)? {
            return Ok(None);
        }
        let [value] = value;
        if !is_new(&mut past, &value, engine)? {
            return Ok(None);
        }
        last = Some(value.clone());
        match &selector {
            Some(selector) => selector.call(engine, &[value]).map(Some),
            None => Ok(Some(value)),
        }
    })
}

/// A value, then all results of the producer for it, then all results for those and so on.
fn generate_many(call: &mut Call<'_>) -> Result<Object, Error> {
    let (producer, selector) = (call.lambda(1)?, call.optional_lambda(2));
    let mut past = call.truth(3).then(Members::default);
    let depth_first = call.truth(4);
    let mut queue = VecDeque::from([call.take(0)]);
    let mut last: Option<Object> = None;
    call.iterator(move |engine| {
        if let Some(last) = last.take() {
            let more = producer.call(engine, &[last])?;
            // A string yields its characters.
            let more = match more {
                Object::Str(text) => Object::tuple(text.chars().map(|c| Object::text(c.to_string())).collect())?,
                other => other,
            };
            let mut cursor = Cursor::over(&more).ok_or_else(|| Error::not_iterable(&more))?;
            let before = queue.len();
            while let Some(item) = cursor.next(engine)? {
                queue.push_back(item);
                engine.charge_bytes(624 + 8 * queue.len())?;
            }
            if depth_first {
                let added = queue.len() - before;
                queue.rotate_right(added);
            }
        }
        while let Some(item) = queue.pop_front() {
            if !is_new(&mut past, &item, engine)? {
                continue;
            }
            last = Some(item.clone());
            return match &selector {
                Some(selector) => selector.call(engine, &[item]).map(Some),
                None => Ok(Some(item)),
            };
        }
        Ok(None)
    })
}
