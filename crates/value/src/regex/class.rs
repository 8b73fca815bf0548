//! Character classes and the escapes that stand for characters.

use std::fmt::Write as _;

use super::PatternError;
use super::translate::{Cursor, error};

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    /// The inside of a class in the engine's syntax.
    Set(&'static str),
}

/// Rewrites a class, whose `[` has been read.
pub(super) fn translate(rest: &mut Cursor<'_>, out: &mut String, ascii: bool) -> Result<(), PatternError> {
    out.push_str(if rest.eat("^") { "[^" } else { "[" });
    let mut first = true;
    loop {
        let Some(c) = rest.next() else { return error("unterminated character set") };
        if c == ']' && !first {
            out.push(']');
            return Ok(());
        }
        first = false;
        let low = item(c, rest, ascii)?;
        let mut ahead = rest.clone();
        let is_range = ahead.eat("-") && ahead.peek().is_some_and(|c| c != ']');
        if !is_range {
            match low {
                Escape::Char(c) => push_char(out, c),
                Escape::Set(set) => _ = write!(out, "[{set}]"),
            }
            continue;
        }
        rest.next();
        let Some(c) = rest.next() else { return error("unterminated character set") };
        match (low, item(c, rest, ascii)?) {
            (Escape::Char(low), Escape::Char(high)) if low <= high => {
                push_char(out, low);
                out.push('-');
                push_char(out, high);
            }
            _ => return error("bad character range"),
        }
    }
}

fn item(c: char, rest: &mut Cursor<'_>, ascii: bool) -> Result<Escape, PatternError> {
    match c {
        '\\' if rest.eat("b") => Ok(Escape::Char('\x08')),
        '\\' => escape(rest, ascii),
        c => Ok(Escape::Char(c)),
    }
}

/// Reads an escape behind its backslash, as it is understood in and out of a class.
pub(super) fn escape(rest: &mut Cursor<'_>, ascii: bool) -> Result<Escape, PatternError> {
    let Some(c) = rest.next() else { return error("bad escape (end of pattern)") };
    let char = match c {
        'd' => return Ok(Escape::Set(if ascii { "0-9" } else { r"\d" })),
        'D' => return Ok(Escape::Set(if ascii { "^0-9" } else { r"\D" })),
        'w' => return Ok(Escape::Set(if ascii { "a-zA-Z0-9_" } else { r"\w" })),
        'W' => return Ok(Escape::Set(if ascii { "^a-zA-Z0-9_" } else { r"\W" })),
        's' => return Ok(Escape::Set(if ascii { r"\x09-\x0d\x20" } else { r"\s\x1c-\x1f" })),
        'S' => return Ok(Escape::Set(if ascii { r"^\x09-\x0d\x20" } else { r"^\s\x1c-\x1f" })),
        'a' => '\x07',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'x' => code_point(rest, c, 2)?,
        'u' => code_point(rest, c, 4)?,
        'U' => code_point(rest, c, 8)?,
        '0'..='7' => {
            let digits = rest.take_while(2, |c| c.is_digit(8));
            match u32::from_str_radix(&format!("{c}{digits}"), 8).ok().filter(|code| *code <= 0o377) {
                Some(code) => char::from_u32(code).unwrap_or_default(),
                None => return error("octal escape value outside of range 0-0o377"),
            }
        }
        c if c.is_ascii_alphanumeric() => return error(format!(r"bad escape \{c}")),
        c => c,
    };
    Ok(Escape::Char(char))
}

fn code_point(rest: &mut Cursor<'_>, kind: char, len: usize) -> Result<char, PatternError> {
    let digits = rest.take_while(len, |c| c.is_ascii_hexdigit());
    let char = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    char.filter(|_| digits.len() == len).ok_or_else(|| PatternError(format!(r"incomplete escape \{kind}{digits}")))
}

/// A character that stands for itself, in and out of a class.
pub(super) fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        _ = write!(out, r"\x{:02x}", u32::from(c));
    }
}
