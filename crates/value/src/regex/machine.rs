//! Executes a program on a text, with backtracking: finds the first match.

use super::PatternError;
use super::node::{AnchorKind, Mode};
use super::program::{One, Op, Program};
use super::set::{Category, Fold, Kind};

/// Maximum number of backtracking records; about 30 MB.
const MOST_NOTES: usize = 1_000_000;

/// No position.
const NONE: usize = usize::MAX;

pub(super) struct Machine<'r> {
    program: &'r Program,
    text: &'r str,
    /// The positions of group starts and ends; [`NONE`] if a group did not participate.
    marks: Vec<usize>,
    registers: Vec<Turns>,
    notes: Vec<Note>,
    /// The match must not end at this position, to exclude an empty match.
    forbidden: Option<usize>,
    /// Remaining steps.
    fuel: &'r mut usize,
}

#[derive(Clone, Copy)]
struct Turns {
    count: u32,
    /// The start of the last optional iteration.
    last: usize,
}

/// A backtracking record; the last one is used first.
#[derive(Clone, Copy)]
enum Note {
    /// Continue with an alternative.
    Way {
        op: usize,
        at: usize,
    },
    /// Shorten a greedy [`Op::Many`], down to a position.
    Less {
        op: usize,
        least: usize,
        at: usize,
    },
    /// Extend a lazy [`Op::Many`].
    More {
        op: usize,
        at: usize,
        left: u32,
    },
    Mark {
        index: usize,
        was: usize,
    },
    Turns {
        register: usize,
        was: Turns,
    },
}

impl<'r> Machine<'r> {
    pub(super) fn new(program: &'r Program, groups: usize, text: &'r str, fuel: &'r mut usize) -> Self {
        let registers = vec![Turns { count: 0, last: NONE }; program.registers];
        Self { program, text, marks: vec![NONE; 2 * groups], registers, notes: Vec::new(), forbidden: None, fuel }
    }

    /// Excludes the empty match at a position.
    pub(super) fn forbid(&mut self, place: Option<usize>) {
        self.forbidden = place;
    }

    /// The groups of the last match; the first one is the whole match.
    pub(super) fn groups(&self, start: usize, end: usize) -> Vec<Option<std::ops::Range<usize>>> {
        let groups = self.marks.chunks_exact(2).map(|mark| match mark {
            [start, end] if *start != NONE && *end != NONE => Some(*start..*end),
            _ => None,
        });
        std::iter::once(Some(start..end)).chain(groups.skip(1)).collect()
    }

    /// The end of the match that starts at a position.
    ///
    /// Errors: the limit of steps is exceeded.
    pub(super) fn run(&mut self, at: usize) -> Result<Option<usize>, PatternError> {
        self.notes.clear();
        *self.fuel = self.fuel.checked_sub(self.marks.len() / 8).ok_or_else(exhausted)?;
        self.marks.fill(NONE);
        self.enclosed(0, at, self.forbidden)
    }

    /// Runs from an instruction to its `Accept`. The caller keeps or undoes the records.
    fn enclosed(&mut self, op: usize, at: usize, forbidden: Option<usize>) -> Result<Option<usize>, PatternError> {
        let base = self.notes.len();
        let (mut op, mut at) = (op, at);
        loop {
            *self.fuel = self.fuel.checked_sub(1).ok_or_else(exhausted)?;
            let next = match self.program.ops.get(op) {
                Some(Op::Accept) | None if forbidden != Some(at) => return Ok(Some(at)),
                Some(Op::Accept) | None => None,
                Some(instruction) => self.step(instruction, op, at)?,
            };
            match next.or_else(|| self.back(base)) {
                Some(way) => (op, at) = way,
                None => return Ok(None),
            }
        }
    }

