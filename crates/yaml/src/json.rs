//! A JSON parser like Python's `json.loads`: `NaN` and `Infinity` are numbers, integers are unlimited, the last of
//! equal keys is used, and errors have Python's messages.

use std::iter::Peekable;
use std::str::CharIndices;

use kiln_value::{Map, Position, Span, Spans, Value, number};
use thiserror::Error;

use crate::MAX_DEPTH;

/// An error in a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}: line {} column {} (char {offset})", position.line, position.column)]
pub struct JsonError {
    /// Python's message: `Expecting value`.
    pub problem: &'static str,
    /// The position.
    pub position: Position,
    /// Number of characters before the position.
    pub offset: usize,
}

/// Parses a JSON text.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    Ok(parse_with_spans(text)?.0)
}

/// Parses a JSON text and returns the positions of its parts.
pub fn parse_with_spans(text: &str) -> Result<(Value, Spans), JsonError> {
    let mut reader = Reader { text, chars: text.char_indices().peekable(), at: TextPosition::default(), depth: 0 };
    if text.starts_with('\u{feff}') {
        return Err(reader.error("Unexpected UTF-8 BOM (decode using utf-8-sig)"));
    }
    reader.skip_blanks();
    let read = reader.value()?;
    reader.skip_blanks();
    if reader.peek().is_some() { Err(reader.error("Extra data")) } else { Ok(read) }
}

/// A position in the text, counted from 0.
#[derive(Clone, Copy, Default)]
struct TextPosition {
    offset: usize,
    line: u32,
    column: u32,
}

impl TextPosition {
    fn position(self) -> Position {
        Position { line: self.line + 1, column: self.column + 1 }
    }

    fn error(self, problem: &'static str) -> JsonError {
        JsonError { problem, position: self.position(), offset: self.offset }
    }
}

struct Reader<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    at: TextPosition,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn next(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        self.at.offset += 1;
        if c == '\n' {
            self.at.line = self.at.line.saturating_add(1);
            self.at.column = 0;
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.next();
        }
        found
    }

    /// The remaining text.
    fn rest(&mut self) -> &'a str {
        let start = self.chars.peek().map_or(self.text.len(), |(i, _)| *i);
        self.text.get(start..).unwrap_or_default()
    }

    fn skip(&mut self, chars: usize) {
        for _ in 0..chars {
            self.next();
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(' ' | '\t' | '\n' | '\r') = self.peek() {
            self.next();
        }
    }

    fn error(&self, problem: &'static str) -> JsonError {
        self.at.error(problem)
    }

    fn value(&mut self) -> Result<(Value, Spans), JsonError> {
        let start = self.at;
        let (value, children) = match self.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::array)?,
            Some('"') => (Value::Str(self.string()?), Vec::new()),
            _ => (self.atom()?, Vec::new()),
        };
        let span = Span { start: start.position(), end: self.at.position() };
        Ok((value, Spans { key: None, value: span, children }))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, JsonError>) -> Result<T, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("Nested too deeply"));
        }
        self.depth += 1;
        self.next();
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn object(&mut self) -> Result<(Value, Vec<Spans>), JsonError> {
        let (mut map, mut children) = (Map::new(), Vec::new());
        self.skip_blanks();
        if self.eat('}') {
            return Ok((Value::Map(map), children));
        }
        loop {
            let start = self.at;
            if self.peek() != Some('"') {
                return Err(self.error("Expecting property name enclosed in double quotes"));
            }
            let key = self.string()?;
            let key_span = Span { start: start.position(), end: self.at.position() };
            self.skip_blanks();
            if !self.eat(':') {
                return Err(self.error("Expecting ':' delimiter"));
            }
            self.skip_blanks();
            let (value, mut spans) = self.value()?;
            spans.key = Some(key_span);
            // Of equal keys the first determines the order, as in Python.
            let (index, _) = map.insert_full(key, value);
            match children.get_mut(index) {
                Some(former) => *former = spans,
                None => children.push(spans),
            }
            self.skip_blanks();
            if self.eat('}') {
                return Ok((Value::Map(map), children));
            }
            if !self.eat(',') {
                return Err(self.error("Expecting ',' delimiter"));
            }
            self.skip_blanks();
        }
    }

    fn array(&mut self) -> Result<(Value, Vec<Spans>), JsonError> {
        let (mut items, mut children) = (Vec::new(), Vec::new());
        self.skip_blanks();
        if self.eat(']') {
            return Ok((Value::List(items), children));
        }
        loop {
            let (value, spans) = self.value()?;
            items.push(value);
            children.push(spans);
            self.skip_blanks();
            if self.eat(']') {
                return Ok((Value::List(items), children));
            }
            if !self.eat(',') {
                return Err(self.error("Expecting ',' delimiter"));
            }
            self.skip_blanks();
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.next();
        let mut out = String::new();
        loop {
            let here = self.at;
            match self.next() {
                None => return Err(start.error("Unterminated string starting at")),
                Some('"') => return Ok(out),
                Some('\\') => match self.next() {
                    None => return Err(start.error("Unterminated string starting at")),
                    Some(c @ ('"' | '\\' | '/')) => out.push(c),
                    Some('b') => out.push('\u{8}'),
                    Some('f') => out.push('\u{c}'),
                    Some('n') => out.push('\n'),
                    Some('r') => out.push('\r'),
                    Some('t') => out.push('\t'),
                    Some('u') => out.push(self.code_point()?),
                    Some(_) => return Err(here.error("Invalid \\escape: ")),
                },
                Some('\0'..='\x1f') => return Err(here.error("Invalid control character at")),
                Some(c) => out.push(c),
            }
        }
    }

    /// The character of `\uXXXX`, after the `u`; of a surrogate pair for characters beyond the first plane. A lone
    /// surrogate is refused, because strings cannot contain it.
    fn code_point(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let invalid = start.error("Invalid \\uXXXX escape");
        let first = self.four_digits().ok_or_else(|| invalid.clone())?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.skip(2);
            units.push(self.four_digits().ok_or_else(|| invalid.clone())?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err(invalid),
        }
    }

    fn four_digits(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.skip(4);
        u16::from_str_radix(digits, 16).ok()
    }

    fn atom(&mut self) -> Result<Value, JsonError> {
        let rest = self.rest();
        let words: [(&str, Value); 6] = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        if let Some((word, value)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            self.skip(word.len());
            return Ok(value);
        }
        let (len, is_float) = number_len(rest).ok_or_else(|| self.error("Expecting value"))?;
        let digits = rest.get(..len).unwrap_or_default();
        let number = if is_float { number::parse_float(digits).map(Value::Float) } else { number::parse_int(digits) };
        let number = number.ok_or_else(|| self.error("Exceeds the limit of digits for integer"))?;
        self.skip(len);
        Ok(number)
    }
}

