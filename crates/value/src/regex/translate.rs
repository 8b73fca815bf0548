//! From Python's syntax to the engine's.

use std::fmt::Write as _;

use super::PatternError;
use super::class::{self, Escape};

/// Deeper groups than this are refused; the engine's compiler recurses over them.
const MAX_DEPTH: usize = 100;

/// What closes a group that looks around.
const LOOK_CLOSE: &str = "))";

/// Rewrites a pattern so that the engine means by it what Python does.
pub(super) fn translate(source: &str) -> Result<String, PatternError> {
    let mut translator = Translator {
        rest: Cursor::new(source),
        out: String::new(),
        ascii: false,
        multi_line: false,
        groups: Groups::default(),
    };
    translator.run()?;
    Ok(translator.out)
}

/// The characters still to read.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads up to `end` and over it.
    fn until(&mut self, end: char) -> Option<&'a str> {
        let (found, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(found)
    }

    /// Reads at most `most` characters that `wanted` accepts.
    pub(super) fn take_while(&mut self, most: usize, wanted: impl Fn(char) -> bool) -> &'a str {
        let len = self.rest.chars().take(most).take_while(|c| wanted(*c)).map(char::len_utf8).sum();
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }
}

struct Translator<'a> {
    rest: Cursor<'a>,
    out: String,
    ascii: bool,
    multi_line: bool,
    groups: Groups,
}

/// The groups so far, since references may only go back.
#[derive(Default)]
struct Groups {
    /// How many capture, and the names of those that have one.
    count: usize,
    names: Vec<(String, usize)>,
    /// Those not closed yet.
    open: Vec<Open>,
}

/// A group that is not closed yet.
struct Open {
    /// `None` for one that does not capture.
    number: Option<usize>,
    close: &'static str,
    /// Where its content begins in the output.
    start: usize,
}

impl Groups {
    fn begin(&mut self, name: Option<&str>) -> Result<(), PatternError> {
        self.count += 1;
        self.open.push(Open { number: Some(self.count), close: ")", start: 0 });
        let Some(name) = name else { return Ok(()) };
        if self.names.iter().any(|(known, _)| known == name) {
            return error(format!("redefinition of group name '{name}'"));
        }
        self.names.push((name.to_owned(), self.count));
        Ok(())
    }

    fn refer(&self, group: usize) -> Result<(), PatternError> {
        if group > self.count {
            return error(format!("invalid group reference {group}"));
        }
        let is_open = self.open.iter().any(|open| open.number == Some(group));
        if is_open { error("cannot refer to an open group") } else { Ok(()) }
    }

    fn refer_by_name(&self, name: &str) -> Result<(), PatternError> {
        match self.names.iter().find(|(known, _)| known == name) {
            Some((_, group)) => self.refer(*group),
            None => error(format!("unknown group name '{name}'")),
        }
    }
}

