//! Python's arithmetic: unlimited integers and floats.

use std::cmp::Ordering;
use std::sync::Arc;

use kiln_value::{Value, number as python};
use num_bigint::BigInt;
use num_traits::{Pow, Signed, ToPrimitive, Zero};

use crate::Error;
use crate::engine::Engine;
use crate::object::Object;

/// A number that is not a boolean.
enum Number {
    Int(BigInt),
    Float(f64),
}

/// Whether the object is an integer or float, but not a boolean.
pub(crate) fn is_number(object: &Object) -> bool {
    matches!(object, Object::Int(_) | Object::BigInt(_) | Object::Float(_))
}

fn number(object: &Object) -> Number {
    match object {
        Object::Float(f) => Number::Float(*f),
        other => Number::Int(other.as_int().unwrap_or_default()),
    }
}

fn value(object: &Object) -> Value {
    match object {
        Object::Bool(b) => Value::Bool(*b),
        Object::Int(i) => Value::Int(*i),
        Object::BigInt(i) => Value::BigInt(Box::new((**i).clone())),
        Object::Float(f) => Value::Float(*f),
        _ => Value::Null,
    }
}

/// The order of two numbers, exact across types; `None` for NaN.
pub(crate) fn compare(a: &Object, b: &Object) -> Option<Ordering> {
    match (a, b) {
        (Object::Int(a), Object::Int(b)) => Some(a.cmp(b)),
        (a, b) => python::compare(&value(a), &value(b)),
    }
}

/// The float as a 64-bit integer, if it is one.
#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked first")]
pub(crate) fn exact_i64(f: f64) -> Option<i64> {
    (f.fract() == 0.0 && f.abs() < 9e18).then_some(f as i64)
}

fn float(number: &Number) -> Result<f64, Error> {
    match number {
        Number::Float(f) => Ok(*f),
        Number::Int(i) => match i.to_f64() {
            Some(f) if f.is_finite() => Ok(f),
            _ => Err(Error::new("OverflowError", "int too large to convert to float")),
        },
    }
}

/// Applies an operation for integers or for floats.
fn apply(
    a: &Object,
    b: &Object,
    ints: impl FnOnce(BigInt, BigInt) -> BigInt,
    floats: impl FnOnce(f64, f64) -> f64,
) -> Result<Object, Error> {
    match (number(a), number(b)) {
        (Number::Int(a), Number::Int(b)) => Ok(ints(a, b).into()),
        (a, b) => Ok(Object::Float(floats(float(&a)?, float(&b)?))),
    }
}

pub(crate) fn add(a: &Object, b: &Object) -> Result<Object, Error> {
    if let (Object::Int(a), Object::Int(b)) = (a, b)
        && let Some(sum) = a.checked_add(*b)
    {
        return Ok(Object::Int(sum));
    }
    apply(a, b, |a, b| a + b, |a, b| a + b)
}

pub(crate) fn subtract(a: &Object, b: &Object) -> Result<Object, Error> {
    apply(a, b, |a, b| a - b, |a, b| a - b)
}

pub(crate) fn multiply(a: &Object, b: &Object) -> Result<Object, Error> {
    if let (Object::Int(a), Object::Int(b)) = (a, b)
        && let Some(product) = a.checked_mul(*b)
    {
        return Ok(Object::Int(product));
    }
    apply(a, b, |a, b| a * b, |a, b| a * b)
}

fn zero_division(message: &str) -> Error {
    Error::new("ZeroDivisionError", message)
}

/// Integers are divided with rounding down, everything else exactly.
pub(crate) fn divide(a: &Object, b: &Object) -> Result<Object, Error> {
    match (number(a), number(b)) {
        (Number::Int(_), Number::Int(b)) if b.is_zero() => Err(zero_division("integer division or modulo by zero")),
        (Number::Int(a), Number::Int(b)) => Ok(floor_division(&a, &b).0.into()),
        (a, b) => {
            let (a, b) = (float(&a)?, float(&b)?);
            if b == 0.0 { Err(zero_division("float division by zero")) } else { Ok(Object::Float(a / b)) }
        }
    }
}

