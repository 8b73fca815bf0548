//! Tags and directives.

use super::{END, Scanner, is_blank, is_break, is_word};
use crate::mark::Mark;
use crate::refusal::token::{Kind, Token};
use crate::refusal::{Outcome, Stop, quote, refuse_in};

const DIRECTIVE: &str = "while scanning a directive";

/// The end, a space or a line break.
fn ends_word(c: char) -> bool {
    matches!(c, END | ' ') || is_break(c)
}

impl Scanner {
    pub(super) fn directive(&mut self) -> Outcome {
        self.unwind(-1);
        self.no_key()?;
        self.may_begin_key = false;
        let start = self.mark;
        self.forward(1);
        let name = self.word();
        if name.is_empty() || !ends_word(self.now()) {
            let problem = format!("expected alphabetic or numeric character, but found {}", self.found());
            return refuse_in(DIRECTIVE, start, problem, self.mark);
        }
        let argument = match name.as_str() {
            "YAML" => self.version(start)?,
            "TAG" => self.declared_tag(start)?,
            _ => {
                self.skip(|c| !is_break(c));
                String::new()
            }
        };
        self.skip(|c| c == ' ');
        if self.now() == '#' {
            self.skip(|c| !is_break(c));
        }
        if self.now() != END && !is_break(self.now()) {
            let problem = format!("expected a comment or a line break, but found {}", self.found());
            return refuse_in(DIRECTIVE, start, problem, self.mark);
        }
        self.skip_break();
        self.tokens.push_back(Token { kind: Kind::Directive, start, text: format!("{name} {argument}") });
        Ok(())
    }

    fn text_of(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let begin = self.position;
        self.skip(wanted);
        self.chars.get(begin..self.position).unwrap_or_default().iter().collect()
    }

    fn word(&mut self) -> String {
        self.text_of(is_word)
    }

    /// The major number of `1.1`, without leading zeros.
    fn version(&mut self, start: Mark) -> Outcome<String> {
        self.skip(|c| c == ' ');
        let major = self.digits(start)?;
        if self.now() != '.' {
            let problem = format!("expected a digit or '.', but found {}", self.found());
            return refuse_in(DIRECTIVE, start, problem, self.mark);
        }
        self.forward(1);
        self.digits(start)?;
        if !ends_word(self.now()) {
            let problem = format!("expected a digit or ' ', but found {}", self.found());
            return refuse_in(DIRECTIVE, start, problem, self.mark);
        }
        Ok(major.trim_start_matches('0').to_owned())
    }

    fn digits(&mut self, start: Mark) -> Outcome<String> {
        let digits = self.text_of(|c| c.is_ascii_digit());
        if digits.is_empty() {
            let problem = format!("expected a digit, but found {}", self.found());
            return refuse_in(DIRECTIVE, start, problem, self.mark);
        }
        Ok(digits)
    }

    /// The handle that a directive declares.
    fn declared_tag(&mut self, start: Mark) -> Outcome<String> {
        self.skip(|c| c == ' ');
        let handle = self.handle("directive", start)?;
        if self.now() != ' ' {
            return self.no_space(DIRECTIVE, start);
        }
        self.skip(|c| c == ' ');
        self.uri("directive", start)?;
        if !ends_word(self.now()) {
            return self.no_space(DIRECTIVE, start);
        }
        Ok(handle)
    }

    fn no_space<T>(&self, context: &str, start: Mark) -> Outcome<T> {
        refuse_in(context, start, format!("expected ' ', but found {}", self.found()), self.mark)
    }

    pub(super) fn tag(&mut self) -> Outcome {
        self.maybe_key()?;
        self.may_begin_key = false;
        let start = self.mark;
        let mut text = String::new();
        match self.at(1) {
            '<' => {
                self.forward(2);
                self.uri("tag", start)?;
                if self.now() != '>' {
                    let problem = format!("expected '>', but found {}", self.found());
                    return refuse_in("while parsing a tag", start, problem, self.mark);
                }
                self.forward(1);
            }
            c if is_blank(c) => self.forward(1),
            _ => {
                let mut word = (1..).map(|ahead| self.at(ahead)).take_while(|c| !ends_word(*c));
                text = if word.any(|c| c == '!') {
                    self.handle("tag", start)?
                } else {
                    self.forward(1);
                    "!".to_owned()
                };
                self.uri("tag", start)?;
            }
        }
        if !ends_word(self.now()) {
            return self.no_space("while scanning a tag", start);
        }
        self.tokens.push_back(Token { kind: Kind::Tag, start, text });
        Ok(())
    }

    /// `!`, `!!` or `!name!`.
    fn handle(&mut self, name: &str, start: Mark) -> Outcome<String> {
        let context = format!("while scanning a {name}");
        let no_mark = |this: &Self| {
            let problem = format!("expected '!', but found {}", this.found());
            refuse_in(context.clone(), start, problem, this.mark)
        };
        if self.now() != '!' {
            return no_mark(self);
        }
        self.forward(1);
        if self.now() == ' ' {
            return Ok("!".to_owned());
        }
        let word = self.word();
        if self.now() != '!' {
            return no_mark(self);
        }
        self.forward(1);
        Ok(format!("!{word}!"))
    }

    fn uri(&mut self, name: &str, start: Mark) -> Outcome {
        let begin = self.position;
        loop {
            self.skip(|c| c.is_ascii_alphanumeric() || "-;/?:@&=+$,_.!~*'()[]".contains(c));
            if self.now() != '%' {
                break;
            }
            self.forward(1);
            if let Some(wrong) = (0..2).map(|ahead| self.at(ahead)).find(|c| !c.is_ascii_hexdigit()) {
                let found = quote(&wrong.to_string());
                let problem = format!("expected URI escape sequence of 2 hexadecimal numbers, but found {found}");
                return refuse_in(format!("while scanning a {name}"), start, problem, self.mark);
            }
            // For bytes that are not a character, the message is Python's.
            if !matches!(self.now(), '0'..='7') {
                return Err(Stop::GivenUp);
            }
            self.forward(2);
        }
        if self.position == begin {
            let problem = format!("expected URI, but found {}", self.found());
            return refuse_in(format!("while parsing a {name}"), start, problem, self.mark);
        }
        Ok(())
    }
}
