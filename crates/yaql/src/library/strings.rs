//! Strings. Positions and lengths count characters.

use std::sync::Arc;

use num_traits::{Signed, ToPrimitive};

use crate::Error;
use crate::call::Call;
use crate::engine::Engine;
use crate::memory;
use crate::number;
use crate::object::Object;
use crate::parameter::Type::{Any, Bool, Dict, Int, Iterable, Number, Text};
use crate::parameter::{Default, Overload, Param, extension, function, method, p};
use crate::repr;

const STRING: Param = p("string", Text);
const CHARS: Param = p("chars", Text).nullable().or(Default::Null);
const TRIM: &[Param] = &[STRING, CHARS];
const SPLIT: &[Param] =
    &[STRING, p("separator", Text).nullable().or(Default::Null), p("maxSplits", Int).or(Default::Int(-1))];
const FIND: &[Param] = &[STRING, p("sub", Text), p("start", Int).or(Default::Int(0))];
const FIND_WITHIN: &[Param] = &[STRING, p("sub", Text), p("start", Int), p("length", Int)];
const COUNT: Param = p("count", Int).or(Default::Int(-1));
const OFF: Default = Default::Bool(false);

const fn flag(name: &'static str) -> Param {
    p(name, Bool).nullable().or(OFF)
}

pub(super) const FUNCTIONS: &[Overload] = &[
    extension("len", &[STRING], |call| Ok(Object::count(call.text(0)?.chars().count()))),
    method("toLower", &[STRING], |call| Ok(Object::text(call.text(0)?.to_lowercase()))),
    method("toUpper", &[STRING], |call| Ok(Object::text(call.text(0)?.to_uppercase()))),
    method("split", SPLIT, split),
    method("rightSplit", SPLIT, right_split),
    method("join", &[p("sequence", Iterable), p("separator", Text)], |call| join(call, 0, 1)),
    method("join", &[p("separator", Text), p("sequence", Iterable)], |call| join(call, 1, 0)),
    function("str", &[p("value", Any)], |call| text(&call.take(0)).map(Object::Str)),
    function("concat", &[], concat).rest(Text),
    function("#operator_+", &[], concat).rest(Text),
    method("trim", TRIM, |call| trim(call, true, true)),
    method("trimLeft", TRIM, |call| trim(call, true, false)),
    method("trimRight", TRIM, |call| trim(call, false, true)),
    extension("norm", &[STRING.nullable(), CHARS], norm),
    extension("isEmpty", &[STRING.nullable(), p("trim", Bool).or(Default::Bool(true)), CHARS], is_empty),
    method("replace", &[STRING, p("old", Text), p("new", Text), COUNT], replace),
    method("replace", &[STRING, p("replacements", Dict), COUNT], replace_many),
    function("#operator_*", &[p("left", Text), p("right", Int)], |call| times(call, 0, 1)),
    function("#operator_*", &[p("left", Int), p("right", Text)], |call| times(call, 1, 0)),
    function("#operator_in", &[p("left", Text), p("right", Text)], |call| {
        Ok(call.text(1)?.contains(&*call.text(0)?).into())
    }),
    method("substring", &[STRING, p("start", Int), p("length", Int).or(Default::Int(-1))], substring),
    method("indexOf", FIND, |call| find(call, false)),
    method("indexOf", FIND_WITHIN, |call| find_within(call, false)),
    method("lastIndexOf", FIND, |call| find(call, true)),
    method("lastIndexOf", FIND_WITHIN, |call| find_within(call, true)),
    method("toCharArray", &[STRING], |call| Object::tuple(call.text(0)?.chars().map(character).collect())),
    function(
        "characters",
        &[
            flag("digits"),
            flag("hexdigits"),
            flag("asciiLowercase"),
            flag("asciiUppercase"),
            flag("asciiLetters"),
            flag("letters"),
            flag("octdigits"),
            flag("punctuation"),
            flag("printable"),
            flag("lowercase"),
            flag("uppercase"),
            flag("whitespace"),
        ],
        characters,
    ),
    function("isString", &[p("arg", Any)], |call| Ok(matches!(call.take(0), Object::Str(_)).into())),
    method("startsWith", &[STRING], |call| {
        let text = call.text(0)?;
        affix(call, |affix| text.starts_with(affix))
    })
    .rest(Text),
    method("endsWith", &[STRING], |call| {
        let text = call.text(0)?;
        affix(call, |affix| text.ends_with(affix))
    })
    .rest(Text),
    function("hex", &[p("num", Number).nullable()], |call| number::hex(&call.take(0)).map(Object::text)),
];

fn character(c: char) -> Object {
    Object::text(&*c.encode_utf8(&mut [0; 4]))
}

