//! Translation of properties for drivers: former names, names to IDs.
//!
//! It consists of two parts, so that calls to the cloud are made by the caller: [`lookups`] returns the names to look
//! up, [`apply`] inserts the results. docs/heat-behaviour.md §6 describes the rules and their order.

use std::collections::HashMap;

use indexmap::IndexMap;
use kiln_value::{Class, Diagnostic, Map, Path, Segment, Value};

use crate::names;

/// The effect of a rule on the value at its path.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Appends to a list.
    Add(Source),
    /// Replaces the value.
    Replace(Source),
    /// Resolves a name or ID to an ID with this finder. A `{name}` in it is replaced by the value of that property.
    Find(String),
    /// Removes the value.
    Delete,
}

/// The source of the value of [`Rule::Add`] and [`Rule::Replace`].
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A constant; a string `{name}` in it is replaced by the value of that property.
    Value(Value),
    /// A property: its path relative to the property of the rule.
    Sibling(Vec<String>),
}

/// A translation rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Names from the properties down, without indexes of lists.
    pub path: Vec<String>,
    /// The effect.
    pub rule: Rule,
    /// The property that must be specified for the rule to apply.
    pub when: Option<String>,
}

impl Translation {
    /// The finder of a [`Rule::Find`] for these properties; `None` for other rules, and if the property that determines
    /// the finder has no value.
    pub(crate) fn finder(&self, data: &Map) -> Option<String> {
        let Rule::Find(finder) = &self.rule else { return None };
        let Some((front, rest)) = finder.split_once('{') else { return Some(finder.clone()) };
        let (name, back) = rest.split_once('}')?;
        Some(format!("{front}{}{back}", data.get(name)?.as_str()?))
    }
}

/// A name that the cloud must resolve.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The finder: `neutron.network`.
    pub finder: String,
    /// The name or ID.
    pub value: String,
}

/// The results of lookups: the IDs.
pub type Answers = HashMap<Lookup, String>;

/// The names that must be resolved before [`apply`], each with the path of its first occurrence below the properties.
pub fn lookups(rules: &[Translation], data: &Map) -> IndexMap<Lookup, Path> {
    let mut found = IndexMap::new();
    for name in names::of(rules, data) {
        found.entry(name.lookup).or_insert(name.place);
    }
    found
}

/// Translates the properties. Names without an answer are not changed: during validation, the objects may not exist
/// yet. `at` is the path of the properties: `resources.server.properties`.
///
/// # Errors
/// `StackValidationFailed` if a property is specified by its former and its current name.
pub fn apply(rules: &[Translation], data: Map, answers: &Answers, at: &Path) -> Result<Map, Diagnostic> {
    let (data, faults) = attempt(rules, data, answers);
    let Some(error) = faults.into_iter().next() else { return Ok(data) };
    let mut path = at.clone();
    path.0.extend_from_slice(&error.path.0);
    Err(Diagnostic::of_property(&path, error.text.as_str()))
}

/// As [`apply`], but skips rules that cannot be applied: returns the resulting properties, and the error of each such
/// rule with the path below the properties.
pub fn attempt(rules: &[Translation], data: Map, answers: &Answers) -> (Map, Vec<Diagnostic>) {
    let (mut data, faults) = rewrite(rules, data);
    let holding = active(rules, &data);
    insert_answers(rules, &mut data, answers);
    for rule in holding.iter().filter(|r| r.rule == Rule::Delete) {
        edit(&mut data, &rule.path, &Path::root(), &mut |map, key, _| {
            map.shift_remove(key);
        });
    }
    (data, faults)
}

/// Replaces names by their IDs, as far as there are answers.
pub(crate) fn insert_answers(rules: &[Translation], data: &mut Map, answers: &Answers) {
    for rule in active(rules, data) {
        let Some(finder) = rule.finder(data) else { continue };
        edit(data, &rule.path, &Path::root(), &mut |map, key, _| {
            if let Some(value) = map.get_mut(key) {
                answer(value, &finder, answers);
            }
        });
    }
}

/// The paths of values that the translation has added to unspecified properties or removed: Heat does not validate
/// these. `before` and `after` are the properties without and with the translation.
pub fn moved(rules: &[Translation], before: &Map, after: &Map) -> Vec<Path> {
    let mut places = Vec::new();
    differing(before, after, &Path::root(), &mut places);
    let deletes = active(rules, before).into_iter().filter(|rule| rule.rule == Rule::Delete);
    places.extend(deletes.map(|rule| Path(rule.path.iter().cloned().map(Segment::Key).collect())));
    places
}

