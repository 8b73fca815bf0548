//! Lists and dictionaries.

use num_traits::{Signed, ToPrimitive};

use crate::Error;
use crate::call::Call;
use crate::cursor::{Cursor, Iter};
use crate::dict::{Dict, Entries};
use crate::engine::Engine;
use crate::memory;
use crate::object::{Key, List, ListKind, Object};
use crate::overload::Arg;
use crate::parameter::Type::{Any, Dict as DictType, Int, Iterable, Lambda, Rule, Sequence};
use crate::parameter::{Default, Overload, Param, extension, function, method, p};
use crate::set::{Members, Set};

const DICT: Param = p("dict", DictType);
const COLLECTION: Param = p("collection", Iterable);

pub(super) const FUNCTIONS: &[Overload] = &[
    function("list", &[], list).rest(Any),
    function("#list", &[], build_list).rest(Any),
    method("toList", &[COLLECTION], to_list),
    method("flatten", &[COLLECTION], flatten),
    function("#indexer", &[p("list", Sequence), p("index", Int)], list_index),
    function("dict", &[], dict_of_rules).rest(Rule).rules(),
    function("#map", &[], dict_of_rules).rest(Rule).rules(),
    function("dict", &[p("items", Iterable)], dict_of_items).rules(),
    method("toDict", &[COLLECTION, p("keySelector", Lambda), p("valueSelector", Lambda).or(Default::Null)], to_dict),
    function("#indexer", &[DICT, p("key", Any)], dict_index),
    function("#indexer", &[DICT, p("key", Any), p("default", Any)], dict_get),
    method("get", &[DICT, p("key", Any), p("default", Any).or(Default::Null)], dict_get),
    method("set", &[DICT, p("key", Any), p("value", Any)], dict_set).rules(),
    method("set", &[DICT, p("replacements", DictType)], dict_set_many).rules(),
    method("set", &[DICT], dict_set_rules).rest(Rule).rules(),
    method("keys", &[DICT], |call| Ok(Object::Set(Set::Keys(call.dict(0)?)))),
    method("values", &[DICT], |call| Ok(Object::Values(call.dict(0)?))),
    method("items", &[DICT], |call| Ok(Object::Set(Set::Items(call.dict(0)?)))),
    function("#operator_in", &[p("value", Any), COLLECTION], |call| contains(call, 1, 0)),
    method("contains", &[COLLECTION, p("value", Any)], |call| contains(call, 0, 1)),
    method("containsKey", &[DICT, p("key", Any)], |call| Ok(call.dict(0)?.get(&call.take(1))?.is_some().into())),
    method("containsValue", &[DICT, p("value", Any)], |call| {
        let value = call.take(1);
        Ok(call.dict(0)?.iter().any(|(_, known)| *known == value).into())
    }),
    function("#operator_+", &[p("left", Iterable), p("right", Iterable)], combine_lists),
    function("#operator_*", &[p("left", Sequence), p("right", Int)], |call| list_by_int(call, 0, 1)),
    function("#operator_*", &[p("left", Int), p("right", Sequence)], |call| list_by_int(call, 1, 0)),
    function("#operator_+", &[p("left", DictType), p("right", DictType)], combine_dicts),
    function("isDict", &[p("arg", Any)], |call| Ok(matches!(call.take(0), Object::Dict(_)).into())),
    function("isList", &[p("arg", Any)], |call| Ok(matches!(call.take(0), Object::List(_)).into())),
    extension("len", &[DICT], |call| Ok(Object::count(call.dict(0)?.len()))),
    extension("len", &[p("sequence", Sequence)], |call| Ok(Object::count(call.list(0)?.items().len()))),
    method("delete", &[DICT], delete_keys).rest(Any),
    method("deleteAll", &[DICT, p("keys", Iterable)], delete_all),
];

/// An iterator over the arguments; iterators among them are flattened.
pub(super) fn flatten_iterators(call: &mut Call<'_>) -> Result<Object, Error> {
    let args = call.rest(0);
    let depth = args.iter().map(|arg| arg.measure().depth()).max().unwrap_or(0);
    let mut cursors: Vec<Cursor> = Cursor::over(&Object::tuple(args)?).into_iter().collect();
    Iter::stream(depth + 1, move |engine| next_flat(&mut cursors, engine, |item| matches!(item, Object::Iter(_))))
}

