//! What an object showed when it had settled after its properties were written.
//!
//! Services normalize, complete and round values, so an object may never show what was applied. Only those properties are
//! stored, each with the value that was applied: after another value is applied, the entry means nothing any more.

use std::collections::BTreeMap;

use kiln_value::{Map, Value, value};

/// The entry of a resource's data with its baseline.
pub const BASELINE: &str = "kiln_baseline";

/// The number of the format. An entry with another one is no baseline.
const FORMAT: i64 = 1;

/// The properties of an object that did not show what was applied to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline(BTreeMap<String, Settled>);

#[derive(Clone, Debug, PartialEq)]
struct Settled {
    applied: Value,
    shown: Value,
}

impl Baseline {
    /// The baseline in the data of a resource.
    pub fn of(data: &Map) -> Self {
        let stored = data.get(BASELINE).filter(|stored| stored.get("format") == Some(&value!(FORMAT)));
        let properties = stored.and_then(|stored| stored.get("properties")?.as_map()).into_iter().flatten();
        let settled = |value: &Value| {
            Some(Settled { applied: value.get("applied")?.clone(), shown: value.get("shown")?.clone() })
        };
        Self(properties.filter_map(|(name, value)| Some((name.clone(), settled(value)?))).collect())
    }

    /// What the object showed of a property when it had settled with this value; `None`: the value itself, or nobody looked.
    pub fn shown(&self, name: &str, applied: &Value) -> Option<&Value> {
        self.0.get(name).filter(|settled| settled.applied == *applied).map(|settled| &settled.shown)
    }

    /// The baseline after an operation that has written `written` (`None`: all properties) and ended with an object that
    /// shows `shown` instead of what was applied. What the object shows of other properties may be the work of others.
    #[must_use]
    pub fn after(self, written: Option<&Map>, shown: Map, applied: &Map) -> Self {
        let is_written = |name: &String| written.is_none_or(|written| written.contains_key(name));
        let new = shown.into_iter().filter(|(name, _)| is_written(name)).map(|(name, shown)| {
            let applied = applied.get(&name).cloned().unwrap_or_default();
            (name, Settled { applied, shown })
        });
        Self(self.0.into_iter().filter(|(name, _)| !is_written(name)).chain(new).collect())
    }

    /// The entry to store; null if the object shows everything as it was applied.
    pub fn to_entry(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let properties = self.0.iter().map(|(name, settled)| {
            let Settled { applied, shown } = settled.clone();
            (name.clone(), value!({"applied": applied, "shown": shown}))
        });
        let properties: Map = properties.collect();
        value!({"format": FORMAT, "properties": properties})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map {
        let Value::Map(map) = value else { panic!("{value:?}") };
        map
    }

    #[test]
    fn a_baseline_is_for_one_applied_value_and_survives_its_storage() {
        let applied = map(value!({"mtu": 0, "name": "A"}));
        let baseline = Baseline::default().after(None, map(value!({"mtu": 1450})), &applied);
        let stored = Map::from_iter([(BASELINE.to_owned(), baseline.to_entry())]);
        assert_eq!(Baseline::of(&stored), baseline);
        assert_eq!(baseline.shown("mtu", &value!(0)), Some(&value!(1450)));
        assert_eq!((baseline.shown("mtu", &value!(1)), baseline.shown("name", &value!("A"))), (None, None));
        assert_eq!((Baseline::default().to_entry(), Baseline::of(&Map::new())), (Value::Null, Baseline::default()));
    }

    #[test]
    fn an_update_moves_only_the_baseline_of_what_it_has_written() {
        let (first, second) = (map(value!({"a": 1, "b": 1, "c": 1})), map(value!({"a": 2, "b": 1, "c": 2})));
        let baseline = Baseline::default().after(None, map(value!({"a": 10, "c": 10})), &first);
        // Others have changed b.
        let shown = map(value!({"a": 20, "b": 99}));
        let baseline = baseline.after(Some(&map(value!({"a": 2, "c": 2}))), shown, &second);
        assert_eq!(baseline.shown("a", &value!(2)), Some(&value!(20)));
        assert_eq!((baseline.shown("b", &value!(1)), baseline.shown("c", &value!(2))), (None, None));
    }

    #[test]
    fn a_later_format_is_no_baseline() {
        let stored = value!({"format": 2, "properties": {"a": {"applied": 1, "shown": 2}}});
        assert_eq!(Baseline::of(&Map::from_iter([(BASELINE.to_owned(), stored)])), Baseline::default());
    }
}