/// The paths of entries that only one of two maps has; for two lists, their common items are compared.
fn differing(before: &Map, after: &Map, at: &Path, places: &mut Vec<Path>) {
    let absent = |name: &&String| !after.contains_key(*name);
    places.extend(before.keys().filter(absent).map(|name| at.key(name)));
    for (name, value) in after {
        let at = at.key(name);
        match (before.get(name), value) {
            (None, _) => places.push(at),
            (Some(Value::Map(before)), Value::Map(after)) => differing(before, after, &at, places),
            (Some(Value::List(before)), Value::List(after)) => {
                for (index, items) in before.iter().zip(after).enumerate() {
                    if let (Value::Map(before), Value::Map(after)) = items {
                        differing(before, after, &at.index(index), places);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Applies additions, then replacements: everything before the lookups.
pub(crate) fn rewrite(rules: &[Translation], mut data: Map) -> (Map, Vec<Diagnostic>) {
    let given = data.clone();
    let mut faults = Vec::new();
    for rule in active(rules, &given) {
        if let Rule::Add(source) = &rule.rule {
            edit(&mut data, &rule.path, &Path::root(), &mut |map, key, at| {
                faults.extend(add(map, key, source, &given, at).err());
            });
        }
    }
    for rule in active(rules, &given) {
        if let Rule::Replace(source) = &rule.rule {
            edit(&mut data, &rule.path, &Path::root(), &mut |map, key, at| {
                faults.extend(replace(map, key, source, &given, &rule.path, at).err());
            });
        }
    }
    (data, faults)
}

/// The rules whose condition is true.
pub(crate) fn active<'a>(rules: &'a [Translation], data: &Map) -> Vec<&'a Translation> {
    let given = |name: &String| data.get(name).is_some_and(|v| !v.is_null());
    rules.iter().filter(|rule| rule.when.as_ref().is_none_or(given)).collect()
}

type Edit<'a> = dyn FnMut(&mut Map, &str, &Path) + 'a;

/// Calls `with` for every map that contains (or may contain) the last name of the path, through lists.
fn edit(map: &mut Map, path: &[String], at: &Path, with: &mut Edit<'_>) {
    let Some((key, rest)) = path.split_first() else { return };
    let here = at.key(key);
    if rest.is_empty() {
        return with(map, key, &here);
    }
    match map.get_mut(key) {
        Some(Value::Map(inner)) => edit(inner, rest, &here, with),
        Some(Value::List(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                if let Value::Map(inner) = item {
                    edit(inner, rest, &here.index(i), with);
                }
            }
        }
        _ => {}
    }
}

fn answer(value: &mut Value, finder: &str, answers: &Answers) {
    match value {
        Value::Str(text) => {
            let lookup = Lookup { finder: finder.to_owned(), value: std::mem::take(text) };
            *text = answers.get(&lookup).cloned().unwrap_or(lookup.value);
        }
        Value::List(items) => items.iter_mut().for_each(|item| answer(item, finder, answers)),
        _ => {}
    }
}

fn add(map: &mut Map, key: &str, source: &Source, given: &Map, at: &Path) -> Result<(), Diagnostic> {
    if map.get(key).is_some_and(|value| !matches!(value, Value::Null | Value::List(_))) {
        let text = format!(
            "Incorrect translation rule using - cannot resolve Add rule for non-list translation value \"{at}\"."
        );
        return Err(Diagnostic::new(Class::ValueError, text).at(at.clone()));
    }
    let more = match source {
        Source::Value(value) => fill(value, given),
        Source::Sibling(path) => sibling(map, path).cloned().unwrap_or_default(),
    };
    let more = match more {
        Value::Null => return Ok(()),
        Value::List(items) => items,
        one => vec![one],
    };
    match map.entry(key.to_owned()).or_insert(Value::Null) {
        Value::List(items) => items.extend(more),
        empty => *empty = Value::List(more),
    }
    Ok(())
}

fn replace(
    map: &mut Map,
    key: &str,
    source: &Source,
    given: &Map,
    rule_path: &[String],
    at: &Path,
) -> Result<(), Diagnostic> {
    let value = match source {
        Source::Value(value) => Some(fill(value, given)),
        Source::Sibling(path) => take(map, path),
    };
    let Some(value) = value else { return Ok(()) };
    if value.is_null() {
        // Specified, but unknown.
        map.entry(key.to_owned()).or_insert(value);
        return Ok(());
    }
    if let Source::Sibling(path) = source
        && value.is_truthy()
        && map.get(key).is_some_and(Value::is_truthy)
    {
        let parents = rule_path.split_last().map_or(&[][..], |(_, parents)| parents);
        let old = [parents, path].concat().join(".");
        let text = format!("Cannot define the following properties at the same time: {}, {old}", rule_path.join("."));
        return Err(Diagnostic::invalid(text).at(at.clone()));
    }
    map.insert(key.to_owned(), value);
    Ok(())
}

fn sibling<'a>(map: &'a Map, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(map.get(first)?, |value, key| value.get(key))
}

fn take(map: &mut Map, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut map = map;
    for key in parents {
        map = map.get_mut(key)?.as_map_mut()?;
    }
    map.shift_remove(last)
}

/// A constant in which strings `{name}` are replaced by the values of properties.
fn fill(value: &Value, given: &Map) -> Value {
    match value {
        Value::Str(text) => text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .map_or_else(|| value.clone(), |name| given.get(name).cloned().unwrap_or_default()),
        Value::List(items) => items.iter().map(|item| fill(item, given)).collect(),
        Value::Map(map) => map.iter().map(|(k, v)| (k.clone(), fill(v, given))).collect(),
        other => other.clone(),
    }
}
