//! Combinations of collections and groups: `groupBy`, `join`, `zip`, `mergeWith`.

use crate::Error;
use crate::call::Call;
use crate::cursor::{Cursor, Iter};
use crate::dict::{Dict, Entries};
use crate::engine::Engine;
use crate::lambda::Lambda;
use crate::memory;
use crate::object::{Key, List, MAX_DEPTH, Object};
use crate::parameter::Type::{Dict as DictType, Int, Iterable, Lambda as LambdaType};
use crate::parameter::{Default, Overload, Param, method, p};
use crate::set::Members;

const COLLECTION: Param = p("collection", Iterable);

pub(super) const FUNCTIONS: &[Overload] = &[
    method(
        "groupBy",
        &[
            COLLECTION,
            p("keySelector", LambdaType),
            p("valueSelector", LambdaType).or(Default::Null),
            p("aggregator", LambdaType).or(Default::Null),
        ],
        group_by,
    ),
    method(
        "join",
        &[
            p("collection1", Iterable),
            p("collection2", Iterable),
            p("predicate", LambdaType),
            p("selector", LambdaType),
        ],
        join,
    ),
    method("zip", &[], |call| zip(call, None)).rest(Iterable),
    method("zipLongest", &[], zip_longest).rest(Iterable).keywords(),
    method(
        "mergeWith",
        &[
            p("dict", DictType),
            p("another", DictType),
            p("listMerger", LambdaType).or(Default::Null),
            p("itemMerger", LambdaType).or(Default::Null),
            p("maxLevels", Int).or(Default::Int(0)),
        ],
        merge_with,
    ),
];

/// Pairs of a key and its values, in the order of the first occurrence of each key.
fn group_by(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, key, value) = (call.cursor(0)?, call.lambda(1)?, call.optional_lambda(2));
    let mut groups: indexmap::IndexMap<Key, Vec<Object>> = indexmap::IndexMap::default();
    while let Some(item) = cursor.next(call.engine)? {
        let item = [item];
        let value = match &value {
            Some(selector) => selector.call(call.engine, &item)?,
            None => item[0].clone(),
        };
        groups.entry(Key::new(key.call(call.engine, &item)?)?).or_default().push(value);
        call.engine.charge_bytes(memory::dict_table(groups.len()))?;
    }
    let mut groups = groups.into_iter();
    let mut aggregator = call.optional_lambda(3).map(Aggregator::new);
    call.iterator(move |engine| {
        let Some((key, values)) = groups.next() else { return Ok(None) };
        let values = Object::list(values)?;
        match &mut aggregator {
            Some(aggregator) => aggregator.call(engine, key.object(), values).map(Some),
            None => Object::tuple(vec![key.object().clone(), values]).map(Some),
        }
    })
}

/// The aggregator of groups. Before yaql 1.1.1 its argument was the pair of key and values instead of the values; if
/// the call with the values fails, the old form is tried.
struct Aggregator {
    lambda: Lambda,
    fallback: bool,
    failure: Option<Error>,
}

impl Aggregator {
    fn new(lambda: Lambda) -> Self {
        Self { lambda, fallback: true, failure: None }
    }

