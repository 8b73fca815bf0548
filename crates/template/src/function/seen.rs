//! Sets of values with Python's equality.

use std::collections::HashSet;

use kiln_value::Value;

use super::fault;

/// A set of values. Long lists of scalars take linear time.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    scalars: HashSet<Scalar<'a>>,
    others: Vec<&'a Value>,
}

/// Equal values have equal scalars: `1`, `1.0` and `True` are the same.
#[derive(PartialEq, Eq, Hash)]
enum Scalar<'a> {
    Null,
    Int(i64),
    /// The bits of a float that is not an integer.
    Float(u64),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// `None` for big integers, lists and maps.
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(truth) => Some(Self::Int(i64::from(*truth))),
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Float(float) if float.fract() == 0.0 => fault::int(value).ok()?.as_i64().map(Self::Int),
            Value::Float(float) => Some(Self::Float(float.to_bits())),
            Value::Str(text) => Some(Self::Text(text)),
            Value::BigInt(_) | Value::List(_) | Value::Map(_) | Value::Unknown(_) => None,
        }
    }
}

impl<'a> Seen<'a> {
    /// Whether the set contains an equal value.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        match Scalar::of(value) {
            Some(scalar) => self.scalars.contains(&scalar),
            None => self.others.contains(&value),
        }
    }

    /// Adds a value; returns whether the set did not contain an equal one.
    pub(crate) fn insert(&mut self, value: &'a Value) -> bool {
        match Scalar::of(value) {
            Some(scalar) => self.scalars.insert(scalar),
            None if self.others.contains(&value) => false,
            None => {
                self.others.push(value);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn equality_is_that_of_python() {
        let big = kiln_value::number::parse_int("9223372036854775808").unwrap();
        let values = [value!(1), value!("1"), value!(0.5), value!([1]), big, value!(null)];
        let mut seen = Seen::default();
        assert!(values.iter().all(|value| seen.insert(value)));
        for again in [value!(1.0), value!(true), value!([1.0]), value!(9_223_372_036_854_775_808.0)] {
            assert!(seen.contains(&again), "{again:?}");
        }
        for other in [value!(0), value!("0.5"), value!([true, 1]), value!(1e300)] {
            assert!(!seen.contains(&other), "{other:?}");
        }
    }
}
