//! The possible types of attributes, derived from their use in a template.

use std::collections::BTreeMap;

use kiln_value::{Path, Segment, Value};

use crate::Page;
use crate::walk::{calls, value_at};

/// Generated values of attributes by resource and name; others are strings.
pub(super) type Shapes = BTreeMap<(String, String), Value>;

/// Functions whose second argument is a list.
const TAKE_LISTS: [&str; 4] = ["list_join", "Fn::Join", "Fn::Select", "Fn::MemberListToMap"];

/// A value for each attribute with a path, such that every step leads to a value.
pub(super) fn shapes(page: &Page) -> Shapes {
    let mut shapes = Shapes::new();
    for call in calls(page, &["get_attr", "Fn::GetAtt"]) {
        let Some([Value::Str(resource), Value::Str(name), steps @ ..]) = call.args.as_list() else { continue };
        let mut steps = steps.to_vec();
        steps.extend(outer_step(page, &call.path));
        if steps.is_empty() {
            continue;
        }
        let whole = shapes.entry((resource.clone(), name.clone())).or_default();
        grow(whole, &steps, &format!("{name} of {resource}"));
    }
    shapes
}

/// The step of the surrounding function into the result of a call.
fn outer_step(page: &Page, call: &Path) -> Option<Value> {
    let [.., Segment::Key(function), Segment::Index(1), _] = call.0.as_slice() else { return None };
    if !TAKE_LISTS.contains(&function.as_str()) {
        return None;
    }
    let args = Path(call.0.get(..call.0.len().checked_sub(2)?)?.to_vec());
    let index = value_at(page.value(), &args)?.at(0)?;
    match index {
        // A string that is not a number is the key of a map.
        Value::Str(text) if function == "Fn::Select" => Some(text.parse().map_or_else(|_| index.clone(), Value::Int)),
        Value::Int(_) if function == "Fn::Select" => Some(index.clone()),
        _ => Some(Value::Int(1)),
    }
}

/// Adds the values that a path requires.
fn grow(whole: &mut Value, steps: &[Value], what: &str) {
    let Some((step, rest)) = steps.split_first() else {
        if whole.is_null() {
            *whole = what.into();
        }
        return;
    };
    let inner = format!("{what}, {}", kiln_value::text::str(step));
    if let Value::Str(key) = step {
        if whole.as_map().is_none() {
            *whole = kiln_value::Map::new().into();
        }
        if let Some(map) = whole.as_map_mut() {
            grow(map.entry(key.clone()).or_default(), rest, &inner);
        }
        return;
    }
    // A computed step may refer to any of several items.
    let last = step.as_i64().and_then(|index| usize::try_from(index).ok()).unwrap_or(1).min(99);
    if whole.as_list().is_none() {
        *whole = Value::List(Vec::new());
    }
    let Value::List(items) = whole else { return };
    for index in items.len()..=last {
        items.push(format!("{what}, {index}").into());
    }
    if let Some(item) = items.get_mut(last).filter(|_| !rest.is_empty()) {
        grow(item, rest, &inner);
    }
}