/// Quotient and remainder, where the remainder has the sign of the non-zero divisor.
fn floor_division(a: &BigInt, b: &BigInt) -> (BigInt, BigInt) {
    let (quotient, remainder) = (a / b, a % b);
    if !remainder.is_zero() && remainder.is_negative() != b.is_negative() {
        (quotient - 1, remainder + b)
    } else {
        (quotient, remainder)
    }
}

pub(crate) fn modulo(a: &Object, b: &Object) -> Result<Object, Error> {
    match (number(a), number(b)) {
        (Number::Int(_), Number::Int(b)) if b.is_zero() => Err(zero_division("integer modulo by zero")),
        (Number::Int(a), Number::Int(b)) => Ok(floor_division(&a, &b).1.into()),
        (a, b) => {
            let (a, b) = (float(&a)?, float(&b)?);
            if b == 0.0 {
                return Err(zero_division("float modulo"));
            }
            let remainder = a % b;
            let wrapped = if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder };
            Ok(Object::Float(if wrapped == 0.0 { wrapped.abs().copysign(b) } else { wrapped }))
        }
    }
}

pub(crate) fn negate(a: &Object) -> Object {
    match number(a) {
        Number::Int(i) => (-i).into(),
        Number::Float(f) => Object::Float(-f),
    }
}

pub(crate) fn absolute(a: &Object) -> Object {
    match number(a) {
        Number::Int(i) => i.abs().into(),
        Number::Float(f) => Object::Float(f.abs()),
    }
}

/// -1, 0 or 1.
pub(crate) fn sign(a: &Object) -> Object {
    match compare(a, &Object::Int(0)) {
        Some(Ordering::Greater) => Object::Int(1),
        Some(Ordering::Less) => Object::Int(-1),
        _ => Object::Int(0),
    }
}

/// `pow(a, b, modulus)`.
pub(crate) fn power(engine: &Engine, a: &Object, b: &Object, modulus: &Object) -> Result<Object, Error> {
    match (number(a), number(b), modulus) {
        (Number::Int(a), Number::Int(b), Object::Null) if !b.is_negative() => {
            let bits = a.bits().saturating_mul(b.to_u64().unwrap_or(u64::MAX));
            // Powers of 0, 1 and -1 are small for every exponent.
            if a.magnitude() <= &num_bigint::BigUint::from(1u8) {
                let even = !b.bit(0);
                return Ok(if b.is_zero() || (a.is_negative() && even) { Object::Int(1) } else { a.into() });
            }
            check_bits(engine, bits)?;
            let exponent = b.to_u32().ok_or_else(Error::too_much_memory)?;
            Ok(Pow::pow(a, exponent).into())
        }
        (a, b, Object::Null) => {
            let (a, b) = (float(&a)?, float(&b)?);
            if a == 0.0 && b < 0.0 {
                return Err(zero_division("0.0 cannot be raised to a negative power"));
            }
            if a < 0.0 && b.is_finite() && b.fract() != 0.0 {
                return Err(Error::value("a negative number has no real power with a fraction"));
            }
            let power = a.powf(b);
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(Error::new("OverflowError", "(34, 'Numerical result out of range')"));
            }
            Ok(Object::Float(power))
        }
        (Number::Int(a), Number::Int(b), modulus) if !matches!(modulus, Object::Float(_)) => {
            let modulus = modulus.as_int().unwrap_or_default();
            if modulus.is_zero() {
                return Err(Error::value("pow() 3rd argument cannot be 0"));
            }
            let base = if b.is_negative() {
                let inverse = a.modinv(&modulus);
                inverse.ok_or_else(|| Error::value("base is not invertible for the given modulus"))?
            } else {
                a
            };
            Ok(base.modpow(&b.abs(), &modulus).into())
        }
        _ => Err(Error::type_error("pow() 3rd argument not allowed unless all arguments are integers")),
    }
}

/// Errors: an integer with this number of bits exceeds the memory limit.
fn check_bits(engine: &Engine, bits: u64) -> Result<(), Error> {
    let bytes = usize::try_from(bits / 8).map_err(|_| Error::too_much_memory())?;
    engine.charge_bytes(bytes)?;
    // Without a memory limit, a fixed limit bounds the time.
    if bytes > 1_000_000 { Err(Error::too_much_memory()) } else { Ok(()) }
}

