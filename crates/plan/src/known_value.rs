//! A planned value, as far as the plan knows it.

use std::collections::BTreeMap;

use kiln_template::parameter::HIDDEN;
use kiln_value::{Map, Value, text};
use uuid::Uuid;

/// A value with keyed digests in place of what it contains, so that a plan in memory contains no values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KnownValue {
    /// It is known later.
    Later,
    Scalar(Uuid),
    List(Vec<KnownValue>),
    /// By the digests of the keys.
    Map(BTreeMap<Uuid, KnownValue>),
}

impl KnownValue {
    /// A value of a plan: parts that are known later are `{"known_after": PLACE}`. A masked text says nothing.
    pub(crate) fn of(value: &Value, key: Uuid) -> Self {
        match value {
            Value::Map(map) if map.len() == 1 && map.contains_key("known_after") => Self::Later,
            Value::Map(map) => {
                Self::Map(entries(map).map(|(name, value)| (digest(name, key), Self::of(value, key))).collect())
            }
            Value::List(items) => Self::List(items.iter().map(|item| Self::of(item, key)).collect()),
            Value::Str(text) if text.contains(HIDDEN) => Self::Later,
            scalar => Self::Scalar(digest(&text::json(scalar), key)),
        }
    }

    /// Whether a value is the planned one, where that is known.
    pub(crate) fn is(&self, value: &Value, key: Uuid) -> bool {
        match (self, value) {
            (Self::Later, _) => true,
            (Self::Map(planned), Value::Map(map)) => {
                let is_planned = |(name, value): (&String, &Value)| {
                    planned.get(&digest(name, key)).is_some_and(|planned| planned.is(value, key))
                };
                entries(map).count() == planned.len() && entries(map).all(is_planned)
            }
            (Self::List(planned), Value::List(items)) => {
                items.len() == planned.len() && planned.iter().zip(items).all(|(planned, item)| planned.is(item, key))
            }
            (Self::Scalar(_), Value::Map(_) | Value::List(_)) => false,
            (Self::Scalar(planned), scalar) => *planned == digest(&text::json(scalar), key),
            _ => false,
        }
    }
}

/// The entries of a map. A null is no value.
fn entries(map: &Map) -> impl Iterator<Item = (&String, &Value)> {
    map.iter().filter(|(_, value)| !value.is_null())
}

fn digest(text: &str, key: Uuid) -> Uuid {
    Uuid::new_v5(&key, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn a_value_is_compared_where_it_is_known() {
        let key = Uuid::from_u128(7);
        let is = |planned: Value, value: Value| KnownValue::of(&planned, key).is(&value, key);
        let later = || value!({"known_after": "net"});
        assert!(is(value!("a"), value!("a")) && !is(value!("a"), value!("b")) && !is(value!("1"), value!(1)));
        assert!(is(later(), value!([1])) && is(value!(["a", (later())]), value!(["a", "b"])));
        assert!(!is(value!(["a", (later())]), value!(["c", "b"])) && !is(value!(["a"]), value!(["a", "b"])));
        assert!(is(value!({"a": 1, "b": (later())}), value!({"b": "x", "a": 1, "c": null})));
        assert!(!is(value!({"a": 1}), value!({"a": 2})) && !is(value!({"a": 1}), value!({"a": 1, "b": 2})));
        assert!(
            !is(value!({"a": 1}), value!({"b": 1})) && !is(value!({}), value!("a")) && !is(value!("a"), value!({}))
        );
        assert!(is(value!("pw=******"), value!("pw=geheim")), "it is masked");
        assert!(!format!("{:?}", KnownValue::of(&value!({"user": "geheim"}), key)).contains("geheim"));
    }
}