    /// Executes one instruction; `None` if it fails.
    fn step(&mut self, instruction: &Op, op: usize, at: usize) -> Result<Option<(usize, usize)>, PatternError> {
        let next = match instruction {
            Op::One(one) => self.one(one, at),
            Op::Many { one, least, most, mode } => self.many(one, *least, *most, *mode, op, at)?,
            Op::AnchorKind(place) => self.holds(*place, at).then_some(at),
            Op::Reference(group, fold) => self.reference(*group, *fold, at)?,
            Op::Mark(index) => {
                let was = std::mem::replace(self.marks.get_mut(*index).ok_or_else(exhausted)?, at);
                self.note(Note::Mark { index: *index, was })?;
                Some(at)
            }
            Op::Try(other) => {
                self.note(Note::Way { op: *other, at })?;
                Some(at)
            }
            Op::Jump(target) => return Ok(Some((*target, at))),
            Op::Unless(group, target) => {
                return Ok(Some((if self.group(*group).is_none() { *target } else { op + 1 }, at)));
            }
            Op::Enter { register, target } => {
                self.set(*register, Turns { count: 0, last: NONE })?;
                return Ok(Some((*target, at)));
            }
            Op::Turn { register, target } => {
                let count = self.turns(*register).count.saturating_add(1);
                self.set(*register, Turns { count, last: at })?;
                return Ok(Some((*target, at)));
            }
            Op::Loop { register, least, most, lazy } => {
                return self.turn(*register, *least, *most, *lazy, op, at).map(Some);
            }
            Op::Look { back, negative, target } => {
                return self.look(*back, *negative, op, at).map(|holds| holds.then_some((*target, at)));
            }
            Op::Atomic(target) => {
                let base = self.notes.len();
                let end = self.enclosed(op + 1, at, None)?;
                self.settle(base);
                return Ok(end.map(|end| (*target, end)));
            }
            Op::Accept => None,
        };
        Ok(next.map(|at| (op + 1, at)))
    }

    /// Uses the last record with an alternative; records before `base` belong to other runs.
    fn back(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.notes.len() > base {
            match self.notes.pop()? {
                Note::Way { op, at } => return Some((op, at)),
                Note::Less { op, least, at } => {
                    let before = at - self.before(at).map_or(0, char::len_utf8);
                    if before > least {
                        self.notes.push(Note::Less { op, least, at: before });
                    }
                    return Some((op + 1, before));
                }
                Note::More { op, at, left } => {
                    let Some(Op::Many { one, .. }) = self.program.ops.get(op) else { continue };
                    let Some(at) = self.one(one, at) else { continue };
                    if left > 1 {
                        self.notes.push(Note::More { op, at, left: left - 1 });
                    }
                    return Some((op + 1, at));
                }
                undo => self.undo(undo),
            }
        }
        None
    }

    fn undo(&mut self, note: Note) {
        match note {
            Note::Mark { index, was } => _ = self.marks.get_mut(index).map(|mark| *mark = was),
            Note::Turns { register, was } => _ = self.registers.get_mut(register).map(|turns| *turns = was),
            Note::Way { .. } | Note::Less { .. } | Note::More { .. } => {}
        }
    }

    /// Removes the alternatives since a record, but keeps the undo records.
    fn settle(&mut self, base: usize) {
        let since = self.notes.split_off(base);
        self.notes.extend(since.into_iter().filter(|note| matches!(note, Note::Mark { .. } | Note::Turns { .. })));
    }

    fn note(&mut self, note: Note) -> Result<(), PatternError> {
        self.notes.push(note);
        if self.notes.len() > MOST_NOTES { Err(exhausted()) } else { Ok(()) }
    }

    fn turns(&self, register: usize) -> Turns {
        self.registers.get(register).copied().unwrap_or(Turns { count: 0, last: NONE })
    }

    fn set(&mut self, register: usize, turns: Turns) -> Result<(), PatternError> {
        let was = self.turns(register);
        if let Some(slot) = self.registers.get_mut(register) {
            *slot = turns;
        }
        self.note(Note::Turns { register, was })
    }

    fn turn(
        &mut self,
        register: usize,
        least: u32,
        most: u32,
        lazy: bool,
        op: usize,
        at: usize,
    ) -> Result<(usize, usize), PatternError> {
        let Turns { count, last } = self.turns(register);
        if count < least {
            self.set(register, Turns { count: count + 1, last })?;
            let Some(Op::Turn { target, .. }) = self.program.ops.get(op + 1) else { return Err(exhausted()) };
            return Ok((*target, at));
        }
        // An empty iteration is not repeated.
        let may_go_on = (count < most || most == u32::MAX) && last != at;
        let (turn, rest) = (op + 1, op + 2);
        if !may_go_on {
            return Ok((rest, at));
        }
        let (first, second) = if lazy { (rest, turn) } else { (turn, rest) };
        self.note(Note::Way { op: second, at })?;
        Ok((first, at))
    }

