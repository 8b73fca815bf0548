//! Branching: `switch`, `selectCase`, `switchCase`, `coalesce` and the like.

use crate::Error;
use crate::call::{Argument, Call};
use crate::object::Object;
use crate::parameter::Type::{Int, Lambda, LazyRule};
use crate::parameter::{Overload, function, method, p};

pub(super) const FUNCTIONS: &[Overload] = &[
    function("switch", &[], switch).rest(LazyRule).rules(),
    function("selectCase", &[], select_case).rest(Lambda),
    function("selectAllCases", &[], select_all_cases).rest(Lambda),
    function("examine", &[], examine).rest(Lambda),
    method("switchCase", &[p("case", Int)], switch_case).rest(Lambda),
    function("coalesce", &[], coalesce).rest(Lambda),
];

/// The value of the first rule whose condition is true.
fn switch(call: &mut Call<'_>) -> Result<Object, Error> {
    for arg in &call.args {
        let Argument::Rule(rule) = arg else { continue };
        if rule.source.test(call.engine, &[])? {
            return rule.destination.call(call.engine, &[]);
        }
    }
    Ok(Object::Null)
}

/// The index of the first true condition; the number of conditions if there is none.
fn select_case(call: &mut Call<'_>) -> Result<Object, Error> {
    let conditions = call.lambdas(0);
    for (i, condition) in conditions.iter().enumerate() {
        if condition.test(call.engine, &[])? {
            return Ok(Object::count(i));
        }
    }
    Ok(Object::count(conditions.len()))
}

fn select_all_cases(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut conditions = call.lambdas(0).into_iter().enumerate();
    call.iterator(move |engine| {
        for (i, condition) in conditions.by_ref() {
            if condition.test(engine, &[])? {
                return Ok(Some(Object::count(i)));
            }
        }
        Ok(None)
    })
}

fn examine(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut conditions = call.lambdas(0).into_iter();
    call.iterator(move |engine| match conditions.next() {
        Some(condition) => Ok(Some(condition.test(engine, &[])?.into())),
        None => Ok(None),
    })
}

/// The value at an index; the last one if there is none.
fn switch_case(call: &mut Call<'_>) -> Result<Object, Error> {
    let values = call.lambdas(1);
    let index = usize::try_from(call.int(0).unwrap_or(-1)).ok();
    match index.and_then(|index| values.get(index)).or(values.last()) {
        Some(value) => value.call(call.engine, &[]),
        None => Ok(Object::Null),
    }
}

/// The first value that is not null.
fn coalesce(call: &mut Call<'_>) -> Result<Object, Error> {
    for value in call.lambdas(0) {
        let value = value.call(call.engine, &[])?;
        if !matches!(value, Object::Null) {
            return Ok(value);
        }
    }
    Ok(Object::Null)
}
