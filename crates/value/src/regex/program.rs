//! Compiles a tree to instructions for the [`super::machine`].

use std::sync::Arc;

use super::PatternError;
use super::node::{AnchorKind, Mode, Node};
use super::set::{Fold, Set};

/// An instruction. Targets are indexes of instructions.
#[derive(Debug)]
pub(super) enum Op {
    One(One),
    /// A repetition of a single character.
    Many {
        one: One,
        least: u32,
        most: u32,
        mode: Mode,
    },
    AnchorKind(AnchorKind),
    /// Continues with the next instruction, or at the target if that fails.
    Try(usize),
    Jump(usize),
    /// Records the position of a group start or end.
    Mark(usize),
    /// Initializes a loop counter and jumps to its `Loop`.
    Enter {
        register: usize,
        target: usize,
    },
    /// Decides whether to iterate. It is followed by the `Turn`, then by the rest.
    Loop {
        register: usize,
        least: u32,
        most: u32,
        lazy: bool,
    },
    /// Counts an iteration and jumps to the loop body.
    Turn {
        register: usize,
        target: usize,
    },
    /// Runs the following instructions up to their `Accept`, this number of characters back, and continues at the
    /// target.
    Look {
        back: usize,
        negative: bool,
        target: usize,
    },
    /// Runs the following instructions up to their `Accept` and removes their alternatives.
    Atomic(usize),
    Reference(usize, Fold),
    /// Jumps to the target if the group has not captured anything.
    Unless(usize, usize),
    Accept,
}

/// A condition on a single character.
#[derive(Clone, Debug)]
pub(super) enum One {
    Char(char),
    Set(Arc<Set>),
}

impl One {
    pub(super) fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Set(set) => set.contains(c),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub ops: Vec<Op>,
    pub registers: usize,
}

impl Program {
    /// Errors: a look-behind without a fixed width.
    pub(super) fn new(node: &Node) -> Result<Self, PatternError> {
        let mut program = Self::default();
        program.add(node)?;
        program.ops.push(Op::Accept);
        Ok(program)
    }

    /// The first character of every match, if known.
    pub(super) fn first(&self) -> Option<&One> {
        match self.ops.iter().find(|op| !matches!(op, Op::Mark(_))) {
            Some(Op::One(one)) => Some(one),
            Some(Op::Many { one, least, .. }) if *least > 0 => Some(one),
            _ => None,
        }
    }

    fn add(&mut self, node: &Node) -> Result<(), PatternError> {
        match node {
            Node::Char(_) | Node::Set(_) => self.ops.extend(one(node).map(Op::One)),
            Node::AnchorKind(place) => self.ops.push(Op::AnchorKind(*place)),
            Node::Sequence(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            Node::Choice(branches) => self.choice(branches)?,
            Node::Group(group, inside) => {
                self.ops.push(Op::Mark(2 * group));
                self.add(inside)?;
                self.ops.push(Op::Mark(2 * group + 1));
            }
            Node::Repeat { node, least, most, mode } => self.repeat(node, *least, most.unwrap_or(u32::MAX), *mode)?,
            Node::Look { node, behind, negative } => {
                let back = match behind {
                    Some(width) if width.least != width.most => {
                        return Err(PatternError("look-behind requires fixed-width pattern".to_owned()));
                    }
                    Some(width) => usize::try_from(width.least).unwrap_or(usize::MAX),
                    None => 0,
                };
                let negative = *negative;
                self.enclosed(|target| Op::Look { back, negative, target }, |program| program.add(node))?;
            }
            Node::Atomic(inside) => self.enclosed(Op::Atomic, |program| program.add(inside))?,
            Node::Reference(group, fold) => self.ops.push(Op::Reference(*group, *fold)),
            Node::Condition(group, yes, no) => {
                let unless = self.hole();
                self.add(yes)?;
                let jump = self.hole();
                self.fill(unless, Op::Unless(*group, self.ops.len()));
                self.add(no)?;
                self.fill(jump, Op::Jump(self.ops.len()));
            }
        }
        Ok(())
    }

    /// A placeholder for an instruction that is set later.
    fn hole(&mut self) -> usize {
        self.ops.push(Op::Accept);
        self.ops.len() - 1
    }

    fn fill(&mut self, hole: usize, op: Op) {
        if let Some(slot) = self.ops.get_mut(hole) {
            *slot = op;
        }
    }

    /// Instructions that are run separately, up to an `Accept`.
    fn enclosed(
        &mut self,
        op: impl FnOnce(usize) -> Op,
        inside: impl FnOnce(&mut Self) -> Result<(), PatternError>,
    ) -> Result<(), PatternError> {
        let hole = self.hole();
        inside(self)?;
        self.ops.push(Op::Accept);
        self.fill(hole, op(self.ops.len()));
        Ok(())
    }

    fn choice(&mut self, branches: &[Node]) -> Result<(), PatternError> {
        let mut ends = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                self.add(branch)?;
                continue;
            }
            let hole = self.hole();
            self.add(branch)?;
            ends.push(self.hole());
            self.fill(hole, Op::Try(self.ops.len()));
        }
        for end in ends {
            self.fill(end, Op::Jump(self.ops.len()));
        }
        Ok(())
    }

    fn repeat(&mut self, node: &Node, least: u32, most: u32, mode: Mode) -> Result<(), PatternError> {
        if let Some(one) = one(node) {
            self.ops.push(Op::Many { one, least, most, mode });
            return Ok(());
        }
        if mode == Mode::Possessive {
            // Each iteration is also atomic.
            return self.enclosed(Op::Atomic, |program| {
                program.turns(least, most, false, |program| program.enclosed(Op::Atomic, |program| program.add(node)))
            });
        }
        self.turns(least, most, mode == Mode::Lazy, |program| program.add(node))
    }

    fn turns(
        &mut self,
        least: u32,
        most: u32,
        lazy: bool,
        inside: impl FnOnce(&mut Self) -> Result<(), PatternError>,
    ) -> Result<(), PatternError> {
        let register = self.registers;
        self.registers += 1;
        let enter = self.hole();
        inside(self)?;
        self.fill(enter, Op::Enter { register, target: self.ops.len() });
        self.ops.push(Op::Loop { register, least, most, lazy });
        self.ops.push(Op::Turn { register, target: enter + 1 });
        Ok(())
    }
}

/// A node that always matches exactly one character.
fn one(node: &Node) -> Option<One> {
    match node {
        Node::Char(c) => Some(One::Char(*c)),
        Node::Set(set) => Some(One::Set(set.clone())),
        Node::Sequence(parts) => match &**parts {
            [only] => one(only),
            _ => None,
        },
        _ => None,
    }
}
