//! Sets.

use crate::Error;
use crate::call::Call;
use crate::object::{Key, Object};
use crate::overload::Arg;
use crate::parameter::Type::{Any, Iterable, Set as SetType};
use crate::parameter::{Overload, Param, extension, function, method, p};
use crate::set::{Members, Set};

use super::collections::flatten_iterators;

const SETS: &[Param] = &[p("left", SetType), p("right", SetType)];

pub(super) const FUNCTIONS: &[Overload] = &[
    function("isSet", &[p("arg", Any)], |call| Ok(matches!(call.take(0), Object::Set(_)).into())),
    function("set", &[], set).rest(Any),
    method("toSet", &[p("collection", Iterable)], to_set),
    extension("len", &[p("set", SetType)], |call| Ok(Object::count(call.set(0)?.len()))),
    function("#operator_<", SETS, |call| {
        let (left, right) = (call.set(0)?, call.set(1)?);
        Ok((left.len() < right.len() && left.is_subset(&right)?).into())
    }),
    function("#operator_<=", SETS, |call| Ok(call.set(0)?.is_subset(&call.set(1)?)?.into())),
    function("#operator_>", SETS, |call| {
        let (left, right) = (call.set(0)?, call.set(1)?);
        Ok((left.len() > right.len() && right.is_subset(&left)?).into())
    }),
    function("#operator_>=", SETS, |call| Ok(call.set(1)?.is_subset(&call.set(0)?)?.into())),
    method("add", &[p("set", SetType)], add).rest(Any),
    method("remove", &[p("set", SetType)], remove).rest(Any),
    method("union", SETS, union),
    method("intersect", SETS, intersect),
    method("difference", SETS, difference),
    function("#operator_-", SETS, difference),
    method("symmetricDifference", SETS, symmetric_difference),
];

/// A set of the arguments; iterators among them are flattened.
fn set(call: &mut Call<'_>) -> Result<Object, Error> {
    let items = flatten_iterators(call)?;
    call.engine.call_by_name("toSet", Some(items), Vec::<Arg<'_>>::new(), &call.context)
}

fn to_set(call: &mut Call<'_>) -> Result<Object, Error> {
    let items = call.cursor(0)?.collect(call.engine)?;
    Set::of(items).map(Object::Set)
}

fn of(members: impl IntoIterator<Item = Key>) -> Result<Object, Error> {
    Set::new(members.into_iter().collect()).map(Object::Set)
}

fn keys(values: Vec<Object>) -> Result<Members, Error> {
    values.into_iter().map(Key::new).collect()
}

fn add(call: &mut Call<'_>) -> Result<Object, Error> {
    let set = call.set(0)?;
    let members = set.members("union")?;
    of(members.iter().cloned().chain(keys(call.rest(1))?))
}

fn remove(call: &mut Call<'_>) -> Result<Object, Error> {
    let set = call.set(0)?;
    let members = set.members("difference")?;
    let less = keys(call.rest(1))?;
    of(members.iter().filter(|member| !less.contains(*member)).cloned())
}

fn union(call: &mut Call<'_>) -> Result<Object, Error> {
    let other = keys(call.set(1)?.to_vec()?)?;
    of(call.set(0)?.members("union")?.iter().cloned().chain(other))
}

fn intersect(call: &mut Call<'_>) -> Result<Object, Error> {
    let other = keys(call.set(1)?.to_vec()?)?;
    of(call.set(0)?.members("intersection")?.iter().filter(|member| other.contains(*member)).cloned())
}

fn difference(call: &mut Call<'_>) -> Result<Object, Error> {
    let other = keys(call.set(1)?.to_vec()?)?;
    of(call.set(0)?.members("difference")?.iter().filter(|member| !other.contains(*member)).cloned())
}

fn symmetric_difference(call: &mut Call<'_>) -> Result<Object, Error> {
    let other = keys(call.set(1)?.to_vec()?)?;
    let set = call.set(0)?;
    let members = set.members("symmetric_difference")?;
    let left = members.iter().filter(|member| !other.contains(*member));
    let right = other.iter().filter(|member| !members.contains(*member));
    of(left.chain(right).cloned())
}
