//! Differences between the stored properties of a resource and those of its object (`drift`, `converge`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use kiln_value::{Map, Value, text};

use crate::baseline::Baseline;
use crate::{Context, Driver, Failure, ResourceType, Unread};

/// Lists with more entries that have no equal entry at the same place count as different.
const MAX_UNORDERED: usize = 100;

/// What a service shows of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The result of [`crate::Driver::live`].
    pub live: Map,
    /// The result of [`crate::Driver::expected`].
    pub expected: Map,
    /// What the object showed when it had settled.
    pub baseline: Baseline,
}

impl Shown {
    /// Reads an object.
    ///
    /// # Errors
    /// Errors of the driver; a failure that is not found means that the object does not exist.
    pub async fn read(driver: &dyn Driver, cx: &Context<'_>) -> Result<Self, Failure> {
        let baseline = Baseline::of(&cx.facts.data);
        Ok(Self { live: driver.live(cx).await?, expected: driver.expected(cx).await?, baseline })
    }

    /// What an answer shows. The cloud of the context refuses requests.
    ///
    /// # Errors
    /// The type needs requests to read it.
    pub async fn in_answer(driver: &dyn Driver, cx: &Context<'_>, object: &Value) -> Result<Self, Failure> {
        let (live, expected) = (driver.live_in(cx, object).await?, driver.expected(cx).await?);
        Ok(Self { live, expected, baseline: Baseline::default() })
    }

    /// The properties whose value in the object is not the stored one, with their value in the object: those that can be
    /// updated in place.
    ///
    /// What the template does not say is not a difference, and an empty default, such as that of `device_id`, says
    /// nothing. The order of lists does not matter, because services return them in any order, and neither do additional
    /// keys of maps, which services add. Neither is what the object has shown since it settled ([`Baseline`]).
    pub fn drift(&self, resource_type: &ResourceType, stored: &Map) -> Map {
        self.differing(stored, |name| resource_type.can_update(name))
    }

    /// As [`Shown::drift`], but what the object has counts as done where it is what is wanted now, also for properties that only
    /// a replacement can change: the template has taken it over.
    pub fn drift_from(&self, wanted: &Map, resource_type: &ResourceType, stored: &Map) -> Map {
        let differing = self.whole_drift(stored).into_iter().filter_map(|(name, live)| match wanted.get(&name) {
            Some(wanted) if !wanted.is_null() && covers(wanted, &live) => Some((name, wanted.clone())),
            _ => resource_type.can_update(&name).then_some((name, live)),
        });
        differing.collect()
    }

    /// As [`Shown::drift`], also for the properties that only a replacement can change.
    pub fn whole_drift(&self, stored: &Map) -> Map {
        self.differing(stored, |_| true)
    }

    /// The properties that can have a baseline and whose value in the object is not the stored one, with that value.
    pub fn unlike(&self, stored: &Map) -> Map {
        self.differing(stored, |name| !self.expected.contains_key(name))
    }

    /// The properties that have shown another value than the stored one since the object settled with that.
    pub fn not_applied(&self, stored: &Map) -> Vec<String> {
        let settled = |(name, live): &(&String, &Value)| {
            let Some(applied) = stored.get(*name) else { return false };
            let shown = self.baseline.shown(name, applied);
            shown.is_some_and(|shown| covers(shown, live)) && !covers(applied, live)
        };
        self.live.iter().filter(settled).map(|(name, _)| name.clone()).collect()
    }

    /// The properties that are to be compared ([`said`]) and that cannot be read in the object.
    pub fn unread(&self, resource_type: &ResourceType, given: &Map, stored: &Map) -> Vec<String> {
        let said = said(resource_type, given, stored).into_iter();
        said.filter(|name| !self.live.contains_key(name)).collect()
    }

