//! Where two values differ: the elements of lists and maps, found again by what names them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use kiln_value::{Map, Value, text};
use serde::{Deserialize, Serialize};

/// What names the elements of a list, the first that is different for each of them: an element is the same if all of these
/// fields that it has are the same.
const NAMES: [&[&str]; 15] = [
    &["id"],
    &["name"],
    &["key"],
    &["direction", "ethertype", "protocol", "port_range_min", "port_range_max"],
    &[
        "direction",
        "ethertype",
        "protocol",
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_group_id",
        "remote_mode",
    ],
    &["port", "network"],
    &["port", "network", "subnet", "fixed_ip"],
    &["subnet", "subnet_id"],
    &["ip_address", "mac_address"],
    &["destination"],
    &["start"],
    &["device_name"],
    &["boot_index"],
    &["protocol", "port"],
    &["address"],
];

/// A part of a property that differs. Without a value on one side, it is added or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// Its place in the property.
    pub at: Vec<Step>,
    /// The part before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Part>,
    /// The part after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Part>,
    /// Whether it is a list whose elements change their order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reordered: bool,
}

/// A part of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its place in this side: `rules[3].protocol`. Names and sources have such places too.
    pub place: String,
    /// Its value.
    pub value: Value,
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// The index of an element of a list without names; of a removed element its former index.
    Index(usize),
    /// A key of a map.
    Key(String),
    /// The fields that name an element of a list.
    Named(Map),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(key) => f.write_str(key),
            Self::Named(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{name}: {}", text::str(value)));
                write!(f, "[{}]", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A part of a side while sides are compared.
#[derive(Clone)]
struct At<'a> {
    place: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn key(&self, key: &str, value: &'a Value) -> Self {
        Self { place: format!("{}.{key}", self.place), value }
    }

    fn index(&self, index: usize, value: &'a Value) -> Self {
        Self { place: format!("{}[{index}]", self.place), value }
    }

    fn part(self) -> Part {
        Part { place: self.place, value: self.value.clone() }
    }
}

/// The differences of the two sides of a property, if both are lists or both are maps.
pub(crate) fn differences(property: &str, before: &Value, after: &Value) -> Vec<Element> {
    let mut found = Vec::new();
    if matches!((before, after), (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)))
        && !is_awaited(before)
        && !is_awaited(after)
    {
        let place = property.to_owned();
        let (before, after) = (At { place: place.clone(), value: before }, At { place, value: after });
        compare(&mut Vec::new(), before, after, &mut found);
    }
    found
}

/// Whether a value is one that is known only later.
fn is_awaited(value: &Value) -> bool {
    value.as_map().is_some_and(|map| map.len() == 1 && map.contains_key("known_after"))
}

fn compare(steps: &mut Vec<Step>, before: At<'_>, after: At<'_>, found: &mut Vec<Element>) {
    match (before.value, after.value) {
        (old, new) if old == new => {}
        (Value::Map(old), Value::Map(new)) if !is_awaited(before.value) && !is_awaited(after.value) => {
            // A null is no value.
            let given = |map: &'_ Map, key: &str| map.get(key).is_some_and(|value| !value.is_null());
            for (key, value) in old.iter().filter(|(_, value)| !value.is_null()) {
                let there = new.get(key).filter(|value| !value.is_null());
                both(
                    steps,
                    Step::Key(key.clone()),
                    Some(before.key(key, value)),
                    there.map(|there| after.key(key, there)),
                    found,
                );
            }
            for (key, value) in new.iter().filter(|(key, value)| !value.is_null() && !given(old, key)) {
                both(steps, Step::Key(key.clone()), None, Some(after.key(key, value)), found);
            }
        }
        (Value::List(old), Value::List(new)) => lists(steps, (&before, old), (&after, new), found),
        _ => found.push(Element {
            at: steps.clone(),
            before: Some(before.part()),
            after: Some(after.part()),
            reordered: false,
        }),
    }
}

/// A step further.
fn both(steps: &mut Vec<Step>, step: Step, before: Option<At<'_>>, after: Option<At<'_>>, found: &mut Vec<Element>) {
    steps.push(step);
    match (before, after) {
        (Some(before), Some(after)) => compare(steps, before, after, found),
        (before, after) => found.push(Element {
            at: steps.clone(),
            before: before.map(At::part),
            after: after.map(At::part),
            reordered: false,
        }),
    }
    steps.pop();
}