/// The string of a value: null and booleans as in yaql, everything else as in Python.
///
/// Errors: an integer with more digits than Python supports.
pub(super) fn text(value: &Object) -> Result<Arc<str>, Error> {
    Ok(match value {
        Object::Null => "null".into(),
        Object::Bool(true) => "true".into(),
        Object::Bool(false) => "false".into(),
        Object::Str(text) => text.clone(),
        Object::BigInt(i) if i.bits() > 14_284 => {
            let message = "Exceeds the limit (4300 digits) for integer string conversion";
            return Err(Error::value(message));
        }
        other => repr::text(other).into(),
    })
}

fn concat(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut out = String::new();
    for index in 0..call.args.len() {
        out.push_str(&call.text(index)?);
    }
    Ok(Object::text(out))
}

fn join(call: &mut Call<'_>, sequence: usize, separator: usize) -> Result<Object, Error> {
    let (mut cursor, separator) = (call.cursor(sequence)?, call.text(separator)?);
    let mut out = String::new();
    let mut first = true;
    while let Some(item) = cursor.next(call.engine)? {
        if !std::mem::take(&mut first) {
            out.push_str(&separator);
        }
        out.push_str(&text(&item)?);
        call.engine.charge_bytes(out.len() / 4)?;
    }
    Ok(Object::text(out))
}

/// Python's white space.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn texts<'t>(parts: impl IntoIterator<Item = &'t str>) -> Result<Object, Error> {
    Object::list(parts.into_iter().map(Object::text).collect())
}

fn split(call: &mut Call<'_>) -> Result<Object, Error> {
    let (string, separator, most) = (call.text(0)?, call.optional_text(1)?, call.int(2)?);
    let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
    match separator.as_deref() {
        Some("") => Err(Error::value("empty separator")),
        Some(separator) => texts(string.splitn(most, separator)),
        None => {
            let mut parts = Vec::new();
            let mut rest = string.trim_start_matches(is_space);
            while !rest.is_empty() && parts.len() + 1 < most {
                let (part, behind) = rest.split_once(is_space).unwrap_or((rest, ""));
                parts.push(part);
                rest = behind.trim_start_matches(is_space);
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
            // Only the unsplit rest may end in white space.
            texts(parts)
        }
    }
}

fn right_split(call: &mut Call<'_>) -> Result<Object, Error> {
    let (string, separator, most) = (call.text(0)?, call.optional_text(1)?, call.int(2)?);
    let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
    let mut parts: Vec<&str> = match separator.as_deref() {
        Some("") => return Err(Error::value("empty separator")),
        Some(separator) => string.rsplitn(most, separator).collect(),
        None => {
            let mut parts = Vec::new();
            let mut rest = string.trim_end_matches(is_space);
            while !rest.is_empty() && parts.len() + 1 < most {
                let (before, part) = rest.rsplit_once(is_space).unwrap_or(("", rest));
                parts.push(part);
                rest = before.trim_end_matches(is_space);
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
            parts
        }
    };
    parts.reverse();
    texts(parts)
}

/// Strips characters of a set, or white space, from both ends.
fn stripped<'t>(string: &'t str, chars: Option<&str>, left: bool, right: bool) -> &'t str {
    let unwanted = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let string = if left { string.trim_start_matches(unwanted) } else { string };
    if right { string.trim_end_matches(unwanted) } else { string }
}

fn trim(call: &mut Call<'_>, left: bool, right: bool) -> Result<Object, Error> {
    let (string, chars) = (call.text(0)?, call.optional_text(1)?);
    Ok(Object::text(stripped(&string, chars.as_deref(), left, right)))
}

/// The trimmed string; null if it is empty.
fn norm(call: &mut Call<'_>) -> Result<Object, Error> {
    let Some(string) = call.optional_text(0)? else { return Ok(Object::Null) };
    let trimmed = stripped(&string, call.optional_text(1)?.as_deref(), true, true);
    Ok(if trimmed.is_empty() { Object::Null } else { Object::text(trimmed) })
}

fn is_empty(call: &mut Call<'_>) -> Result<Object, Error> {
    let Some(string) = call.optional_text(0)? else { return Ok(true.into()) };
    let chars = call.optional_text(2)?;
    let left = if call.truth(1) { stripped(&string, chars.as_deref(), true, true) } else { &string };
    Ok(left.is_empty().into())
}

/// Replaces a number of occurrences, all if the count is negative.
fn replaced(engine: &Engine, string: &str, old: &str, new: &str, count: i64) -> Result<String, Error> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let found = string.matches(old).take(most).count();
    engine.step(found)?;
    // A result that would be too large is not created.
    engine.charge_bytes(found.saturating_mul(new.len().saturating_sub(old.len())) / 4)?;
    Ok(string.replacen(old, new, most))
}