    fn differing(&self, stored: &Map, counts: impl Fn(&str) -> bool) -> Map {
        let differs = |name: &String, live: &Value| match (self.expected.get(name), stored.get(name)) {
            (Some(expected), _) => expected != live,
            (None, Some(stored)) => {
                let has_settled = |stored| self.baseline.shown(name, stored).is_some_and(|shown| covers(shown, live));
                !is_empty(stored) && !covers(stored, live) && !has_settled(stored)
            }
            (None, None) => false,
        };
        let differing = self.live.iter().filter(|(name, live)| counts(name) && differs(name, live));
        differing.map(|(name, live)| (name.clone(), live.clone())).collect()
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Whether a value of an object contains the stored value.
fn covers(stored: &Value, live: &Value) -> bool {
    match (stored, live) {
        (Value::Null, _) => true,
        (stored, Value::Null) => is_empty(stored),
        (Value::Map(stored), Value::Map(live)) => {
            stored.iter().all(|(key, value)| covers(value, live.get(key).unwrap_or(&Value::Null)))
        }
        (Value::List(stored), Value::List(live)) => stored.len() == live.len() && list_covers(stored, live),
        // Services return numbers as texts, and the reverse.
        (_, Value::Map(_) | Value::List(_)) | (Value::Map(_) | Value::List(_), _) => false,
        // A service returns a threshold of 50 as 50.0, which Rust writes as 50.
        (Value::Float(float), Value::Int(integer)) | (Value::Int(integer), Value::Float(float)) => {
            float.to_string() == integer.to_string()
        }
        (stored, live) => stored == live || is_same_text(&text::str(stored), &text::str(live)),
    }
}

/// Whether two texts are equal, or two notations of an address.
fn is_same_text(one: &str, other: &str) -> bool {
    let address = |text: &str| {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        Some((address.parse::<IpAddr>().ok()?, length.to_owned()))
    };
    let is_mac = |text: &str| text.len() == 17 && text.split(':').all(|byte| u8::from_str_radix(byte, 16).is_ok());
    one == other
        || (is_mac(one) && one.eq_ignore_ascii_case(other))
        || address(one).is_some_and(|one| address(other) == Some(one))
}

fn list_covers(stored: &[Value], live: &[Value]) -> bool {
    let is_scalar = |value: &Value| !matches!(value, Value::Map(_) | Value::List(_));
    if stored.iter().chain(live).all(is_scalar) {
        return count(stored) == count(live);
    }
    let (stored, mut live): (Vec<&Value>, Vec<&Value>) =
        stored.iter().zip(live).filter(|(stored, live)| !covers(stored, live)).unzip();
    stored.len() <= MAX_UNORDERED
        && stored.iter().all(|stored| match live.iter().position(|live| covers(stored, live)) {
            Some(at) => {
                live.swap_remove(at);
                true
            }
            None => false,
        })
}

fn count(values: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(text::str(value)).or_default() += 1;
    }
    counts
}

/// The properties that are to be compared: those that the template gives, and lists that can be updated, because others may
/// add to the rules of a security group; not those that say how Kiln acts. `given` as the template gives them, `stored` as they are
/// applied.
pub fn said(resource_type: &ResourceType, given: &Map, stored: &Map) -> Vec<String> {
    let is_of_kiln =
        |name: &str| resource_type.properties.get(name).is_some_and(|schema| schema.unread == Some(Unread::Kiln));
    let is_said = |name: &str, value: &Value| {
        !is_of_kiln(name)
            && (given.get(name).is_some_and(|given| !given.is_null())
                || matches!(value, Value::List(_)) && resource_type.can_update(name))
    };
    stored.iter().filter(|(name, value)| is_said(name, value)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn services_add_keys_and_reorder_lists() {
        let is_same = |stored: Value, live: Value| covers(&stored, &live);
        assert!(is_same(value!({"a": 1}), value!({"a": "1", "b": 2})));
        assert!(!is_same(value!({"a": 1}), value!({"a": 2})));
        assert!(is_same(50.into(), 50.0.into()) && is_same(50.0.into(), 50.into()) && !is_same(50.into(), 50.5.into()));
        assert!(is_same(value!(["x", "y"]), value!(["y", "x"])));
        assert!(!is_same(value!(["x", "x"]), value!(["x", "y"])));
        assert!(!is_same(value!(["x"]), value!(["x", "y"])));
        let pool = value!([{"start": "1", "end": "2"}, {"start": "5", "end": "6"}]);
        assert!(is_same(pool.clone(), value!([{"start": "5", "end": "6"}, {"end": "2", "start": "1"}])));
        assert!(!is_same(pool, value!([{"start": "5", "end": "6"}, {"start": "5", "end": "6"}])));
        assert!(is_same(value!([]), Value::Null) && !is_same(value!(["x"]), Value::Null));
        assert!(is_same(value!({"a": null}), value!({"a": 3})));
        let is_text = |one: &str, other: &str| is_same(one.into(), other.into());
        assert!(is_text("2001:DB8:0::/64", "2001:db8::/64") && is_text("FE80::1", "fe80::1"));
        assert!(!is_text("10.0.0.0/8", "10.0.0.0/16") && !is_text("10.0.0.0", "10.0.0.0/8") && !is_text("a", "A"));
        assert!(
            is_text("FA:16:3e:00:00:0A", "fa:16:3e:00:00:0a") && !is_text("FA:16:3E:00:00:0A", "fa:16:3e:00:00:0b")
        );
    }

    #[test]
    fn long_lists_of_maps_are_compared_in_linear_time() {
        let list = |from: i64| (from..from + 20_000).map(|n| value!({"n": n})).collect::<Vec<_>>();
        assert!(!list_covers(&list(0), &list(1)));
        assert!(list_covers(&list(0), &list(0)));
    }
}