pub(super) fn error<T>(message: impl Into<String>) -> Result<T, PatternError> {
    Err(PatternError(message.into()))
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), PatternError> {
        self.global_flags()?;
        // Whether a quantifier may follow: behind an atom yes, behind a quantifier, a place or at a start no.
        let mut repeatable = Repeat::Nothing;
        while let Some(c) = self.rest.next() {
            repeatable = match c {
                '\\' => self.escape()?,
                '[' => {
                    class::translate(&mut self.rest, &mut self.out, self.ascii)?;
                    Repeat::Atom
                }
                '(' if self.rest.eat("?#") => {
                    if self.rest.until(')').is_none() {
                        return error("missing ), unterminated comment");
                    }
                    repeatable
                }
                '(' => {
                    let begun = self.group()?;
                    if let (Repeat::Nothing, Some(group)) = (begun, self.groups.open.last_mut()) {
                        group.start = self.out.len();
                    }
                    if self.groups.open.len() > MAX_DEPTH {
                        return error("too many nested groups");
                    }
                    begun
                }
                ')' => {
                    let Some(group) = self.groups.open.pop() else { return error("unbalanced parenthesis") };
                    let is_empty = self.out.len() == group.start;
                    self.out.push_str(group.close);
                    if is_empty || group.close == LOOK_CLOSE { Repeat::NoWidth } else { Repeat::Atom }
                }
                '*' | '+' | '?' => {
                    self.quantifier(repeatable, &c.to_string())?;
                    Repeat::Quantified
                }
                '{' => {
                    if let Some(bounds) = self.bounds()? {
                        self.quantifier(repeatable, &bounds)?;
                        Repeat::Quantified
                    } else {
                        self.out.push_str(r"\{");
                        Repeat::Atom
                    }
                }
                '|' => {
                    self.out.push('|');
                    Repeat::Nothing
                }
                '^' | '$' => {
                    match c {
                        '$' if !self.multi_line => self.out.push_str(r"(?=\n?\z)"),
                        c => self.out.push(c),
                    }
                    Repeat::Nothing
                }
                ']' | '}' => {
                    self.out.extend(['\\', c]);
                    Repeat::Atom
                }
                c => {
                    self.out.push(c);
                    Repeat::Atom
                }
            };
        }
        if self.groups.open.is_empty() { Ok(()) } else { error("missing ), unterminated subpattern") }
    }

    /// `(?aimsux)` at the very start. `a` and `u` are not the engine's; `L` is for bytes only.
    fn global_flags(&mut self) -> Result<(), PatternError> {
        while let Some(tail) = self.rest.rest.strip_prefix("(?") {
            let flags: String = tail.chars().take_while(char::is_ascii_alphabetic).collect();
            if flags.is_empty() || flags.starts_with('P') || tail.as_bytes().get(flags.len()) != Some(&b')') {
                return Ok(());
            }
            let kept = self.flags(&flags)?;
            self.multi_line |= kept.contains('m');
            if !kept.is_empty() {
                _ = write!(self.out, "(?{kept})");
            }
            self.rest.rest = tail.get(flags.len() + 1..).unwrap_or_default();
        }
        Ok(())
    }

    fn flags(&mut self, flags: &str) -> Result<String, PatternError> {
        let mut kept = String::new();
        for flag in flags.chars() {
            match flag {
                'a' => self.ascii = true,
                'u' => {}
                'i' | 'm' | 's' | 'x' => kept.push(flag),
                'L' => return error("bad inline flags: cannot use 'L' flag with a str pattern"),
                _ => return error("unknown flag"),
            }
        }
        Ok(kept)
    }

    /// What follows `(`: the beginning of a group, or a whole back reference.
    fn group(&mut self) -> Result<Repeat, PatternError> {
        if !self.rest.eat("?") {
            self.out.push('(');
            self.groups.begin(None)?;
            return Ok(Repeat::Nothing);
        }
        if self.rest.eat("P=") {
            let Some(name) = self.rest.until(')') else { return error("missing ), unterminated name") };
            check_name(name)?;
            self.groups.refer_by_name(name)?;
            _ = write!(self.out, "(?:(?P={name}))");
            return Ok(Repeat::Atom);
        }
        if self.rest.eat("P<") {
            let name = self.rest.until('>').unwrap_or_default();
            check_name(name)?;
            _ = write!(self.out, "(?P<{name}>");
            self.groups.begin(Some(name))?;
            return Ok(Repeat::Nothing);
        }
        // In a group of its own, see `quantifier`.
        if let Some(opening) = ["=", "!", "<=", "<!"].into_iter().find(|opening| self.rest.eat(opening)) {
            _ = write!(self.out, "(?:(?{opening}");
            self.groups.open.push(Open { number: None, close: LOOK_CLOSE, start: 0 });
            return Ok(Repeat::Nothing);
        }
        self.groups.open.push(Open { number: None, close: ")", start: 0 });
        if let Some(opening) = [":", ">"].into_iter().find(|opening| self.rest.eat(opening)) {
            _ = write!(self.out, "(?{opening}");
            return Ok(Repeat::Nothing);
        }
        if self.rest.eat("(") {
            let Some(condition) = self.rest.until(')') else { return error("missing ), unterminated name") };
            if let Ok(group) = condition.parse() {
                self.groups.refer(group)?;
            } else {
                check_name(condition)?;
                self.groups.refer_by_name(condition)?;
            }
            _ = write!(self.out, "(?({condition})");
            return Ok(Repeat::Nothing);
        }
        let on = self.rest.take_while(8, |c| c.is_ascii_alphabetic());
        let off = if self.rest.eat("-") { self.rest.take_while(8, |c| c.is_ascii_alphabetic()) } else { "" };
        if self.rest.eat(":") && !(on.is_empty() && off.is_empty()) {
            let (on, off) = (self.flags(on)?, self.flags(off)?);
            _ = if off.is_empty() { write!(self.out, "(?{on}:") } else { write!(self.out, "(?{on}-{off}:") };
            return Ok(Repeat::Nothing);
        }
        error("unknown extension or global flags not at the start of the expression")
    }

    fn quantifier(&mut self, after: Repeat, quantifier: &str) -> Result<(), PatternError> {
        match after {
            Repeat::Nothing => return error("nothing to repeat"),
            Repeat::Quantified => return error("multiple repeat"),
            Repeat::Atom => self.out.push_str(quantifier),
            // The engine does not repeat what has no width, and once is as good as often. None is an empty branch.
            Repeat::NoWidth => {
                if quantifier.starts_with(['*', '?']) || quantifier.starts_with("{0") {
                    self.out.pop();
                    self.out.push_str("|)");
                }
            }
        }
        if let Some(mode @ ('?' | '+')) = self.rest.peek() {
            self.rest.next();
            if !matches!(after, Repeat::NoWidth) {
                self.out.push(mode);
            }
        }
        Ok(())
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}` behind the brace; `None`, with nothing read, where Python takes it literally.
    fn bounds(&mut self) -> Result<Option<String>, PatternError> {
        let Some((inner, rest)) = self.rest.rest.split_once('}') else { return Ok(None) };
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(low) || !high.is_none_or(is_number) || (low.is_empty() && high.is_none()) {
            return Ok(None);
        }
        self.rest.rest = rest;
        let low = if low.is_empty() { "0" } else { low };
        let number =
            |text: &str| text.parse::<u32>().map_err(|_| PatternError("the repetition number is too large".into()));
        match high {
            None => Ok(Some(format!("{{{}}}", number(low)?))),
            Some("") => Ok(Some(format!("{{{},}}", number(low)?))),
            Some(high) if number(high)? < number(low)? => error("min repeat greater than max repeat"),
            Some(high) => Ok(Some(format!("{{{},{}}}", number(low)?, number(high)?))),
        }
    }

    fn escape(&mut self) -> Result<Repeat, PatternError> {
        match self.rest.peek() {
            Some('1'..='9') => self.back_reference()?,
            Some(c @ ('A' | 'b' | 'B' | 'Z')) => {
                self.rest.next();
                self.out.extend(['\\', if c == 'Z' { 'z' } else { c }]);
                return Ok(Repeat::Nothing);
            }
            _ => match class::escape(&mut self.rest, self.ascii)? {
                Escape::Char(c) => class::push_char(&mut self.out, c),
                Escape::Set(set) => _ = write!(self.out, "[{set}]"),
            },
        }
        Ok(Repeat::Atom)
    }

    /// `\1` to `\99`, or three octal digits.
    fn back_reference(&mut self) -> Result<(), PatternError> {
        let octal = self.rest.rest.get(..3).filter(|o| o.bytes().all(|b| (b'0'..=b'7').contains(&b)));
        if let Some(code) = octal.and_then(|o| u32::from_str_radix(o, 8).ok()) {
            self.rest.take_while(3, |_| true);
            return match char::from_u32(code).filter(|_| code <= 0o377) {
                Some(c) => {
                    class::push_char(&mut self.out, c);
                    Ok(())
                }
                None => error("octal escape value outside of range 0-0o377"),
            };
        }
        let number = self.rest.take_while(2, |c| c.is_ascii_digit());
        self.groups.refer(number.parse().unwrap_or(usize::MAX))?;
        _ = write!(self.out, r"(?:\{number})");
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Repeat {
    Nothing,
    Atom,
    NoWidth,
    Quantified,
}

fn check_name(name: &str) -> Result<(), PatternError> {
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if starts && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(());
    }
    error(if name.is_empty() {
        "missing group name".to_owned()
    } else {
        format!("bad character in group name '{name}'")
    })
}
