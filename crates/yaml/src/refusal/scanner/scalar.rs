//! Scalars: plain, quoted and block scalars. Only their ends matter here, not their content.

use super::{END, Scanner, is_blank, is_break};
use crate::mark::Mark;
use crate::refusal::token::Kind;
use crate::refusal::{Outcome, Stop, quote, refuse_in};

const BLOCK: &str = "while scanning a block scalar";
const QUOTED: &str = "while scanning a quoted scalar";
const DOUBLE: &str = "while scanning a double-quoted scalar";

impl Scanner {
    pub(super) fn block_scalar(&mut self) -> Outcome {
        self.may_begin_key = true;
        self.no_key()?;
        let start = self.mark;
        self.forward(1);
        let indicator = self.block_indicators(start)?;
        self.skip(|c| c == ' ');
        if self.now() == '#' {
            self.skip(|c| !is_break(c));
        }
        if self.now() != END && !is_break(self.now()) {
            let problem = format!("expected a comment or a line break, but found {}", self.found());
            return refuse_in(BLOCK, start, problem, self.mark);
        }
        self.skip_break();
        let least = (self.indent + 1).max(1);
        let indent = if let Some(indicator) = indicator {
            let indent = least + indicator - 1;
            self.block_breaks(indent);
            indent
        } else {
            least.max(self.block_indentation())
        };
        while self.column() == indent && self.now() != END {
            self.skip(|c| !is_break(c));
            self.skip_break();
            self.block_breaks(indent);
        }
        self.push(Kind::Scalar, start);
        Ok(())
    }

    /// `-`, `+`, a digit, or both in either order. Returns the digit.
    fn block_indicators(&mut self, start: Mark) -> Outcome<Option<i64>> {
        let mut indent = None;
        let mut has_chomping = false;
        for _ in 0..2 {
            let c = self.now();
            match c.to_digit(10) {
                Some(0) if indent.is_none() => {
                    let problem = "expected indentation indicator in the range 1-9, but found 0";
                    return refuse_in(BLOCK, start, problem, self.mark);
                }
                Some(digit) if indent.is_none() => indent = Some(i64::from(digit)),
                None if matches!(c, '+' | '-') && !has_chomping => has_chomping = true,
                _ => break,
            }
            self.forward(1);
        }
        let c = self.now();
        if !matches!(c, END | ' ') && !is_break(c) {
            let problem = format!("expected chomping or indentation indicators, but found {}", self.found());
            return refuse_in(BLOCK, start, problem, self.mark);
        }
        Ok(indent)
    }

    /// Skips blank lines. Returns the largest column in them and before the text that follows.
    fn block_indentation(&mut self) -> i64 {
        let mut most = 0;
        while self.now() == ' ' || is_break(self.now()) {
            if !self.skip_break() {
                self.forward(1);
                most = most.max(self.column());
            }
        }
        most
    }

    /// Skips blank lines, and blanks up to the indentation.
    fn block_breaks(&mut self, indent: i64) {
        loop {
            while self.column() < indent && self.now() == ' ' {
                self.forward(1);
            }
            if !self.skip_break() {
                return;
            }
        }
    }

    pub(super) fn quoted_scalar(&mut self) -> Outcome {
        self.maybe_key()?;
        self.may_begin_key = false;
        let (start, mark) = (self.mark, self.now());
        self.forward(1);
        self.quoted_text(mark, start)?;
        while self.now() != mark {
            self.quoted_blanks(start)?;
            self.quoted_text(mark, start)?;
        }
        self.forward(1);
        self.push(Kind::Scalar, start);
        Ok(())
    }

    /// Up to a blank or the closing quote.
    fn quoted_text(&mut self, mark: char, start: Mark) -> Outcome {
        loop {
            self.skip(|c| !is_blank(c) && !matches!(c, '\'' | '"' | '\\'));
            match self.now() {
                '\'' if mark == '\'' && self.at(1) == '\'' => self.forward(2),
                '\'' if mark == '"' => self.forward(1),
                '"' | '\\' if mark == '\'' => self.forward(1),
                '\\' => {
                    self.forward(1);
                    self.escape(start)?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// The character or digits after a backslash.
    fn escape(&mut self, start: Mark) -> Outcome {
        let c = self.now();
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ if is_break(c) => {
                self.skip_break();
                return self.quoted_breaks(start);
            }
            _ if c != END && "0abt\tnvfre \"/\\N_LP".contains(c) => {
                self.forward(1);
                return Ok(());
            }
            _ => {
                let problem = format!("found unknown escape character {}", self.found());
                return refuse_in(DOUBLE, start, problem, self.mark);
            }
        };
        self.forward(1);
        if let Some(wrong) = (0..digits).map(|ahead| self.at(ahead)).find(|c| !c.is_ascii_hexdigit()) {
            let found = quote(&wrong.to_string());
            let problem = format!("expected escape sequence of {digits} hexadecimal numbers, but found {found}");
            return refuse_in(DOUBLE, start, problem, self.mark);
        }
        let code: String = (0..digits).map(|ahead| self.at(ahead)).collect();
        // For a character that does not exist, Python raises an error without a YAML message.
        if u32::from_str_radix(&code, 16).map_or(true, |code| code > 0x0010_ffff) {
            return Err(Stop::GivenUp);
        }
        self.forward(digits);
        Ok(())
    }

    fn quoted_blanks(&mut self, start: Mark) -> Outcome {
        self.skip(|c| matches!(c, ' ' | '\t'));
        if self.now() == END {
            return refuse_in(QUOTED, start, "found unexpected end of stream", self.mark);
        }
        if self.skip_break() { self.quoted_breaks(start) } else { Ok(()) }
    }

    fn quoted_breaks(&mut self, start: Mark) -> Outcome {
        loop {
            if self.is_document_mark('-') || self.is_document_mark('.') {
                return refuse_in(QUOTED, start, "found unexpected document separator", self.mark);
            }
            self.skip(|c| matches!(c, ' ' | '\t'));
            if !self.skip_break() {
                return Ok(());
            }
        }
    }

    pub(super) fn plain_scalar(&mut self) -> Outcome {
        self.maybe_key()?;
        self.may_begin_key = false;
        let start = self.mark;
        let indent = self.indent + 1;
        while self.now() != '#' {
            let mut is_empty = true;
            while !self.ends_plain() {
                self.forward(1);
                is_empty = false;
            }
            if is_empty {
                break;
            }
            self.may_begin_key = false;
            let goes_on = self.plain_blanks();
            if !goes_on || self.now() == '#' || (!self.in_flow() && self.column() < indent) {
                break;
            }
        }
        self.push(Kind::Scalar, start);
        Ok(())
    }

    fn ends_plain(&self) -> bool {
        let (c, next) = (self.now(), self.at(1));
        let flow = |c: char| self.in_flow() && ",[]{}".contains(c);
        is_blank(c) || (c == ':' && (is_blank(next) || flow(next))) || flow(c) || (self.in_flow() && c == '?')
    }

    /// Blanks (no tabs) and line breaks in a plain scalar; false where it ends.
    fn plain_blanks(&mut self) -> bool {
        let has_blanks = self.now() == ' ';
        self.skip(|c| c == ' ');
        if !self.skip_break() {
            return has_blanks;
        }
        self.may_begin_key = true;
        if self.is_document_mark('-') || self.is_document_mark('.') {
            return false;
        }
        loop {
            if self.now() == ' ' {
                self.forward(1);
            } else if !self.skip_break() {
                return true;
            } else if self.is_document_mark('-') || self.is_document_mark('.') {
                return false;
            }
        }
    }
}
