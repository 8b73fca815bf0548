//! Splits a pattern into tokens: a character, or a backslash with the next character.

use std::fmt::Write as _;

use super::PatternError;

/// A position in a pattern. Cheap to clone, for backtracking.
#[derive(Clone)]
pub(super) struct Reader<'p> {
    source: &'p str,
    /// Byte index of the end of the next token.
    index: usize,
    /// Number of characters before the next token.
    position: usize,
    next: Option<&'p str>,
}

impl<'p> Reader<'p> {
    pub(super) fn new(source: &'p str) -> Result<Self, PatternError> {
        let mut reader = Self { source, index: 0, position: 0, next: None };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> Result<(), PatternError> {
        self.position += self.next.map_or(0, |token| token.chars().count());
        let rest = self.source.get(self.index..).unwrap_or_default();
        let mut chars = rest.chars();
        let first = chars.next();
        if first == Some('\\') && chars.next().is_none() {
            self.next = None;
            return Err(self.error("bad escape (end of pattern)", 0));
        }
        self.next = first.and_then(|_| rest.get(..rest.len() - chars.as_str().len()));
        self.index += self.next.map_or(0, str::len);
        Ok(())
    }

    pub(super) fn peek(&self) -> Option<&'p str> {
        self.next
    }

    pub(super) fn next(&mut self) -> Result<Option<&'p str>, PatternError> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    pub(super) fn eat(&mut self, token: &str) -> Result<bool, PatternError> {
        let found = self.next == Some(token);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Reads up to `most` characters that `wanted` accepts.
    pub(super) fn take(&mut self, most: usize, wanted: fn(char) -> bool) -> Result<&'p str, PatternError> {
        let start = self.start();
        let mut count = 0;
        while count < most && self.next.is_some_and(|token| token.chars().all(wanted)) {
            self.advance()?;
            count += 1;
        }
        Ok(self.since(start))
    }

    /// Reads up to and including `end`; `what` is the name of the text before it.
    pub(super) fn until(&mut self, end: &str, what: &str) -> Result<&'p str, PatternError> {
        let start = self.start();
        loop {
            let read = self.since(start);
            let token = self.next()?;
            let ended = token == Some(end);
            return match token {
                None if read.is_empty() => Err(self.error(&format!("missing {what}"), 0)),
                None => Err(self.error(&format!("missing {end}, unterminated name"), read.chars().count())),
                Some(_) if ended && read.is_empty() => Err(self.error(&format!("missing {what}"), 1)),
                Some(_) if ended => Ok(read),
                Some(_) => continue,
            };
        }
    }

    /// The byte index of the next token.
    fn start(&self) -> usize {
        self.index - self.next.map_or(0, str::len)
    }

    fn since(&self, start: usize) -> &'p str {
        self.source.get(start..self.start()).unwrap_or_default()
    }

    /// Number of characters before the next token.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// An error at a number of characters before the next token.
    pub(super) fn error(&self, message: &str, back: usize) -> PatternError {
        self.error_at(message, self.position.saturating_sub(back))
    }

    /// An error at a position, with Python's text.
    pub(super) fn error_at(&self, message: &str, position: usize) -> PatternError {
        let mut text = format!("{message} at position {position}");
        if self.source.contains('\n') {
            let before = self.source.chars().take(position);
            let (line, column) =
                before.fold((1, 1), |(line, column), c| if c == '\n' { (line + 1, 1) } else { (line, column + 1) });
            _ = write!(text, " (line {line}, column {column})");
        }
        PatternError(text)
    }
}