    fn many(
        &mut self,
        one: &One,
        least: u32,
        most: u32,
        mode: Mode,
        op: usize,
        at: usize,
    ) -> Result<Option<usize>, PatternError> {
        let wanted = if mode == Mode::Lazy { least } else { most };
        let (mut end, mut count, mut fewest) = (at, 0, at);
        while count < wanted {
            let Some(next) = self.one(one, end) else { break };
            end = next;
            count += 1;
            if count == least {
                fewest = end;
            }
        }
        let taken = usize::try_from(count / 8).unwrap_or(usize::MAX);
        *self.fuel = self.fuel.checked_sub(taken).ok_or_else(exhausted)?;
        if count < least {
            return Ok(None);
        }
        match mode {
            Mode::Greedy if end > fewest => self.note(Note::Less { op, least: fewest, at: end })?,
            Mode::Lazy if most > least => self.note(Note::More { op, at: end, left: most - least })?,
            _ => {}
        }
        Ok(Some(end))
    }

    /// Evaluates a lookaround; a negative one has no effects.
    fn look(&mut self, back: usize, negative: bool, op: usize, at: usize) -> Result<bool, PatternError> {
        let mut start = at;
        for _ in 0..back {
            match self.before(start) {
                Some(c) => start -= c.len_utf8(),
                None => return Ok(negative),
            }
        }
        let base = self.notes.len();
        let found = self.enclosed(op + 1, start, None)?.is_some();
        if found && !negative {
            self.settle(base);
        } else {
            while self.notes.len() > base {
                if let Some(note) = self.notes.pop() {
                    self.undo(note);
                }
            }
        }
        Ok(found != negative)
    }

    fn one(&self, one: &One, at: usize) -> Option<usize> {
        let c = self.at(at)?;
        one.takes(c).then_some(at + c.len_utf8())
    }

    fn group(&self, group: usize) -> Option<&'r str> {
        let (start, end) = (self.marks.get(2 * group)?, self.marks.get(2 * group + 1)?);
        self.text.get(*start..*end)
    }

    fn reference(&mut self, group: usize, fold: Fold, at: usize) -> Result<Option<usize>, PatternError> {
        let Some(known) = self.group(group) else { return Ok(None) };
        *self.fuel = self.fuel.checked_sub(known.len() / 8).ok_or_else(exhausted)?;
        let rest = self.text.get(at..).unwrap_or_default();
        if fold == Fold::No {
            return Ok(rest.starts_with(known).then_some(at + known.len()));
        }
        let mut end = at;
        let mut chars = rest.chars();
        for wanted in known.chars() {
            match chars.next() {
                Some(c) if lower(c, fold) == lower(wanted, fold) => end += c.len_utf8(),
                _ => return Ok(None),
            }
        }
        Ok(Some(end))
    }

    fn at(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(at..)?.chars().next(),
        }
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at)?.chars().next_back()
    }

    fn holds(&self, place: AnchorKind, at: usize) -> bool {
        let (len, before, next) = (self.text.len(), self.before(at), self.at(at));
        match place {
            AnchorKind::Start => at == 0,
            AnchorKind::End => at == len,
            AnchorKind::LineStart => before.is_none_or(|c| c == '\n'),
            AnchorKind::LineEnd => next.is_none_or(|c| c == '\n'),
            AnchorKind::LastLineEnd => at == len || (next == Some('\n') && at + 1 == len),
            // Neither matches in an empty text.
            AnchorKind::Boundary { .. } if len == 0 => false,
            AnchorKind::Boundary { ascii, negated } => {
                let word = Category { kind: Kind::Word, ascii, negated: false };
                let is_word = |c: Option<char>| c.is_some_and(|c| word.contains(c));
                (is_word(before) != is_word(next)) != negated
            }
        }
    }
}

/// The lower case of a character.
fn lower(c: char, fold: Fold) -> char {
    if fold == Fold::Ascii { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

fn exhausted() -> PatternError {
    PatternError("the search takes too many steps".to_owned())
}