/// `a << bits`, or to the right if `left` is false.
pub(crate) fn shift(engine: &Engine, a: &BigInt, bits: &BigInt, left: bool) -> Result<Object, Error> {
    if bits.is_negative() {
        return Err(Error::value("negative shift count"));
    }
    if left && !a.is_zero() {
        check_bits(engine, a.bits().saturating_add(bits.to_u64().unwrap_or(u64::MAX)))?;
    }
    match bits.to_u64() {
        _ if a.is_zero() => Ok(Object::Int(0)),
        Some(bits) if left => Ok((a << bits).into()),
        Some(bits) => Ok((a >> bits).into()),
        None => Ok(Object::Int(if a.is_negative() { -1 } else { 0 })),
    }
}

/// `round(number, digits)`: rounds half to even, exactly.
pub(crate) fn round(a: &Object, digits: i64) -> Result<Object, Error> {
    match number(a) {
        Number::Int(i) if digits >= 0 => Ok(i.into()),
        Number::Int(i) => {
            let Some(digits) = u32::try_from(digits.unsigned_abs()).ok().filter(|digits| *digits < 5000) else {
                return Ok(Object::Int(0));
            };
            let unit = Pow::pow(BigInt::from(10), digits);
            let (quotient, remainder) = floor_division(&i, &unit);
            let up = match (&remainder * 2u8).cmp(&unit) {
                Ordering::Greater => true,
                Ordering::Equal => quotient.bit(0),
                Ordering::Less => false,
            };
            Ok(((quotient + u8::from(up)) * unit).into())
        }
        Number::Float(f) if !f.is_finite() || digits > 323 => Ok(Object::Float(f)),
        Number::Float(f) if digits < -308 => Ok(Object::Float(0.0_f64.copysign(f))),
        Number::Float(f) if digits >= 0 => {
            let precision = usize::try_from(digits).unwrap_or(0);
            let rounded = format!("{f:.precision$}").parse();
            rounded.map(Object::Float).map_err(|_| Error::overflow())
        }
        Number::Float(f) => {
            let unit = 10f64.powi(i32::try_from(-digits).unwrap_or(0));
            Ok(Object::Float((f / unit).round_ties_even() * unit))
        }
    }
}

/// `int(value)` for non-null values.
pub(crate) fn to_int(object: &Object) -> Result<Object, Error> {
    match object {
        Object::Bool(b) => Ok(Object::Int(i64::from(*b))),
        Object::Int(_) | Object::BigInt(_) => Ok(object.clone()),
        Object::Float(f) if f.is_nan() => Err(Error::value("cannot convert float NaN to integer")),
        Object::Float(f) if f.is_infinite() => {
            Err(Error::new("OverflowError", "cannot convert float infinity to integer"))
        }
        Object::Float(f) => {
            let whole: Option<BigInt> = num_traits::FromPrimitive::from_f64(f.trunc());
            Ok(whole.unwrap_or_default().into())
        }
        Object::Str(text) => match python::parse_int(text) {
            Some(Value::Int(i)) => Ok(Object::Int(i)),
            Some(Value::BigInt(i)) => Ok(Object::BigInt(Arc::new(*i))),
            _ => {
                let message = format!("invalid literal for int() with base 10: {}", kiln_value::text::quote(text));
                Err(Error::value(message))
            }
        },
        other => Err(Error::type_error(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            other.type_name()
        ))),
    }
}

/// `float(value)` for non-null values.
pub(crate) fn to_float(object: &Object) -> Result<Object, Error> {
    match object {
        Object::Str(text) => python::parse_float(text).map(Object::Float).ok_or_else(|| {
            Error::value(format!("could not convert string to float: {}", kiln_value::text::quote(text)))
        }),
        Object::Bool(_) | Object::Int(_) | Object::BigInt(_) | Object::Float(_) => {
            float(&number(object)).map(Object::Float)
        }
        _ => Err(Error::type_error(format!(
            "float() argument must be a string or a real number, not '{}'",
            object.type_name()
        ))),
    }
}

/// `hex(number)`.
pub(crate) fn hex(object: &Object) -> Result<String, Error> {
    let i = object.as_int().ok_or_else(|| {
        Error::type_error(format!("'{}' object cannot be interpreted as an integer", object.type_name()))
    })?;
    let sign = if i.is_negative() { "-" } else { "" };
    Ok(format!("{sign}0x{}", i.magnitude().to_str_radix(16)))
}
