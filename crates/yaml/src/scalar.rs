//! Types and values of plain scalars in YAML 1.1, as in PyYAML (`reference/yaml_json.json` lists its regular
//! expressions).

use kiln_value::{Value, number};
use num_bigint::BigInt;

use crate::node::Tag;

/// The type of a plain scalar.
pub(crate) fn tag(text: &str) -> Tag {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tag::Null,
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE" | "on"
        | "On" | "ON" | "off" | "Off" | "OFF" => Tag::Bool,
        "<<" => Tag::Merge,
        "=" => Tag::Value,
        "!" | "&" | "*" => Tag::Yaml,
        text if !text.starts_with(['+', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => Tag::Str,
        // In the order in which PyYAML tries them. The only other type is a bare date, which remains a string.
        text if is_float(text) => Tag::Float,
        text if is_int(text) => Tag::Int,
        _ => Tag::Str,
    }
}

fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    // A sign is not allowed before the point.
    if let Some(fraction) = text.strip_prefix('.') {
        let (fraction, has_exponent) = without_exponent(fraction);
        return has_exponent && fraction.starts_with(|c: char| c.is_ascii_digit()) && digits(fraction);
    }
    let Some((whole, fraction)) = unsigned.split_once('.') else { return false };
    if !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    if let Some((first, rest)) = whole.split_once(':') {
        return digits(first) && rest.split(':').all(is_sixtieth) && digits(fraction);
    }
    let (fraction, has_exponent) = without_exponent(fraction);
    has_exponent && digits(whole) && digits(fraction)
}

/// The text before an exponent, which must have a sign; the flag is false if the exponent is invalid.
fn without_exponent(text: &str) -> (&str, bool) {
    let Some((before, exponent)) = text.split_once(['e', 'E']) else { return (text, true) };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or_default();
    (before, !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn is_int(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let all = |text: &str, wanted: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|b| b == b'_' || wanted(&b));
    if let Some(digits) = unsigned.strip_prefix("0b") {
        return all(digits, |b| matches!(b, b'0' | b'1'));
    }
    if let Some(digits) = unsigned.strip_prefix("0x") {
        return all(digits, u8::is_ascii_hexdigit);
    }
    if let Some(digits) = unsigned.strip_prefix('0') {
        return digits.is_empty() || all(digits, |b| (b'0'..=b'7').contains(b));
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    match unsigned.split_once(':') {
        Some((first, rest)) => all(first, u8::is_ascii_digit) && rest.split(':').all(is_sixtieth),
        None => all(unsigned, u8::is_ascii_digit),
    }
}

/// `0` to `59`, with or without a leading zero.
fn is_sixtieth(text: &str) -> bool {
    match text.as_bytes() {
        [b] => b.is_ascii_digit(),
        [a, b] => (b'0'..=b'5').contains(a) && b.is_ascii_digit(),
        _ => false,
    }
}

/// The value of an `!!int`; `Err` contains Python's message.
pub(crate) fn int(text: &str) -> Result<Value, String> {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (plain.starts_with('-'), digits),
        None => (false, plain.as_str()),
    };
    let read = if digits == "0" {
        Some(BigInt::ZERO)
    } else if let Some(digits) = digits.strip_prefix("0b") {
        radix(digits, 2)
    } else if let Some(digits) = digits.strip_prefix("0x") {
        radix(digits, 16)
    } else if digits.starts_with('0') {
        radix(digits, 8)
    } else if digits.contains(':') {
        sixtieths(digits)
    } else {
        decimal(digits)
    };
    let read = read.ok_or_else(|| format!("invalid literal for int(): {}", kiln_value::text::quote(text)))?;
    Ok(Value::from(if negative { -read } else { read }))
}

/// The number of bits of the largest integers that Python still prints; larger ones would take quadratic time in every
/// conversion to a string.
const MAX_BITS: u64 = 14_281;

/// Python's `int(digits, radix)` for powers of two, within [`MAX_BITS`].
fn radix(digits: &str, radix: u32) -> Option<BigInt> {
    let digits = digits.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (negative, digits) = match digits.strip_prefix(['+', '-']) {
        Some(rest) => (digits.starts_with('-'), rest),
        None => (false, digits),
    };
    // The prefix may be there, or be repeated.
    let prefix = match radix {
        2 => ["0b", "0B"],
        8 => ["0o", "0O"],
        _ => ["0x", "0X"],
    };
    let digits = prefix.iter().find_map(|prefix| digits.strip_prefix(prefix)).unwrap_or(digits);
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let read = BigInt::parse_bytes(digits.as_bytes(), radix).filter(|read| read.bits() <= MAX_BITS)?;
    Some(if negative { -read } else { read })
}

fn decimal(digits: &str) -> Option<BigInt> {
    number::parse_int(digits).as_ref().and_then(number::integer)
}

fn sixtieths(digits: &str) -> Option<BigInt> {
    // Python's limit of digits: more would take quadratic time.
    if digits.len() > 4300 {
        return None;
    }
    digits.split(':').try_fold(BigInt::ZERO, |sum, part| Some(sum * 60 + decimal(part)?))
}

/// The value of a `!!float`; `Err` contains Python's message.
pub(crate) fn float(text: &str) -> Result<Value, String> {
    let plain = text.replace('_', "").to_lowercase();
    let (sign, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (if plain.starts_with('-') { -1.0 } else { 1.0 }, digits),
        None => (1.0, plain.as_str()),
    };
    let read = match digits {
        ".inf" => Some(f64::INFINITY),
        ".nan" => Some(f64::NAN),
        digits if digits.contains(':') => sixtieths_float(digits),
        digits => number::parse_float(digits),
    };
    let read = read.ok_or_else(|| format!("could not convert string to float: {}", kiln_value::text::quote(digits)))?;
    Ok(Value::Float(sign * read))
}

/// Summed from the last part, like PyYAML: the order determines the last bits.
fn sixtieths_float(digits: &str) -> Option<f64> {
    let mut base = 1.0;
    let mut sum = 0.0;
    for part in digits.rsplit(':') {
        sum += number::parse_float(part)? * base;
        base *= 60.0;
    }
    Some(sum)
}

/// The value of a `!!bool`; `None` for other texts.
pub(crate) fn bool(text: &str) -> Option<Value> {
    match text.to_lowercase().as_str() {
        "yes" | "true" | "on" => Some(Value::Bool(true)),
        "no" | "false" | "off" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// The bytes of a `!!binary`: base64, ignoring other characters. `None` if it is invalid.
pub(crate) fn binary(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    let mut count = 0_usize;
    for b in text.bytes() {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if count % 4 >= 2 => {
                count = 0;
                held = 0;
                continue;
            }
            _ if b.is_ascii() => continue,
            _ => return None,
        };
        count += 1;
        bits = (bits << 6 | u32::from(six)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap_or_default());
        }
    }
    count.is_multiple_of(4).then_some(bytes)
}
