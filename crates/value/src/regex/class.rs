//! Character classes and escapes of characters.

use super::PatternError;
use super::reader::Reader;
use super::set::{Category, Fold, Kind, Set};

/// The meaning of an escape.
pub(super) enum Escape {
    Code(u32),
    Category(Category),
}

/// Parses a class after its `[`.
pub(super) fn class(reader: &mut Reader<'_>, ascii: bool, fold: Fold) -> Result<Set, PatternError> {
    let start = reader.position() - 1;
    let negated = reader.eat("^")?;
    let (mut codes, mut categories) = (Vec::new(), Vec::new());
    loop {
        let Some(token) = reader.next()? else { return Err(unterminated(reader, start)) };
        if token == "]" && !(codes.is_empty() && categories.is_empty()) {
            break;
        }
        let low = item(reader, token, ascii)?;
        if !reader.eat("-")? {
            match low {
                Escape::Code(code) => codes.push((code, code)),
                Escape::Category(category) => categories.push(category),
            }
            continue;
        }
        let Some(end) = reader.next()? else { return Err(unterminated(reader, start)) };
        if end == "]" {
            match low {
                Escape::Code(code) => codes.push((code, code)),
                Escape::Category(category) => categories.push(category),
            }
            codes.push((u32::from('-'), u32::from('-')));
            break;
        }
        match (low, item(reader, end, ascii)?) {
            (Escape::Code(low), Escape::Code(high)) if low <= high => codes.push((low, high)),
            _ => {
                let back = token.chars().count() + 1 + end.chars().count();
                return Err(reader.error(&format!("bad character range {token}-{end}"), back));
            }
        }
    }
    Ok(Set::new(&codes, categories, negated, fold))
}

fn unterminated(reader: &Reader<'_>, start: usize) -> PatternError {
    reader.error_at("unterminated character set", start)
}

fn item(reader: &mut Reader<'_>, token: &str, ascii: bool) -> Result<Escape, PatternError> {
    match token.strip_prefix('\\') {
        None => Ok(Escape::Code(token.chars().next().map_or(0, u32::from))),
        Some("b") => Ok(Escape::Code(8)),
        Some(kind) if kind.starts_with(|c: char| c.is_digit(8)) => {
            let more = reader.take(2, |c| c.is_digit(8))?;
            octal(reader, &format!("{kind}{more}")).map(Escape::Code)
        }
        Some(_) => escape(reader, token, ascii),
    }
}

/// The code of up to three octal digits.
pub(super) fn octal(reader: &Reader<'_>, digits: &str) -> Result<u32, PatternError> {
    let code = u32::from_str_radix(digits, 8).ok().filter(|code| *code <= 0o377);
    code.ok_or_else(|| {
        let message = format!(r"octal escape value \{digits} outside of range 0-0o377");
        reader.error(&message, digits.len() + 1)
    })
}

/// Parses an escape inside or outside of a class.
pub(super) fn escape(reader: &mut Reader<'_>, token: &str, ascii: bool) -> Result<Escape, PatternError> {
    let category = |kind, negated| Ok(Escape::Category(Category { kind, ascii, negated }));
    let kind = token.chars().nth(1).unwrap_or_default();
    let code = match kind {
        'd' | 'D' => return category(Kind::Digit, kind == 'D'),
        'w' | 'W' => return category(Kind::Word, kind == 'W'),
        's' | 'S' => return category(Kind::Space, kind == 'S'),
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => hexadecimal(reader, token, 2)?,
        'u' => hexadecimal(reader, token, 4)?,
        'U' => hexadecimal(reader, token, 8)?,
        'N' => return Err(name(reader)?),
        c if c.is_ascii_alphanumeric() => return Err(reader.error(&format!("bad escape {token}"), 2)),
        c => u32::from(c),
    };
    Ok(Escape::Code(code))
}

fn hexadecimal(reader: &mut Reader<'_>, token: &str, len: usize) -> Result<u32, PatternError> {
    let digits = reader.take(len, |c| c.is_ascii_hexdigit())?;
    let wrong = |what: &str| reader.error(&format!("{what} escape {token}{digits}"), digits.len() + 2);
    if digits.len() < len {
        return Err(wrong("incomplete"));
    }
    let code = u32::from_str_radix(digits, 16).ok().filter(|code| *code <= u32::from(char::MAX));
    code.ok_or_else(|| PatternError(wrong("bad").0))
}

/// `\N{…}`: character names are not supported.
fn name(reader: &mut Reader<'_>) -> Result<PatternError, PatternError> {
    if !reader.eat("{")? {
        return Ok(reader.error("missing {", 0));
    }
    let name = reader.until("}", "character name")?;
    let message = format!("undefined character name {}", crate::text::quote(name));
    Ok(reader.error(&message, name.chars().count() + 4))
}
