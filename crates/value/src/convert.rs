//! Conversions from Rust types, and Python's equality.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::{Map, Value};

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

macro_rules! from_int {
    ($($t:ty),*) => {$(
        impl From<$t> for Value {
            fn from(i: $t) -> Self {
                Self::Int(i64::from(i))
            }
        }
    )*};
}
from_int!(i8, i16, i32, i64, u8, u16, u32);

impl From<BigInt> for Value {
    fn from(i: BigInt) -> Self {
        match i.to_i64() {
            Some(small) => Self::Int(small),
            None => Self::BigInt(Box::new(i)),
        }
    }
}

impl From<u64> for Value {
    fn from(i: u64) -> Self {
        BigInt::from(i).into()
    }
}

impl From<usize> for Value {
    fn from(i: usize) -> Self {
        BigInt::from(i).into()
    }
}

impl From<f64> for Value {
    fn from(f: f64) -> Self {
        Self::Float(f)
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Self::Str(s.to_owned())
    }
}

impl From<String> for Value {
    fn from(s: String) -> Self {
        Self::Str(s)
    }
}

impl From<&String> for Value {
    fn from(s: &String) -> Self {
        Self::Str(s.clone())
    }
}

impl From<Map> for Value {
    fn from(m: Map) -> Self {
        Self::Map(m)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(o: Option<T>) -> Self {
        o.map_or(Self::Null, Into::into)
    }
}

impl From<&Value> for Value {
    fn from(v: &Value) -> Self {
        v.clone()
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        Self::List(iter.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<String>, T: Into<Value>> FromIterator<(K, T)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(iter: I) -> Self {
        Self::Map(iter.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

/// Python's `==`: numbers are compared by value across types (`1 == 1.0 == True`), maps without order.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Unknown(a), Self::Unknown(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::BigInt(a), Self::BigInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::BigInt(i), Self::Float(f)) | (Self::Float(f), Self::BigInt(i)) => {
                f.is_finite() && f.fract() == 0.0 && num_traits::FromPrimitive::from_f64(*f) == Some((**i).clone())
            }
            (a, b) => match (small_number(a), small_number(b)) {
                (Some(Number::Int(a)), Some(Number::Int(b))) => a == b,
                (Some(Number::Int(i)), Some(Number::Float(f))) | (Some(Number::Float(f)), Some(Number::Int(i))) => {
                    int_eq_float(i, f)
                }
                _ => false,
            },
        }
    }
}

enum Number {
    Int(i64),
    Float(f64),
}

fn small_number(v: &Value) -> Option<Number> {
    match v {
        Value::Bool(b) => Some(Number::Int(i64::from(*b))),
        Value::Int(i) => Some(Number::Int(*i)),
        Value::Float(f) => Some(Number::Float(*f)),
        _ => None,
    }
}

/// Exact, without rounding the integer to a float.
#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked first")]
fn int_eq_float(i: i64, f: f64) -> bool {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    f.fract() == 0.0 && (-TWO_63..TWO_63).contains(&f) && f as i64 == i
}
