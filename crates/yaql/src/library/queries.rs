//! Queries that transform collections.

use crate::Error;
use crate::call::{Argument, Call};
use crate::cursor::{Cursor, Iter};
use crate::memory;
use crate::object::{Key, Object};
use crate::ordering::{self, Ordering};
use crate::overload::Arg;
use crate::parameter::Type::{Any, Int, Iterable, Lambda, Ordering as OrderingType};
use crate::parameter::{Default, Overload, Param, extension, function, method, p};
use crate::set::Members;

use super::collections::{chain, is_iterable, to_list};

const COLLECTION: Param = p("collection", Iterable);
const PREDICATE: &[Param] = &[COLLECTION, p("predicate", Lambda)];
const SELECTOR: &[Param] = &[COLLECTION, p("selector", Lambda)];
const COUNT: &[Param] = &[COLLECTION, p("count", Int)];
const ORDERED: &[Param] = &[p("collection", OrderingType), p("selector", Lambda)];
const AGGREGATE: &[Param] = &[COLLECTION, p("selector", Lambda), p("seed", Any).or(Default::Missing)];
const INITIAL: &[Param] = &[COLLECTION, p("initial", Any).or(Default::Missing)];

pub(super) const FUNCTIONS: &[Overload] = &[
    method("where", PREDICATE, filter),
    method("filter", PREDICATE, filter),
    method("select", SELECTOR, select),
    method("map", SELECTOR, select),
    method("selectMany", SELECTOR, select_many),
    method("limit", COUNT, limit),
    method("take", COUNT, limit),
    method("skip", COUNT, skip),
    method("takeWhile", PREDICATE, take_while),
    method("skipWhile", PREDICATE, skip_while),
    extension("append", &[COLLECTION], append).rest(Any),
    extension("concat", &[], |call| chain(&call.rest(0))).rest(Iterable),
    extension("distinct", &[COLLECTION, p("keySelector", Lambda).or(Default::Null)], distinct),
    extension("enumerate", &[COLLECTION, p("start", Int).nullable().or(Default::Int(0))], enumerate),
    method("memorize", &[COLLECTION], |call| Iter::memorized(&call.take(0))),
    method("orderBy", SELECTOR, |call| order_by(call, true)),
    method("orderByDescending", SELECTOR, |call| order_by(call, false)),
    method("thenBy", ORDERED, |call| then_by(call, true)),
    method("thenByDescending", ORDERED, |call| then_by(call, false)),
    method("reverse", &[COLLECTION], reverse),
    method("aggregate", AGGREGATE, aggregate),
    method("reduce", AGGREGATE, aggregate),
    method("accumulate", AGGREGATE, accumulate),
    method("sum", INITIAL, |call| fold(call, "#operator_+")),
    method("max", INITIAL, |call| fold(call, "max")),
    method("min", INITIAL, |call| fold(call, "min")),
    method("defaultIfEmpty", &[COLLECTION, p("default", Iterable)], default_if_empty),
    function("isIterable", &[p("value", Any)], |call| Ok(is_iterable(&call.take(0)).into())),
];

fn filter(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, predicate) = (call.cursor(0)?, call.lambda(1)?);
    call.iterator(move |engine| {
        while let Some(item) = cursor.next(engine)? {
            if predicate.test(engine, std::slice::from_ref(&item))? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    })
}

fn select(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, selector) = (call.cursor(0)?, call.lambda(1)?);
    call.iterator(move |engine| match cursor.next(engine)? {
        Some(item) => selector.call(engine, &[item]).map(Some),
        None => Ok(None),
    })
}

/// Collections that the selector returns are concatenated.
fn select_many(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, selector) = (call.cursor(0)?, call.lambda(1)?);
    let mut inner: Option<Cursor> = None;
    call.iterator(move |engine| {
        loop {
            if let Some(open) = &mut inner {
                if let Some(item) = open.next(engine)? {
                    return Ok(Some(item));
                }
                inner = None;
            }
            let Some(item) = cursor.next(engine)? else { return Ok(None) };
            let value = selector.call(engine, &[item])?;
            if !is_iterable(&value) {
                return Ok(Some(value));
            }
            inner = Cursor::over(&value);
        }
    })
}

fn limit(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, mut left) = (call.cursor(0)?, call.size(1, true)?);
    call.iterator(move |engine| match left.checked_sub(1) {
        Some(rest) => {
            left = rest;
            cursor.next(engine)
        }
        None => Ok(None),
    })
}

fn skip(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, mut left) = (call.cursor(0)?, call.size(1, false)?);
    call.iterator(move |engine| {
        while left > 0 {
            left -= 1;
            if cursor.next(engine)?.is_none() {
                left = 0;
            }
        }
        cursor.next(engine)
    })
}

fn take_while(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, predicate) = (call.cursor(0)?, call.lambda(1)?);
    let mut done = false;
    call.iterator(move |engine| {
        if done {
            return Ok(None);
        }
        let Some(item) = cursor.next(engine)? else { return Ok(None) };
        done = !predicate.test(engine, std::slice::from_ref(&item))?;
        Ok((!done).then_some(item))
    })
}

