//! Regular expressions as values, with the search semantics of Python's `re`.

use std::ops::Range;

use kiln_value::Pattern;
use kiln_value::regex::{Groups, MOST_STEPS};

use crate::Error;
use crate::engine::Engine;

/// The number of search steps that count as one evaluation step.
pub(crate) const SEARCH_A_STEP: usize = 8;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Regex {
    source: String,
    flags: String,
    pattern: Pattern,
}

/// A match: the byte ranges of the whole match and of the groups.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub groups: Groups,
}

impl Match {
    pub(crate) fn whole(&self) -> Range<usize> {
        self.groups.first().cloned().flatten().unwrap_or_default()
    }

    /// The text of a group; `None` if it did not participate or does not exist.
    pub(crate) fn group<'t>(&self, text: &'t str, index: usize) -> Option<&'t str> {
        text.get(self.groups.get(index)?.clone()?)
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.flags == other.flags
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new("error", error.to_string())
}

impl Regex {
    /// Compiles a pattern with the flags `i`, `m` and `s`.
    pub(crate) fn new(source: &str, flags: &str) -> Result<Self, Error> {
        let pattern = if flags.is_empty() {
            Pattern::new(source)
        } else {
            // Report errors of the pattern itself.
            Pattern::new(source).and_then(|_| Pattern::new(&format!("(?{flags}){source}")))
        };
        Ok(Self { source: source.to_owned(), flags: flags.to_owned(), pattern: pattern.map_err(failed)? })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Python's representation: the source, truncated if it is long, and the flags.
    pub(crate) fn repr(&self) -> String {
        let source: String = kiln_value::text::quote(&self.source).chars().take(200).collect();
        let flags: Vec<_> = self.pattern.flags().map(|flag| format!("re.{flag}")).collect();
        let flags = flags.join("|");
        format!("re.compile({source}{}{flags})", if flags.is_empty() { "" } else { ", " })
    }

    /// The names of the groups by their numbers.
    pub(crate) fn names(&self) -> &[Option<String>] {
        self.pattern.names()
    }

    /// Whether the expression matches anywhere.
    pub(crate) fn is_found(&self, engine: &Engine, text: &str) -> Result<bool, Error> {
        Ok(self.find(engine, text, Walk::default())?.is_some())
    }

    /// The first match from a position.
    pub(crate) fn find(&self, engine: &Engine, text: &str, walk: Walk) -> Result<Option<Match>, Error> {
        let mut fuel = MOST_STEPS;
        let found = self.pattern.search(text, walk.from, walk.not_empty, &mut fuel).map_err(failed)?;
        engine.count((MOST_STEPS - fuel) / SEARCH_A_STEP)?;
        Ok(found.map(|groups| Match { groups }))
    }

    /// The next match of an iteration: not an empty match where the last one ended with an empty match.
    pub(crate) fn next(&self, engine: &Engine, text: &str, walk: &mut Walk) -> Result<Option<Match>, Error> {
        let found = self.find(engine, text, *walk)?;
        if let Some(found) = &found {
            let range = found.whole();
            *walk = Walk { from: range.end, not_empty: range.is_empty() };
        }
        Ok(found)
    }

    /// All matches, limited to a number if it is not 0.
    pub(crate) fn find_all(&self, engine: &Engine, text: &str, most: usize) -> Result<Vec<Match>, Error> {
        let mut walk = Walk::default();
        let mut found = Vec::new();
        while most == 0 || found.len() < most {
            let Some(next) = self.next(engine, text, &mut walk)? else { break };
            found.push(next);
        }
        Ok(found)
    }
}

/// The state of an iteration over all matches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    from: usize,
    not_empty: bool,
}

/// A part of a replacement.
#[derive(Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

/// A replacement: text with `\1`, `\g<1>`, `\g<name>` and escapes.
#[derive(Debug)]
pub(crate) struct Replacement(Vec<Piece>);

impl Replacement {
    /// Errors: class `error` for an unknown escape or group.
    pub(crate) fn new(template: &str, regex: &Regex) -> Result<Self, Error> {
        let names = regex.names();
        let group = |number: usize, at: usize| {
            if number < names.len() {
                Ok(Piece::Group(number))
            } else {
                Err(failed(format!("invalid group reference {number} at position {at}")))
            }
        };
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some(at) = rest.find('\\') {
            let (plain, escape) = rest.split_at(at);
            let at = template.chars().count() - escape.chars().count();
            pieces.push(Piece::Text(plain.to_owned()));
            let after = escape.get(1..).unwrap_or_default();
            let Some(kind) = after.chars().next() else {
                return Err(failed(format!("bad escape (end of pattern) at position {at}")));
            };
            rest = after.get(kind.len_utf8()..).unwrap_or_default();
            let simple = match kind {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                '\\' => '\\',
                'g' => {
                    let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
                    let Some((name, behind)) = name else { return Err(failed("missing <")) };
                    rest = behind;
                    let number =
                        name.parse().ok().or_else(|| names.iter().position(|known| known.as_deref() == Some(name)));
                    let Some(number) = number else {
                        let message = format!("unknown group name {}", kiln_value::text::quote(name));
                        return Err(Error::new("IndexError", message));
                    };
                    pieces.push(group(number, at + 3)?);
                    continue;
                }
                '0'..='9' => {
                    let octal = |len: usize| {
                        after.get(..len).filter(|digits| digits.bytes().all(|b| (b'0'..=b'7').contains(&b)))
                    };
                    let long = if kind == '0' { octal(3).or_else(|| octal(2)).or_else(|| octal(1)) } else { octal(3) };
                    if let Some(digits) = long {
                        let code = u32::from_str_radix(digits, 8).unwrap_or(0) & 0xff;
                        pieces.push(Piece::Text(char::from_u32(code).into_iter().collect()));
                        rest = after.get(digits.len()..).unwrap_or_default();
                    } else {
                        let len = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
                        let (digits, behind) = after.split_at(len);
                        pieces.push(group(digits.parse().unwrap_or(usize::MAX), at + 1)?);
                        rest = behind;
                    }
                    continue;
                }
                c if c.is_ascii_alphabetic() => return Err(failed(format!("bad escape \\{c} at position {at}"))),
                c => {
                    pieces.push(Piece::Text(format!("\\{c}")));
                    continue;
                }
            };
            pieces.push(Piece::Text(simple.to_string()));
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Writes the replacement for a match.
    pub(crate) fn expand(&self, text: &str, found: &Match, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => out.push_str(plain),
                Piece::Group(index) => out.push_str(found.group(text, *index).unwrap_or_default()),
            }
        }
    }
}

/// `re.escape`.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\x0b\x0c".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