/// The length of the number at the start of a text, and whether it is a float. Like Python, it takes the longest valid
/// prefix.
fn number_len(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = match bytes.get(sign)? {
        b'0' => 1,
        b'1'..=b'9' => digits(sign),
        _ => return None,
    };
    let mut len = sign + whole;
    let mut is_float = false;
    let fraction = digits(len + 1);
    if bytes.get(len) == Some(&b'.') && fraction > 0 {
        len += 1 + fraction;
        is_float = true;
    }
    if let Some(b'e' | b'E') = bytes.get(len) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
            is_float = true;
        }
    }
    Some((len, is_float))
}

#[cfg(test)]
mod tests {
    use kiln_value::{Path, text, value};

    use super::*;

    #[test]
    fn parses_as_python_does() {
        let read =
            parse(r#" {"a": [1, 1.0, 1e3, -0, 12345678901234567890], "b": "\u00e9\ud83d\ude00\n", "a2": null} "#)
                .unwrap();
        let shown = "{'a': [1, 1.0, 1000.0, 0, 12345678901234567890], 'b': 'é\u{1f600}\\n', 'a2': None}";
        assert_eq!(text::repr(&read), shown);
        assert_eq!(text::json(&parse("[NaN, -Infinity]").unwrap()), "[NaN, -Infinity]");
        assert_eq!(parse(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap(), value!({"a": 3, "b": 2}));
    }

    #[test]
    fn errors_have_pythons_messages() {
        for (text, message) in [
            ("", "Expecting value: line 1 column 1 (char 0)"),
            ("0x1f", "Extra data: line 1 column 2 (char 1)"),
            ("{bad", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
            ("[1\n 2]", "Expecting ',' delimiter: line 2 column 2 (char 4)"),
            ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
            ("\"a", "Unterminated string starting at: line 1 column 1 (char 0)"),
            ("-", "Expecting value: line 1 column 1 (char 0)"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
        assert!(parse(r#""\ud800""#).is_err());
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn every_part_has_a_position() {
        let (value, spans) = parse_with_spans("{\"a\": 1,\n \"b\": [true]}").unwrap();
        let at = |line, column| Position { line, column };
        let item = spans.find(&value, &Path::root().key("b").index(0));
        assert_eq!((item.value.start, item.value.end), (at(2, 8), at(2, 12)));
        assert_eq!(spans.find(&value, &Path::root().key("b")).key.map(|key| key.start), Some(at(2, 2)));
    }
}
