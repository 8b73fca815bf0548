//! Queries that return one value: first, last, count, positions, tests.

use crate::Error;
use crate::call::Call;
use crate::object::Object;
use crate::parameter::Type::{Any, Iterable, Iterator, Lambda};
use crate::parameter::{Default, Overload, Param, extension, method, p};

const COLLECTION: Param = p("collection", Iterable);
const ITEM: &[Param] = &[COLLECTION, p("item", Any)];
const PREDICATE: &[Param] = &[COLLECTION, p("predicate", Lambda)];
const OPTIONAL_PREDICATE: &[Param] = &[COLLECTION, p("predicate", Lambda).or(Default::Null)];
const DEFAULT: &[Param] = &[COLLECTION, p("default", Any).or(Default::Missing)];

pub(super) const FUNCTIONS: &[Overload] = &[
    extension("any", OPTIONAL_PREDICATE, any),
    extension("all", OPTIONAL_PREDICATE, all),
    extension("len", &[p("collection", Iterator)], count),
    method("count", &[COLLECTION], count),
    method("first", DEFAULT, first),
    method("single", &[COLLECTION], single),
    method("last", DEFAULT, last),
    method("indexOf", ITEM, |call| item(call, false)),
    method("lastIndexOf", ITEM, |call| item(call, true)),
    method("indexWhere", PREDICATE, |call| place(call, false)),
    method("lastIndexWhere", PREDICATE, |call| place(call, true)),
];

fn any(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, predicate) = (call.cursor(0)?, call.optional_lambda(1));
    while let Some(item) = cursor.next(call.engine)? {
        match &predicate {
            Some(predicate) if !predicate.test(call.engine, &[item])? => {}
            _ => return Ok(true.into()),
        }
    }
    Ok(false.into())
}

fn all(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, predicate) = (call.cursor(0)?, call.optional_lambda(1));
    while let Some(item) = cursor.next(call.engine)? {
        let holds = match &predicate {
            Some(predicate) => predicate.test(call.engine, &[item])?,
            None => item.is_truthy(),
        };
        if !holds {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

fn count(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut count = 0;
    while cursor.next(call.engine)?.is_some() {
        count += 1;
    }
    Ok(Object::Int(count))
}

fn first(call: &mut Call<'_>) -> Result<Object, Error> {
    match call.cursor(0)?.next(call.engine)? {
        Some(item) => Ok(item),
        None => call.given(1).ok_or_else(Error::stop),
    }
}

fn single(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let item = cursor.next(call.engine)?.ok_or_else(Error::stop)?;
    match cursor.next(call.engine)? {
        None => Ok(item),
        Some(_) => Err(Error::new("StopIteration", "Collection contains more than one item")),
    }
}

fn last(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut last = None;
    while let Some(item) = cursor.next(call.engine)? {
        last = Some(item);
    }
    last.or_else(|| call.given(1)).ok_or_else(Error::stop)
}

/// The first or last position of an equal item; -1 if there is none.
fn item(call: &mut Call<'_>, last: bool) -> Result<Object, Error> {
    let wanted = call.take(1);
    position(call, last, |_, item| Ok(item == wanted))
}

/// The first or last position at which the predicate is true; -1 if there is none.
fn place(call: &mut Call<'_>, last: bool) -> Result<Object, Error> {
    let predicate = call.lambda(1)?;
    position(call, last, |engine, item| predicate.test(engine, &[item]))
}

fn position(
    call: &mut Call<'_>,
    last: bool,
    mut holds: impl FnMut(&crate::engine::Engine, Object) -> Result<bool, Error>,
) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let (mut index, mut found) = (0, -1);
    while let Some(item) = cursor.next(call.engine)? {
        if holds(call.engine, item)? {
            found = index;
            if !last {
                break;
            }
        }
        index += 1;
    }
    Ok(Object::Int(found))
}