/// The next item of nested collections; those that `opens` accepts are flattened.
fn next_flat(cursors: &mut Vec<Cursor>, engine: &Engine, opens: fn(&Object) -> bool) -> Result<Option<Object>, Error> {
    while let Some(cursor) = cursors.last_mut() {
        match cursor.next(engine)? {
            None => _ = cursors.pop(),
            Some(item) if opens(&item) => cursors.extend(Cursor::over(&item)),
            Some(item) => return Ok(Some(item)),
        }
    }
    Ok(None)
}

/// Whether a value is a collection but not a dictionary.
pub(super) fn is_iterable(value: &Object) -> bool {
    !matches!(value, Object::Dict(_)) && Cursor::over(value).is_some()
}

fn list(call: &mut Call<'_>) -> Result<Object, Error> {
    let items = flatten_iterators(call)?;
    call.engine.call_by_name("toList", Some(items), Vec::<Arg<'_>>::new(), &call.context)
}

fn build_list(call: &mut Call<'_>) -> Result<Object, Error> {
    let items = call.rest(0);
    call.engine.charge_bytes(items.iter().map(memory::size).sum())?;
    Object::tuple(items)
}

/// A tuple of the items.
pub(super) fn to_list(call: &mut Call<'_>) -> Result<Object, Error> {
    match call.take(0) {
        Object::List(list) if list.kind == ListKind::Tuple => Ok(Object::List(list)),
        collection => Object::tuple(walk(&collection, call.engine)?),
    }
}

fn walk(collection: &Object, engine: &Engine) -> Result<Vec<Object>, Error> {
    match Cursor::over(collection) {
        Some(cursor) => cursor.collect(engine),
        None => Ok(Vec::new()),
    }
}

fn flatten(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursors = vec![call.cursor(0)?];
    call.iterator(move |engine| next_flat(&mut cursors, engine, is_iterable))
}

fn list_index(call: &mut Call<'_>) -> Result<Object, Error> {
    let list = call.list(0)?;
    let name = if list.kind == ListKind::Tuple { "tuple" } else { "list" };
    let index = call.integer(1)?.to_i64();
    let index = index.and_then(|index| {
        if index < 0 {
            list.items().len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
        } else {
            index.to_usize()
        }
    });
    let item = index.and_then(|index| list.get(index)).cloned();
    item.ok_or_else(|| Error::new("IndexError", format!("{name} index out of range")))
}

/// Evaluates both sides of rules.
fn entries(rules: Vec<Object>) -> Result<Entries, Error> {
    let mut entries = Entries::default();
    for rule in rules {
        if let Object::Rule(rule) = rule {
            entries.insert(Key::new(rule.0.clone())?, rule.1.clone());
        }
    }
    Ok(entries)
}

fn dict_of_rules(call: &mut Call<'_>) -> Result<Object, Error> {
    Dict::frozen(entries(call.rest(0))?).map(Object::Dict)
}

/// A dictionary from the first two parts of each item.
fn dict_of_items(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut entries = Entries::default();
    while let Some(item) = cursor.next(call.engine)? {
        let (key, value) = match &item {
            Object::Str(text) => {
                let mut chars = text.chars().map(|c| Object::text(c.to_string()));
                (chars.next(), chars.next())
            }
            other => {
                let mut parts = Cursor::over(other).ok_or_else(|| Error::not_iterable(other))?;
                (parts.next(call.engine)?, parts.next(call.engine)?)
            }
        };
        let (Some(key), Some(value)) = (key, value) else { return Err(Error::stop()) };
        entries.insert(Key::new(key)?, value);
        call.engine.charge_bytes(memory::dict_table(entries.len()))?;
    }
    Dict::frozen(entries).map(Object::Dict)
}

fn to_dict(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let (key, value) = (call.lambda(1)?, call.optional_lambda(2));
    let mut entries = Entries::default();
    while let Some(item) = cursor.next(call.engine)? {
        let item = [item];
        let key = key.call(call.engine, &item)?;
        let value = match &value {
            Some(selector) => selector.call(call.engine, &item)?,
            None => item.into_iter().next().unwrap_or(Object::Null),
        };
        entries.insert(Key::new(key)?, value);
        call.engine.charge_bytes(memory::dict_table(entries.len()))?;
    }
    Dict::plain(entries).map(Object::Dict)
}

fn dict_index(call: &mut Call<'_>) -> Result<Object, Error> {
    let key = call.take(1);
    call.dict(0)?.get(&key)?.cloned().ok_or_else(|| Error::key(&key))
}

fn dict_get(call: &mut Call<'_>) -> Result<Object, Error> {
    let found = call.dict(0)?.get(&call.take(1))?.cloned();
    Ok(found.unwrap_or_else(|| call.take(2)))
}

/// A copy with entries added or replaced.
fn with_entries(dict: &Dict, more: Entries) -> Result<Object, Error> {
    let mut entries = dict.entries().clone();
    entries.extend(more);
    Dict::frozen(entries).map(Object::Dict)
}

fn dict_set(call: &mut Call<'_>) -> Result<Object, Error> {
    let dict = call.dict(0)?;
    let (key, value) = (call.take(1), call.take(2));
    call.engine.charge_bytes([&key, &value].map(memory::size).iter().sum::<usize>() + 56)?;
    with_entries(&dict, Entries::from_iter([(Key::new(key)?, value)]))
}

fn dict_set_many(call: &mut Call<'_>) -> Result<Object, Error> {
    with_entries(&call.dict(0)?, call.dict(1)?.entries().clone())
}

fn dict_set_rules(call: &mut Call<'_>) -> Result<Object, Error> {
    let dict = call.dict(0)?;
    with_entries(&dict, entries(call.rest(1))?)
}

fn contains(call: &mut Call<'_>, collection: usize, value: usize) -> Result<Object, Error> {
    let value = call.take(value);
    let mut cursor = call.cursor(collection)?;
    if let Object::Set(set) = call.take(collection) {
        return Ok(set.contains(&value)?.into());
    }
    while let Some(item) = cursor.next(call.engine)? {
        if item == value {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn combine_lists(call: &mut Call<'_>) -> Result<Object, Error> {
    let (left, right) = (call.take(0), call.take(1));
    let size = memory::size(&left) + memory::size(&right);
    match (&left, &right) {
        (Object::List(a), Object::List(b)) if (a.kind, b.kind) == (ListKind::Tuple, ListKind::Tuple) => {
            call.engine.charge_bytes(size)?;
            Object::tuple(a.items().iter().chain(b.items()).cloned().collect())
        }
        (Object::Set(a @ Set::Frozen(_)), Object::Set(b @ Set::Frozen(_))) => {
            call.engine.charge_bytes(size)?;
            let members: Members = a.members("union")?.iter().chain(b.members("union")?).cloned().collect();
            Set::new(members).map(Object::Set)
        }
        _ => chain(&[left, right]),
    }
}

/// The items of all collections in sequence.
pub(super) fn chain(collections: &[Object]) -> Result<Object, Error> {
    let depth = collections.iter().map(|collection| collection.measure().depth()).max().unwrap_or(0);
    let mut cursors: Vec<Cursor> = collections.iter().rev().filter_map(Cursor::over).collect();
    Iter::stream(depth, move |engine| next_flat(&mut cursors, engine, |_| false))
}

fn list_by_int(call: &mut Call<'_>, list: usize, times: usize) -> Result<Object, Error> {
    let list: List = call.list(list)?;
    let times = call.integer(times)?;
    if !times.is_positive() {
        return Object::sequence(list.kind, Vec::new());
    }
    let times = times.to_usize().ok_or_else(Error::too_much_memory)?;
    let size = memory::size(&Object::List(list.clone()));
    // Estimated as in the reference.
    call.engine.charge_bytes(times.saturating_mul(size).saturating_sub((times - 1).saturating_mul(56)))?;
    let total = times.saturating_mul(list.items().len());
    call.engine.step(total)?;
    Object::sequence(list.kind, list.items().iter().cycle().take(total).cloned().collect())
}

fn combine_dicts(call: &mut Call<'_>) -> Result<Object, Error> {
    let (left, right) = (call.dict(0)?, call.dict(1)?);
    let sizes = [&left, &right].map(|dict| memory::size(&Object::Dict(dict.clone())));
    call.engine.charge_bytes(sizes.iter().sum())?;
    with_entries(&left, right.entries().clone())
}

fn without(dict: &Dict, keys: Vec<Object>) -> Result<Object, Error> {
    let gone = keys.into_iter().map(Key::new).collect::<Result<Members, _>>()?;
    let kept = dict.entries().iter().filter(|(key, _)| !gone.contains(*key));
    Dict::plain(kept.map(|(key, value)| (key.clone(), value.clone())).collect()).map(Object::Dict)
}

fn delete_keys(call: &mut Call<'_>) -> Result<Object, Error> {
    let keys = call.rest(1);
    without(&call.dict(0)?, keys)
}

fn delete_all(call: &mut Call<'_>) -> Result<Object, Error> {
    let keys = call.cursor(1)?.collect(call.engine)?;
    without(&call.dict(0)?, keys)
}