fn skip_while(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, predicate) = (call.cursor(0)?, call.lambda(1)?);
    let mut skipping = true;
    call.iterator(move |engine| {
        while let Some(item) = cursor.next(engine)? {
            skipping = skipping && predicate.test(engine, std::slice::from_ref(&item))?;
            if !skipping {
                return Ok(Some(item));
            }
        }
        Ok(None)
    })
}

fn append(call: &mut Call<'_>) -> Result<Object, Error> {
    let more = Object::tuple(call.rest(1))?;
    chain(&[call.take(0), more])
}

fn distinct(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, selector) = (call.cursor(0)?, call.optional_lambda(1));
    let mut seen = Members::default();
    call.iterator(move |engine| {
        while let Some(item) = cursor.next(engine)? {
            let key = match &selector {
                Some(selector) => selector.call(engine, std::slice::from_ref(&item))?,
                None => item.clone(),
            };
            if seen.insert(Key::new(key)?) {
                engine.charge_bytes(memory::set_table(seen.len()))?;
                return Ok(Some(item));
            }
        }
        Ok(None)
    })
}

/// Lists of position and item.
fn enumerate(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut index = call.take(1).as_int();
    call.iterator(move |engine| {
        // The first item may never be requested.
        let Some(position) = &mut index else {
            return Err(Error::type_error("'NoneType' object cannot be interpreted as an integer"));
        };
        let Some(item) = cursor.next(engine)? else { return Ok(None) };
        let here = position.clone().into();
        *position += 1;
        Object::list(vec![here, item]).map(Some)
    })
}

fn order_by(call: &mut Call<'_>, ascending: bool) -> Result<Object, Error> {
    let key = ordering::Key { selector: call.lambda(1)?, ascending };
    let ordering = Ordering::new(call.take(0), call.context.clone(), key);
    Ok(Object::Ordering(ordering.into()))
}

/// Adds a key to an ordering.
fn then_by(call: &mut Call<'_>, ascending: bool) -> Result<Object, Error> {
    let key = ordering::Key { selector: call.lambda(1)?, ascending };
    let collection = call.take(0);
    if let Object::Ordering(ordering) = &collection {
        ordering.then(key);
    }
    Ok(collection)
}

fn reverse(call: &mut Call<'_>) -> Result<Object, Error> {
    let Object::List(list) = to_list(call)? else { return Ok(Object::Null) };
    let mut items = list.items().to_vec();
    items.reverse();
    Iter::over(items)
}

/// Reduces a collection to one value with the selector.
fn aggregate(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, selector) = (call.cursor(0)?, call.lambda(1)?);
    let mut total = start(call, 2, &mut cursor)?;
    while let Some(item) = cursor.next(call.engine)? {
        total = selector.call(call.engine, &[total, item])?;
    }
    Ok(total)
}

/// [`aggregate`] with a function of the library.
fn fold(call: &mut Call<'_>, function: &str) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut total = start(call, 1, &mut cursor)?;
    while let Some(item) = cursor.next(call.engine)? {
        let args = vec![Arg::Value(total), Arg::Value(item)];
        total = call.engine.call_by_name(function, None, args, &call.context)?;
    }
    Ok(total)
}

fn start(call: &mut Call<'_>, seed: usize, cursor: &mut Cursor) -> Result<Object, Error> {
    match call.given(seed) {
        Some(seed) => Ok(seed),
        None => cursor
            .next(call.engine)?
            .ok_or_else(|| Error::type_error("reduce() of empty iterable with no initial value")),
    }
}

/// [`aggregate`] with all intermediate results.
fn accumulate(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, selector) = (call.cursor(0)?, call.lambda(1)?);
    let mut seed = call.given(2);
    let mut total: Option<Object> = None;
    call.args.push(Argument::Value(seed.clone().unwrap_or(Object::Null)));
    call.iterator(move |engine| {
        let next = match (total.take(), cursor_or_seed(&mut seed, &mut cursor, engine)?) {
            (None, None) => {
                return Err(Error::type_error("accumulate() of empty sequence with no initial value"));
            }
            (None, Some(first)) => first,
            (Some(last), None) => {
                total = Some(last);
                return Ok(None);
            }
            (Some(last), Some(item)) => selector.call(engine, &[last, item])?,
        };
        total = Some(next.clone());
        Ok(Some(next))
    })
}

fn cursor_or_seed(
    seed: &mut Option<Object>,
    cursor: &mut Cursor,
    engine: &crate::engine::Engine,
) -> Result<Option<Object>, Error> {
    match seed.take() {
        Some(seed) => Ok(Some(seed)),
        None => cursor.next(engine),
    }
}

fn default_if_empty(call: &mut Call<'_>) -> Result<Object, Error> {
    let collection = Iter::memorized(&call.take(0))?;
    let Some(mut cursor) = Cursor::over(&collection) else { return Ok(collection) };
    match cursor.next(call.engine)? {
        Some(_) => Ok(collection),
        None => Ok(call.take(1)),
    }
}