fn replace(call: &mut Call<'_>) -> Result<Object, Error> {
    let (string, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    replaced(call.engine, &string, &old, &new, call.int(3)?).map(Object::text)
}

fn replace_many(call: &mut Call<'_>) -> Result<Object, Error> {
    let (string, replacements, count) = (call.text(0)?, call.dict(1)?, call.int(2)?);
    let mut string = string.to_string();
    for (old, new) in replacements.iter() {
        string = replaced(call.engine, &string, &text(old)?, &text(new)?, count)?;
    }
    Ok(Object::text(string))
}

fn times(call: &mut Call<'_>, string: usize, count: usize) -> Result<Object, Error> {
    let (string, count) = (call.text(string)?, call.integer(count)?);
    if !count.is_positive() {
        return Ok(Object::text(""));
    }
    let count = count.to_usize().ok_or_else(Error::too_much_memory)?;
    // Estimated as in the reference.
    let estimate = count.saturating_mul(memory::text_size(&string)).saturating_sub((count - 1).saturating_mul(49));
    call.engine.charge_bytes(estimate)?;
    call.engine.step(count.saturating_mul(string.len()) / 32)?;
    Ok(Object::text(string.repeat(count)))
}

/// The byte index of a character; the end if there are fewer.
fn byte(string: &str, index: usize) -> usize {
    string.char_indices().nth(index).map_or(string.len(), |(at, _)| at)
}

/// A position in Python's slice notation: negative ones count from the end, and it is clamped.
fn bound(index: i64, len: usize) -> usize {
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    if index < 0 { len.saturating_sub(distance) } else { distance.min(len) }
}

fn length(string: &str) -> i64 {
    i64::try_from(string.chars().count()).unwrap_or(i64::MAX)
}

fn substring(call: &mut Call<'_>) -> Result<Object, Error> {
    let (string, mut start, mut count) = (call.text(0)?, call.position(1)?, call.position(2)?);
    let len = length(&string);
    if count < 0 {
        count = len;
    }
    if start < 0 {
        start = start.saturating_add(len);
    }
    let chars = usize::try_from(len).unwrap_or(0);
    let (start, end) = (bound(start, chars), bound(start.saturating_add(count), chars));
    let part = string.get(byte(&string, start)..byte(&string, end.max(start)));
    Ok(Object::text(part.unwrap_or_default()))
}

/// The position of a substring between two positions; -1 if it is missing.
fn position(string: &str, sub: &str, start: i64, end: i64, last: bool) -> Object {
    let len = length(string);
    let chars = usize::try_from(len).unwrap_or(0);
    let (first, end) = (bound(start, chars), bound(end, chars));
    if start > len || first > end {
        return Object::Int(-1);
    }
    let from = byte(string, first);
    let part = string.get(from..byte(string, end)).unwrap_or_default();
    let found = if last { part.rfind(sub) } else { part.find(sub) };
    match found.and_then(|at| string.get(..from + at)) {
        Some(before) => Object::Int(length(before)),
        None => Object::Int(-1),
    }
}

fn find(call: &mut Call<'_>, last: bool) -> Result<Object, Error> {
    let (string, sub) = (call.text(0)?, call.text(1)?);
    Ok(position(&string, &sub, call.position(2)?, i64::MAX, last))
}

fn find_within(call: &mut Call<'_>, last: bool) -> Result<Object, Error> {
    let (string, sub, mut start, mut count) = (call.text(0)?, call.text(1)?, call.position(2)?, call.position(3)?);
    let len = length(&string);
    if start < 0 {
        start = start.saturating_add(len);
    }
    if count < 0 {
        count = len.saturating_sub(start);
    }
    Ok(position(&string, &sub, start, start.saturating_add(count), last))
}

fn affix(call: &mut Call<'_>, holds: impl Fn(&str) -> bool) -> Result<Object, Error> {
    for index in 1..call.args.len() {
        if holds(&call.text(index)?) {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

/// The distinct characters of the selected classes.
fn characters(call: &mut Call<'_>) -> Result<Object, Error> {
    const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    const SPACE: &str = " \t\n\r\x0b\x0c";
    let classes: [Result<&[&str], &str>; 12] = [
        Ok(&["0123456789"]),
        Ok(&["0123456789abcdefABCDEF"]),
        Ok(&[LOWER]),
        Ok(&[UPPER]),
        Ok(&[LOWER, UPPER]),
        Err("letters"),
        Ok(&["01234567"]),
        Ok(&[PUNCTUATION]),
        Ok(&["0123456789", LOWER, UPPER, PUNCTUATION, SPACE]),
        Err("lowercase"),
        Err("uppercase"),
        Ok(&[SPACE]),
    ];
    let mut chosen = indexmap::IndexSet::new();
    for (index, class) in classes.into_iter().enumerate() {
        if !call.truth(index) {
            continue;
        }
        match class {
            Ok(parts) => chosen.extend(parts.iter().flat_map(|part| part.chars())),
            // Python 3 has no such class.
            Err(name) => {
                let message = format!("module 'string' has no attribute '{name}'");
                return Err(Error::new("AttributeError", message));
            }
        }
    }
    Object::tuple(chosen.into_iter().map(character).collect())
}
