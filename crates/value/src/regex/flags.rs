//! `(?aimsux)` and `(?i-s:…)`.

use super::PatternError;
use super::reader::Reader;
use super::set::Fold;

/// All flags; `t` has no effect and `L` is rejected.
const NAMES: &str = "iLmsxaut";

/// A set of flags.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags(u8);

impl Flags {
    /// The flag of a token.
    fn of(token: &str) -> Option<Self> {
        NAMES.find(token).map(|at| Self(1 << at))
    }

    pub(super) fn has(self, name: char) -> bool {
        NAMES.find(name).is_some_and(|at| self.0 >> at & 1 == 1)
    }

    /// Python's names; the default flag is not shown.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        const SHOWN: [(char, &str); 6] = [
            ('t', "TEMPLATE"),
            ('i', "IGNORECASE"),
            ('m', "MULTILINE"),
            ('s', "DOTALL"),
            ('x', "VERBOSE"),
            ('a', "ASCII"),
        ];
        SHOWN.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }

    pub(super) fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The flags inside of a group that sets and clears some.
    pub(super) fn within(self, set: Self, dropped: Self) -> Self {
        let kept = if set.has('a') || set.has('u') { self.without(Self::of("a")).without(Self::of("u")) } else { self };
        kept.with(set).without(Some(dropped))
    }

    fn without(self, less: Option<Self>) -> Self {
        Self(self.0 & !less.unwrap_or_default().0)
    }

    pub(super) fn fold(self) -> Fold {
        match (self.has('i'), self.has('a')) {
            (false, _) => Fold::No,
            (true, true) => Fold::Ascii,
            (true, false) => Fold::Unicode,
        }
    }
}

/// The flags after `(?`.
pub(super) enum Change {
    /// `(?i)`
    Global(Flags),
    /// `(?i-s:`
    Group { set: Flags, dropped: Flags },
}

pub(super) fn is_flag(token: &str) -> bool {
    Flags::of(token).is_some()
}

/// Parses flags after the first token.
pub(super) fn read(reader: &mut Reader<'_>, first: &str) -> Result<Change, PatternError> {
    let mut set = Flags::default();
    let mut token = first;
    if token != "-" {
        while let Some(flag) = Flags::of(token) {
            if flag.has('L') {
                return Err(reader.error("bad inline flags: cannot use 'L' flag with a str pattern", 0));
            }
            set = set.with(flag);
            if set.has('a') && set.has('u') {
                return Err(reader.error("bad inline flags: flags 'a', 'u' and 'L' are incompatible", 0));
            }
            token = following(reader, "missing -, : or )", &["-", ":", ")"])?;
        }
    }
    if token == ")" {
        return Ok(Change::Global(set));
    }
    if set.has('t') {
        return Err(reader.error("bad inline flags: cannot turn on global flag", 1));
    }
    let mut dropped = Flags::default();
    if token == "-" {
        token = following(reader, "missing flag", &[])?;
        while let Some(flag) = Flags::of(token) {
            if flag.has('a') || flag.has('u') || flag.has('L') {
                return Err(reader.error("bad inline flags: cannot turn off flags 'a', 'u' and 'L'", 0));
            }
            dropped = dropped.with(flag);
            token = following(reader, "missing :", &[":"])?;
        }
    }
    if dropped.has('t') {
        return Err(reader.error("bad inline flags: cannot turn off global flag", 1));
    }
    if set.0 & dropped.0 != 0 {
        return Err(reader.error("bad inline flags: flag turned on and off", 1));
    }
    Ok(Change::Group { set, dropped })
}

/// The next token: a flag or a terminator.
fn following<'p>(reader: &mut Reader<'p>, missing: &str, ends: &[&str]) -> Result<&'p str, PatternError> {
    let Some(token) = reader.next()? else { return Err(reader.error(missing, 0)) };
    if ends.contains(&token) || is_flag(token) {
        return Ok(token);
    }
    let message = if token.chars().all(char::is_alphabetic) { "unknown flag" } else { missing };
    Err(reader.error(message, token.chars().count()))
}
