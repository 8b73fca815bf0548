//! Converts characters to tokens, on demand.

mod scalar;
mod tag;

use std::collections::{BTreeMap, VecDeque};

use super::token::{Kind, Token};
use super::{Outcome, Stop, quote, refuse, refuse_in};
use crate::mark::Mark;

/// Represents the end of the text. It is not printable, so no text contains it.
const END: char = '\0';

/// A key on one line is recognized by the colon after it, within this number of characters.
const LONGEST_KEY: usize = 1024;

/// A possible key, if a colon follows.
#[derive(Clone, Copy, Debug)]
struct MaybeKey {
    /// The number of its token, counted from the start of the text.
    token: usize,
    /// Whether only a key is allowed here.
    is_required: bool,
    position: usize,
    mark: Mark,
}

/// The scanner.
pub(super) struct Scanner {
    chars: Vec<char>,
    position: usize,
    mark: Mark,
    tokens: VecDeque<Token>,
    taken: usize,
    is_done: bool,
    /// The number of open flow collections; negative after a superfluous end.
    flow_level: i64,
    indent: i64,
    indents: Vec<i64>,
    may_begin_key: bool,
    /// The possible keys by level of flow collections.
    keys: BTreeMap<i64, MaybeKey>,
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The end, a blank or a line break.
fn is_blank(c: char) -> bool {
    matches!(c, END | ' ' | '\t') || is_break(c)
}

/// A character that is allowed in names.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

impl Scanner {
    pub(super) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            position: 0,
            mark: Mark { line: 0, column: 0 },
            tokens: VecDeque::new(),
            taken: 0,
            is_done: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            may_begin_key: true,
            keys: BTreeMap::new(),
        }
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&mut self) -> Outcome<Token> {
        while self.needs_more()? {
            self.fetch()?;
        }
        self.tokens.front().cloned().ok_or(Stop::GivenUp)
    }

    /// The next token.
    pub(super) fn take(&mut self) -> Outcome<Token> {
        let token = self.peek()?;
        // The end of the stream is never consumed.
        if token.kind != Kind::StreamEnd {
            self.tokens.pop_front();
            self.taken += 1;
        }
        Ok(token)
    }

    /// Whether more must be scanned to determine the next token: a key is recognized by what follows it.
    fn needs_more(&mut self) -> Outcome<bool> {
        if self.is_done {
            return Ok(false);
        }
        if self.tokens.is_empty() {
            return Ok(true);
        }
        self.forget_old_keys()?;
        Ok(self.keys.values().any(|key| key.token == self.taken))
    }

    fn at(&self, ahead: usize) -> char {
        self.chars.get(self.position + ahead).copied().unwrap_or(END)
    }

    fn now(&self) -> char {
        self.at(0)
    }

    fn forward(&mut self, count: usize) {
        for _ in 0..count {
            let c = self.now();
            self.position += 1;
            if is_break(c) && !(c == '\r' && self.now() == '\n') {
                self.mark = Mark { line: self.mark.line + 1, column: 0 };
            } else if c != '\u{feff}' {
                self.mark.column += 1;
            }
        }
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.position < self.chars.len() && wanted(self.now()) {
            self.forward(1);
        }
    }

    fn skip_break(&mut self) -> bool {
        match self.now() {
            '\r' if self.at(1) == '\n' => self.forward(2),
            c if is_break(c) => self.forward(1),
            _ => return false,
        }
        true
    }

    fn column(&self) -> i64 {
        i64::from(self.mark.column)
    }

    fn in_flow(&self) -> bool {
        self.flow_level != 0
    }

    /// Whether `---` or `...` is here, as a separate word.
    fn is_document_mark(&self, mark: char) -> bool {
        (0..3).all(|ahead| self.at(ahead) == mark) && is_blank(self.at(3))
    }

    fn push(&mut self, kind: Kind, start: Mark) {
        self.tokens.push_back(Token { kind, start, text: String::new() });
    }

    /// A token of this number of characters.
    fn indicator(&mut self, kind: Kind, length: usize) {
        let start = self.mark;
        self.forward(length);
        self.push(kind, start);
    }

    fn found(&self) -> String {
        quote(&self.now().to_string())
    }

    fn fetch(&mut self) -> Outcome {
        self.skip_to_token();
        self.forget_old_keys()?;
        self.unwind(self.column());
        let (c, next) = (self.now(), self.at(1));
        let is_first = self.mark.column == 0;
        match c {
            END => self.stream_end(),
            '%' if is_first => self.directive(),
            '-' if is_first && self.is_document_mark('-') => self.document_mark(Kind::DocumentStart),
            '.' if is_first && self.is_document_mark('.') => self.document_mark(Kind::DocumentEnd),
            '[' => self.flow_start(Kind::FlowSequenceStart),
            '{' => self.flow_start(Kind::FlowMappingStart),
            ']' => self.flow_end(Kind::FlowSequenceEnd),
            '}' => self.flow_end(Kind::FlowMappingEnd),
            ',' => self.flow_entry(),
            '-' if is_blank(next) => self.block_entry(),
            '?' if self.in_flow() || is_blank(next) => self.key(),
            ':' if self.in_flow() || is_blank(next) => self.value(),
            '*' => self.anchor(Kind::Alias),
            '&' => self.anchor(Kind::Anchor),
            '!' => self.tag(),
            '|' | '>' if !self.in_flow() => self.block_scalar(),
            '\'' | '"' => self.quoted_scalar(),
            _ if self.begins_plain(c, next) => self.plain_scalar(),
            _ => {
                let problem = format!("found character {} that cannot start any token", self.found());
                refuse_in("while scanning for the next token", self.mark, problem, self.mark)
            }
        }
    }

    fn begins_plain(&self, c: char, next: char) -> bool {
        let is_indicator = is_blank(c) || "-?:,[]{}#&*!|>'\"%@`".contains(c);
        !is_indicator || (!is_blank(next) && (c == '-' || (!self.in_flow() && matches!(c, '?' | ':'))))
    }

    /// Blanks (no tabs), comments and line breaks.
    fn skip_to_token(&mut self) {
        if self.position == 0 && self.now() == '\u{feff}' {
            self.forward(1);
        }
        loop {
            self.skip(|c| c == ' ');
            if self.now() == '#' {
                self.skip(|c| !is_break(c));
            }
            if !self.skip_break() {
                return;
            }
            if !self.in_flow() {
                self.may_begin_key = true;
            }
        }
    }

    /// A key must be on one line.
    fn forget_old_keys(&mut self) -> Outcome {
        let (line, position) = (self.mark.line, self.position);
        let is_old = |key: &MaybeKey| key.mark.line != line || position - key.position > LONGEST_KEY;
        if let Some(key) = self.keys.values().find(|key| key.is_required && is_old(key)) {
            return self.no_colon(*key);
        }
        self.keys.retain(|_, key| !is_old(key));
        Ok(())
    }

    fn no_colon(&self, key: MaybeKey) -> Outcome {
        refuse_in("while scanning a simple key", key.mark, "could not find expected ':'", self.mark)
    }

    /// The next token may be a key.
    fn maybe_key(&mut self) -> Outcome {
        if !self.may_begin_key {
            return Ok(());
        }
        let is_required = !self.in_flow() && self.indent == self.column();
        self.no_key()?;
        let token = self.taken + self.tokens.len();
        let key = MaybeKey { token, is_required, position: self.position, mark: self.mark };
        self.keys.insert(self.flow_level, key);
        Ok(())
    }

    /// The possible key was not a key.
    fn no_key(&mut self) -> Outcome {
        match self.keys.remove(&self.flow_level) {
            Some(key) if key.is_required => self.no_colon(key),
            _ => Ok(()),
        }
    }

    /// Ends the block collections with a larger indentation.
    fn unwind(&mut self, column: i64) {
        while !self.in_flow() && self.indent > column {
            self.indent = self.indents.pop().unwrap_or(-1);
            self.push(Kind::BlockEnd, self.mark);
        }
    }

    /// Whether a block collection begins in this column.
    fn add_indent(&mut self, column: i64) -> bool {
        if self.indent >= column {
            return false;
        }
        self.indents.push(self.indent);
        self.indent = column;
        true
    }

    fn stream_end(&mut self) -> Outcome {
        self.unwind(-1);
        self.no_key()?;
        self.keys.clear();
        self.push(Kind::StreamEnd, self.mark);
        self.is_done = true;
        Ok(())
    }

    fn document_mark(&mut self, kind: Kind) -> Outcome {
        self.unwind(-1);
        self.no_key()?;
        self.may_begin_key = false;
        self.indicator(kind, 3);
        Ok(())
    }

    fn flow_start(&mut self, kind: Kind) -> Outcome {
        self.maybe_key()?;
        self.flow_level += 1;
        self.may_begin_key = true;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_end(&mut self, kind: Kind) -> Outcome {
        self.no_key()?;
        self.flow_level -= 1;
        self.may_begin_key = false;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_entry(&mut self) -> Outcome {
        self.may_begin_key = true;
        self.no_key()?;
        self.indicator(Kind::FlowEntry, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Outcome {
        if !self.in_flow() {
            if !self.may_begin_key {
                return refuse("sequence entries are not allowed here", self.mark);
            }
            if self.add_indent(self.column()) {
                self.push(Kind::BlockSequenceStart, self.mark);
            }
        }
        self.may_begin_key = true;
        self.no_key()?;
        self.indicator(Kind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Outcome {
        if !self.in_flow() {
            if !self.may_begin_key {
                return refuse("mapping keys are not allowed here", self.mark);
            }
            if self.add_indent(self.column()) {
                self.push(Kind::BlockMappingStart, self.mark);
            }
        }
        self.may_begin_key = !self.in_flow();
        self.no_key()?;
        self.indicator(Kind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Outcome {
        if let Some(key) = self.keys.remove(&self.flow_level) {
            let place = key.token.saturating_sub(self.taken).min(self.tokens.len());
            let token = |kind| Token { kind, start: key.mark, text: String::new() };
            self.tokens.insert(place, token(Kind::Key));
            if !self.in_flow() && self.add_indent(i64::from(key.mark.column)) {
                self.tokens.insert(place, token(Kind::BlockMappingStart));
            }
            self.may_begin_key = false;
        } else {
            if !self.in_flow() {
                if !self.may_begin_key {
                    return refuse("mapping values are not allowed here", self.mark);
                }
                if self.add_indent(self.column()) {
                    self.push(Kind::BlockMappingStart, self.mark);
                }
            }
            self.may_begin_key = !self.in_flow();
            self.no_key()?;
        }
        self.indicator(Kind::Value, 1);
        Ok(())
    }

    fn anchor(&mut self, kind: Kind) -> Outcome {
        self.maybe_key()?;
        self.may_begin_key = false;
        let start = self.mark;
        let context = if kind == Kind::Alias { "while scanning an alias" } else { "while scanning an anchor" };
        self.forward(1);
        let begin = self.position;
        self.skip(is_word);
        if self.position == begin || !(is_blank(self.now()) || "?:,]}%@`".contains(self.now())) {
            let problem = format!("expected alphabetic or numeric character, but found {}", self.found());
            return refuse_in(context, start, problem, self.mark);
        }
        let text = self.chars.get(begin..self.position).unwrap_or_default().iter().collect();
        self.tokens.push_back(Token { kind, start, text });
        Ok(())
    }
}