fn lists(
    steps: &mut Vec<Step>,
    (before, old): (&At<'_>, &[Value]),
    (after, new): (&At<'_>, &[Value]),
    found: &mut Vec<Element>,
) {
    let names = NAMES.into_iter().find(|fields| names_all(fields, old) && names_all(fields, new));
    let name = |item: &Value| match names {
        Some(fields) => text::json(&Value::Map(named(fields, item))),
        None => text::json(item),
    };
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, item) in new.iter().enumerate().rev() {
        places.entry(name(item)).or_default().push(index);
    }
    let mut partner: Vec<Option<usize>> = Vec::with_capacity(old.len());
    for item in old {
        partner.push(places.get_mut(&name(item)).and_then(Vec::pop));
    }
    let mut is_taken = vec![false; new.len()];
    partner.iter().flatten().for_each(|index| is_taken[*index] = true);
    let is_reordered = !partner.iter().flatten().is_sorted();
    // What stands in the place of another: without names, or if the name is known only later, it may be the same.
    for (index, partner) in partner.iter_mut().enumerate() {
        let Some(item) = new.get(index).filter(|_| partner.is_none() && !is_taken[index]) else { continue };
        if names.is_none_or(|fields| named(fields, item).values().any(is_awaited)) {
            *partner = Some(index);
            is_taken[index] = true;
        }
    }
    let step = |item: &Value, index| names.map_or(Step::Index(index), |fields| Step::Named(named(fields, item)));
    for (index, item) in old.iter().enumerate() {
        let there = partner[index].map(|place| after.index(place, &new[place]));
        both(steps, step(item, index), Some(before.index(index, item)), there, found);
    }
    for (index, item) in new.iter().enumerate().filter(|(index, _)| !is_taken[*index]) {
        both(steps, step(item, index), None, Some(after.index(index, item)), found);
    }
    if is_reordered {
        found.push(Element { at: steps.clone(), before: None, after: None, reordered: true });
    }
}

/// The fields of an element that name it.
fn named(fields: &[&str], item: &Value) -> Map {
    let field = |name: &&str| {
        let value = item.get(name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    };
    fields.iter().filter_map(field).collect()
}

/// Whether these fields name each of the elements.
fn names_all(fields: &[&str], items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    items.iter().all(|item| {
        let name = named(fields, item);
        !name.is_empty() && seen.insert(text::json(&Value::Map(name)))
    })
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    /// The differences in a line each.
    fn shown(before: &Value, after: &Value) -> Vec<String> {
        let line = |element: Element| {
            let at: Vec<String> = element.at.iter().map(Step::to_string).collect();
            let side = |part: Option<Part>| part.map_or(String::new(), |part| text::json(&part.value));
            let what = if element.reordered {
                "order".to_owned()
            } else {
                format!("{} → {}", side(element.before), side(element.after))
            };
            format!("{}: {what}", at.join("."))
        };
        differences("p", before, after).into_iter().map(line).collect()
    }

    fn rule(protocol: &str, port: i64, from: &str) -> Value {
        value!({"protocol": protocol, "port_range_min": port, "port_range_max": port, "remote_ip_prefix": from, "x": null})
    }

    #[test]
    fn an_element_is_found_again_by_what_names_it() {
        let before = value!([(rule("tcp", 22, "10.0.0.0/8")), (rule("tcp", 80, "0.0.0.0/0"))]);
        let after =
            value!([(rule("tcp", 443, "0.0.0.0/0")), (rule("tcp", 80, "0.0.0.0/0")), (rule("tcp", 22, "0.0.0.0/0"))]);
        let name = |port| format!("[protocol: tcp, port_range_min: {port}, port_range_max: {port}]");
        let added = text::json(&rule("tcp", 443, "0.0.0.0/0"));
        assert_eq!(
            shown(&before, &after),
            [
                format!("{}.remote_ip_prefix: \"10.0.0.0/8\" → \"0.0.0.0/0\"", name(22)),
                format!("{}:  → {added}", name(443)),
                ": order".to_owned(),
            ]
        );
        // The same port twice: the sender names the rule too.
        let two = value!([(rule("tcp", 22, "a")), (rule("tcp", 22, "b"))]);
        let one = value!([(rule("tcp", 22, "b"))]);
        assert_eq!(shown(&two, &one).len(), 1);
    }

    #[test]
    fn an_element_whose_name_is_known_later_may_be_the_one_in_its_place() {
        let before = value!([{"port": "id", "tag": "a"}]);
        let after = value!([{"port": {"known_after": "port"}, "tag": "a"}]);
        assert_eq!(shown(&before, &after), ["[port: id].port: \"id\" → {\"known_after\": \"port\"}"]);
    }

    #[test]
    fn elements_without_names_are_compared_as_a_whole() {
        assert_eq!(shown(&value!([1, 2, 3]), &value!([2, 3])), ["[0]: 1 → "]);
        assert_eq!(shown(&value!([1, 2, 2]), &value!([1, 2, 5])), ["[2]: 2 → 5"]);
        assert_eq!(shown(&value!([1, 2]), &value!([2, 1])), [": order"]);
        assert_eq!(shown(&value!([]), &value!([null])), ["[0]:  → null"]);
    }

    #[test]
    fn maps_differ_by_their_keys() {
        let before = value!({"a": 1, "b": {"c": [1]}, "gone": 2, "null": null});
        let after = value!({"a": 1, "b": {"c": [1, 2]}, "null": 3, "new": null});
        assert_eq!(shown(&before, &after), ["b.c.[1]:  → 2", "gone: 2 → ", "null:  → 3"]);
        let place = differences("p", &before, &after)[0].after.clone().unwrap().place;
        assert_eq!(place, "p.b.c[1]");
    }

    #[test]
    fn only_two_lists_or_two_maps_have_elements() {
        assert!(shown(&value!([1]), &value!({"a": 1})).is_empty());
        assert!(shown(&value!(1), &value!(2)).is_empty());
        assert!(shown(&value!({"a": 1}), &value!({"known_after": "x"})).is_empty());
    }
}
