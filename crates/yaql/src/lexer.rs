//! The lexer. Tokens are read on demand, so that a grammar error is reported before a later lexical error.

use kiln_value::{Value, number, text};

use crate::Error;
use crate::operator::{self, Operator};

/// A token.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    Text(String),
    Number(Value),
    True,
    False,
    Null,
    Keyword(String),
    /// `$name`, without the `$`.
    Dollar(String),
    /// `name(`, without the parenthesis.
    Function(String),
    Operator(&'static Operator),
    /// `=>`.
    Arrow,
    /// One of `( ) [ ] { } ,`.
    Sign(char),
}

/// A token and the number of characters before it.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub token: Token,
    pub position: usize,
}

impl Token {
    /// The token in error messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(s) | Self::Keyword(s) | Self::Function(s) => s.clone(),
            Self::Number(n) => text::str(n),
            Self::True => "True".to_owned(),
            Self::False => "False".to_owned(),
            Self::Null => "None".to_owned(),
            Self::Dollar(name) => format!("${name}"),
            Self::Operator(op) => op.symbol.to_owned(),
            Self::Arrow => "=>".to_owned(),
            Self::Sign(c) => c.to_string(),
        }
    }
}

/// Reads tokens of an expression.
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(expression: &'a str) -> Self {
        Self { rest: expression, position: 0 }
    }

    /// The next token; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Located>, Error> {
        let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.take(blank);
        let position = self.position;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        match self.read(first)? {
            Some(token) => Ok(Some(Located { token, position })),
            None => Err(Error::lexical(first, position)),
        }
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.position += taken.chars().count();
        taken
    }

    fn read(&mut self, first: char) -> Result<Option<Token>, Error> {
        if first == '$' {
            let len = 1 + word_len(self.rest.get(1..).unwrap_or_default());
            return Ok(Some(Token::Dollar(self.take(len).trim_start_matches('$').to_owned())));
        }
        if is_digit(first) {
            return self.number();
        }
        if is_word(first) {
            return Ok(self.word());
        }
        if matches!(first, '\'' | '"' | '`') {
            return self.quoted(first);
        }
        if self.rest.starts_with("=>") {
            self.take(2);
            return Ok(Some(Token::Arrow));
        }
        if let Some(op) = operator::symbol(self.rest) {
            self.take(op.symbol.len());
            return Ok(Some(Token::Operator(op)));
        }
        if "()[]{},".contains(first) {
            self.take(1);
            return Ok(Some(Token::Sign(first)));
        }
        Ok(None)
    }

    /// Digits with an optional fraction; a word character must not follow.
    fn number(&mut self) -> Result<Option<Token>, Error> {
        let ends = |text: &str| !text.starts_with(is_word);
        let digits = |text: &str| text.len() - text.trim_start_matches(is_digit).len();
        let whole = digits(self.rest);
        let behind = self.rest.get(whole..).unwrap_or_default();
        let fraction = behind.strip_prefix('.').map_or(0, digits);
        let len = if fraction > 0 && ends(behind.get(1 + fraction..).unwrap_or_default()) {
            whole + 1 + fraction
        } else if ends(behind) {
            whole
        } else {
            return Ok(None);
        };
        let text = self.take(len);
        let number =
            if text.contains('.') { number::parse_float(text).map(Value::Float) } else { number::parse_int(text) };
        let number = number.ok_or_else(|| Error::value(format!("invalid number of {} digits", text.len())))?;
        Ok(Some(Token::Number(number)))
    }

    fn word(&mut self) -> Option<Token> {
        let len = word_len(self.rest);
        if self.rest.get(len..).is_some_and(|rest| rest.starts_with('(')) {
            return Some(Token::Function(self.take(len + 1).trim_end_matches('(').to_owned()));
        }
        if self.rest.starts_with("__") {
            return None;
        }
        let word = self.take(len);
        Some(match word {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            word => match operator::word(word) {
                Some(op) => Token::Operator(op),
                None => Token::Keyword(word.to_owned()),
            },
        })
    }

    fn quoted(&mut self, quote: char) -> Result<Option<Token>, Error> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find_map(|(at, c)| {
            if escaped {
                escaped = false;
                // A line break cannot be escaped, so the string is not terminated.
                return (c == '\n').then_some(None);
            }
            escaped = c == '\\';
            (c == quote).then_some(Some(at))
        });
        let Some(Some(end)) = end else { return Ok(None) };
        let body = self.rest.get(1..end).unwrap_or_default();
        let text = if quote == '`' { body.replace("\\`", "`") } else { unescape(body)? };
        self.take(end + 1);
        Ok(Some(Token::Text(text)))
    }
}

/// Python's `\w`.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Python's `\d`.
fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric() && number::parse_int(c.encode_utf8(&mut [0; 4])).is_some())
}

fn word_len(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_word).len()
}

/// Replaces `\n`, `\x41`, `\u0041`, `\U00000041`, `\101` and the like; unknown escapes are kept.
fn unescape(body: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let after = escape.get(1..).unwrap_or_default();
        let Some(kind) = after.chars().next() else {
            out.push('\\');
            return Ok(out);
        };
        let simple = match kind {
            '\\' | '\'' | '"' => Some(kind),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            _ => None,
        };
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if let Some(c) = simple {
            out.push(c);
            rest = after.get(1..).unwrap_or_default();
        } else if digits > 0 && after.chars().skip(1).take_while(|c| *c != '\n').take(digits).count() == digits {
            let hex = after.get(1..=digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
            let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
            let Some(c) = code else {
                let message = format!("'unicodeescape' codec can't decode bytes: truncated or illegal \\{kind} escape");
                return Err(Error::new("UnicodeDecodeError", message));
            };
            out.push(c);
            rest = after.get(1 + digits..).unwrap_or_default();
        } else if kind.is_digit(8) {
            let len = after.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
            let (octal, behind) = after.split_at(len);
            out.extend(u32::from_str_radix(octal, 8).ok().and_then(char::from_u32));
            rest = behind;
        } else {
            out.push('\\');
            rest = after;
            if let Some(c) = rest.chars().next() {
                out.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}
