//! Python's parsing, comparison and arithmetic of numbers and booleans.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use crate::{Class, Diagnostic, Value, text};

/// Python rejects longer integers, to prevent quadratic time.
const MAX_DIGITS: usize = 4300;

/// The zeros of Unicode's decimal digits (category Nd); each is followed by nine more digits.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
    0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0,
    0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
    0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// `str.strip()`: Python's white space also contains the four ASCII separators.
pub fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

/// The text without surrounding white space for `int` and `float`, which do not strip the ASCII separators.
fn strip_number(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

/// `int(text)`: surrounding white space, a sign, underscores between digits, digits of any script. `None` where Python
/// raises.
pub fn parse_int(text: &str) -> Option<Value> {
    let plain = plain_digits(strip_number(text))?;
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if unsigned.is_empty() || unsigned.len() > MAX_DIGITS || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match plain.parse::<i64>() {
        Ok(small) => Some(Value::Int(small)),
        Err(_) => plain.parse::<BigInt>().ok().map(Value::from),
    }
}

/// `float(text)`: like [`parse_int`] with a decimal point, an exponent, `inf` and `nan`. `None` where Python raises.
pub fn parse_float(text: &str) -> Option<f64> {
    plain_digits(strip_number(text))?.parse().ok()
}

/// Converts digits of any script to ASCII and removes underscores; `None` if an underscore is not between two digits.
fn plain_digits(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut behind_digit = false;
    while let Some(c) = chars.next() {
        if c == '_' {
            if !behind_digit || chars.peek().is_none_or(|next| decimal_digit(*next).is_none()) {
                return None;
            }
            continue;
        }
        let digit = decimal_digit(c);
        behind_digit = digit.is_some();
        plain.push(digit.unwrap_or(c));
    }
    Some(plain)
}

fn decimal_digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return c.is_ascii_digit().then_some(c);
    }
    let code = u32::from(c);
    let run = ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?;
    char::from_digit(code - ZEROS.get(run)?, 10)
}

/// Converts a string to an integer if possible, else to a float. Numbers and booleans are returned unchanged.
///
/// Errors: `ValueError` for other strings, `TypeError` for other types, with Python's messages.
pub fn str_to_num(value: &Value) -> Result<Value, Diagnostic> {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) => Ok(value.clone()),
        Value::Str(s) => parse_int(s).or_else(|| parse_float(s).map(Value::Float)).ok_or_else(|| {
            Diagnostic::new(Class::ValueError, format!("could not convert string to float: {}", text::quote(s)))
        }),
        other => {
            let kind = other.kind().python_name();
            let message =
                format!("int() argument must be a string, a bytes-like object or a real number, not '{kind}'");
            Err(Diagnostic::new(Class::TypeError, message))
        }
    }
}

/// Converts a string to a boolean: `1 t true on y yes` and `0 f false off n no` in any case, with surrounding white
/// space. Other values are converted to strings first.
///
/// Errors: `ValueError` with the accepted words.
pub fn bool_from_string(value: &Value) -> Result<bool, Diagnostic> {
    if let Value::Bool(b) = value {
        return Ok(*b);
    }
    let word = text::str(value);
    match strip(&word).to_lowercase().as_str() {
        "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
        _ => {
            let words = "'0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'";
            Err(Diagnostic::new(
                Class::ValueError,
                format!("Unrecognized value '{word}', acceptable values are: {words}"),
            ))
        }
    }
}

/// The order of two numbers (booleans count as 0 and 1), exact across types. `None` for NaN or other types.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Float(f), other) => compare_int_float(&integer(other)?, *f).map(Ordering::reverse),
        (other, Value::Float(f)) => compare_int_float(&integer(other)?, *f),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

fn compare_int_float(i: &BigInt, f: f64) -> Option<Ordering> {
    if f.is_nan() {
        return None;
    }
    match <BigInt as num_traits::FromPrimitive>::from_f64(f.floor()) {
        // The fraction matters only if the integer parts are equal.
        Some(floor) => Some(i.cmp(&floor).then(if f.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })),
        None => Some(if f > 0.0 { Ordering::Less } else { Ordering::Greater }),
    }
}

/// Python's `a % b`: the result has the sign of the divisor. `None` for a zero divisor and for non-numbers.
pub fn modulo(a: &Value, b: &Value) -> Option<Value> {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        if b.is_zero() {
            return None;
        }
        let rest: BigInt = &a % &b;
        let wrong_sign = !rest.is_zero() && (rest.sign() != b.sign());
        return Some(Value::from(if wrong_sign { rest + b } else { rest }));
    }
    let (a, b) = (to_f64(a)?, to_f64(b)?);
    if b == 0.0 {
        return None;
    }
    let rest = a % b;
    Some(Value::Float(if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }))
}

/// Python's `a + b` of numbers. `None` for non-numbers.
pub fn add(a: &Value, b: &Value) -> Option<Value> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(Value::from(a + b)),
        _ => Some(Value::Float(to_f64(a)? + to_f64(b)?)),
    }
}

/// The integer, with booleans as 0 and 1. `None` for floats and non-numbers.
pub fn integer(value: &Value) -> Option<BigInt> {
    match value {
        Value::Bool(b) => Some(BigInt::from(u8::from(*b))),
        Value::Int(i) => Some(BigInt::from(*i)),
        Value::BigInt(i) => Some((**i).clone()),
        _ => None,
    }
}

/// The number as a float, with booleans as 0 and 1. `None` for non-numbers.
pub fn to_f64(value: &Value) -> Option<f64> {
    match value {
        Value::Float(f) => Some(*f),
        other => integer(other)?.to_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_numbers_as_python_does() {
        for (text, number) in [(" 5 ", 5), ("+1", 1), ("-0", 0), ("1_000", 1000), ("٣", 3), ("007", 7)] {
            assert_eq!(parse_int(text), Some(Value::Int(number)), "{text}");
        }
        for text in ["", "_1", "1_", "1__0", "+_1", "0x1f", "1.0", "½", "+-1", "1 2"] {
            assert_eq!(parse_int(text), None, "{text}");
        }
        assert_eq!(parse_int("123456789012345678901").map(|v| text::str(&v)).as_deref(), Some("123456789012345678901"));
        assert_eq!(parse_int(&"9".repeat(4301)), None);
        for (text, number) in [("1e5", 1e5), (" .5\n", 0.5), ("1_0.5", 10.5), ("-Infinity", f64::NEG_INFINITY)] {
            assert_eq!(parse_float(text), Some(number), "{text}");
        }
        for text in ["", ".", "1e", "1_.5", "0x1p3", "infinit"] {
            assert_eq!(parse_float(text), None, "{text}");
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn orders_and_divides() {
        let int = |i: i64| Value::Int(i);
        assert_eq!(compare(&int(1), &Value::Float(1.5)), Some(Ordering::Less));
        assert_eq!(compare(&Value::Float(-1.5), &int(-1)), Some(Ordering::Less));
        assert_eq!(compare(&int(i64::MAX), &Value::Float(9_223_372_036_854_775_808.0)), Some(Ordering::Less));
        assert_eq!(compare(&int(1), &Value::Float(f64::NEG_INFINITY)), Some(Ordering::Greater));
        assert_eq!(compare(&int(1), &Value::Float(f64::NAN)), None);
        assert_eq!(modulo(&int(-3), &int(5)), Some(int(2)));
        assert_eq!(modulo(&int(3), &int(-5)), Some(int(-2)));
        assert_eq!(modulo(&Value::Float(-7.5), &int(5)), Some(Value::Float(2.5)));
        assert_eq!(modulo(&int(1), &int(0)), None);
    }
}