    fn call(&mut self, engine: &Engine, key: &Object, values: Object) -> Result<Object, Error> {
        if self.failure.is_none() {
            match self.lambda.call(engine, std::slice::from_ref(&values)) {
                Ok(result) => {
                    self.fallback &= looks_old(&values, &result);
                    return Object::tuple(vec![key.clone(), result]);
                }
                Err(error) if error.allows_fallback() => self.failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        if self.fallback {
            let pair = Object::tuple(vec![key.clone(), values])?;
            if let Ok(result) = self.lambda.call(engine, &[pair])
                && length(&result) == Some(2)
            {
                return Ok(result);
            }
        }
        Err(self.failure.clone().unwrap_or_else(Error::stop))
    }
}

/// Whether the result looks like that of an aggregator in the old form.
fn looks_old(values: &Object, result: &Object) -> bool {
    match (values, result) {
        (Object::List(values), Object::List(result)) => {
            values.items().len() == 2 && result.items().len() == 2 && values.get(0) == result.get(0)
        }
        _ => false,
    }
}

fn length(value: &Object) -> Option<usize> {
    match value {
        Object::List(list) => Some(list.items().len()),
        Object::Dict(dict) | Object::Values(dict) => Some(dict.len()),
        Object::Set(set) => Some(set.len()),
        Object::Str(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// The results of the selector for all pairs for which the predicate is true.
fn join(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut left = call.cursor(0)?;
    let right = Iter::memorized(&call.take(1))?;
    let (predicate, selector) = (call.lambda(2)?, call.lambda(3)?);
    let mut open: Option<(Object, Cursor)> = None;
    // The iterator also holds the second collection.
    call.args.push(crate::call::Argument::Value(right.clone()));
    call.iterator(move |engine| {
        loop {
            if let Some((item, others)) = &mut open {
                while let Some(other) = others.next(engine)? {
                    let pair = [item.clone(), other];
                    if predicate.test(engine, &pair)? {
                        return selector.call(engine, &pair).map(Some);
                    }
                }
                open = None;
            }
            let Some(item) = left.next(engine)? else { return Ok(None) };
            open = Cursor::over(&right).map(|cursor| (item, cursor));
        }
    })
}

/// Tuples of the first items, of the second ones and so on: up to the length of the shortest collection, or of the
/// longest with a default for missing values.
fn zip(call: &mut Call<'_>, missing: Option<Object>) -> Result<Object, Error> {
    let mut cursors = (0..call.args.len()).map(|i| call.cursor(i)).collect::<Result<Vec<_>, _>>()?;
    let mut done = vec![false; cursors.len()];
    call.iterator(move |engine| {
        let mut items = Vec::with_capacity(cursors.len());
        for (cursor, done) in cursors.iter_mut().zip(&mut done) {
            let item = if *done { None } else { cursor.next(engine)? };
            *done = item.is_none();
            match (item, &missing) {
                (Some(item), _) => items.push(item),
                (None, Some(missing)) => items.push(missing.clone()),
                (None, None) => return Ok(None),
            }
        }
        if done.iter().all(|done| *done) { Ok(None) } else { Object::tuple(items).map(Some) }
    })
}

fn zip_longest(call: &mut Call<'_>) -> Result<Object, Error> {
    let missing = call.keywords.iter().find(|(name, _)| name == "default").map(|(_, value)| value.clone());
    zip(call, Some(missing.unwrap_or(Object::Null)))
}

/// Merges two dictionaries.
struct Merger<'e> {
    engine: &'e Engine<'e>,
    lists: Option<Lambda>,
    items: Option<Lambda>,
}

fn merge_with(call: &mut Call<'_>) -> Result<Object, Error> {
    let (dict, another) = (call.dict(0)?, call.dict(1)?);
    let merger = Merger { engine: call.engine, lists: call.optional_lambda(2), items: call.optional_lambda(3) };
    merger.dicts(&dict, &another, call.int(4)?, 0)
}

impl Merger<'_> {
    /// Merges this number of levels; 0 for all.
    fn dicts(&self, left: &Dict, right: &Dict, levels: i64, depth: u32) -> Result<Object, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::recursion());
        }
        let mut entries = Entries::default();
        for (key, a) in left.entries() {
            self.engine.step(1)?;
            let merged = match right.entries().get(key) {
                Some(b) => self.values(a, b, levels, depth)?,
                None => a.clone(),
            };
            entries.insert(key.clone(), merged);
        }
        for (key, b) in right.entries() {
            entries.entry(key.clone()).or_insert_with(|| b.clone());
        }
        Dict::plain(entries).map(Object::Dict)
    }

    fn values(&self, a: &Object, b: &Object, levels: i64, depth: u32) -> Result<Object, Error> {
        let mismatch = || {
            let message = format!("Cannot merge <class '{}'> with <class '{}'>", a.type_name(), b.type_name());
            Err(Error::type_error(message))
        };
        match (a, b) {
            (Object::Dict(a), Object::Dict(b)) if levels != 1 => {
                self.dicts(a, b, if levels == 0 { 0 } else { levels - 1 }, depth + 1)
            }
            (Object::List(a), Object::List(b)) if levels != 1 => self.lists(a, b),
            (_, Object::Dict(_) | Object::List(_)) if levels != 1 => mismatch(),
            _ => match &self.items {
                Some(merger) => merger.call(self.engine, &[a.clone(), b.clone()]),
                None => Ok(b.clone()),
            },
        }
    }

    /// Both lists without duplicates, unless the call specifies otherwise.
    fn lists(&self, a: &List, b: &List) -> Result<Object, Error> {
        if let Some(merger) = &self.lists {
            return merger.call(self.engine, &[Object::List(a.clone()), Object::List(b.clone())]);
        }
        if a.kind != b.kind {
            let (left, right) = (a.kind.name(), b.kind.name());
            return Err(Error::type_error(format!("can only concatenate {left} (not \"{right}\") to {left}")));
        }
        let mut seen = Members::default();
        for item in a.items().iter().chain(b.items()) {
            seen.insert(Key::new(item.clone())?);
            self.engine.charge_bytes(memory::set_table(seen.len()))?;
        }
        self.engine.limit(seen.len())?;
        Object::tuple(seen.iter().map(|key| key.object().clone()).collect())
    }
}
