//! The syntax tree of a pattern.

use std::sync::Arc;

use super::set::{Fold, Set};

#[derive(Debug)]
pub(super) enum Node {
    Char(char),
    Set(Arc<Set>),
    AnchorKind(AnchorKind),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// A capturing group, by number.
    Group(usize, Box<Node>),
    Repeat {
        node: Box<Node>,
        least: u32,
        most: Option<u32>,
        mode: Mode,
    },
    Look {
        node: Box<Node>,
        behind: Option<Width>,
        negative: bool,
    },
    /// An atomic group.
    Atomic(Box<Node>),
    /// A backreference.
    Reference(usize, Fold),
    /// A conditional on a captured group.
    Condition(usize, Box<Node>, Box<Node>),
}

/// A condition on a position in the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnchorKind {
    Start,
    End,
    LineStart,
    LineEnd,
    /// The end, or before a line break at the end.
    LastLineEnd,
    Boundary {
        ascii: bool,
        negated: bool,
    },
}

/// The kind of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Greedy,
    Lazy,
    Possessive,
}

/// The minimum and maximum length of a node; saturating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Width {
    pub least: u64,
    pub most: u64,
}

impl Width {
    pub(super) const ONE: Self = Self { least: 1, most: 1 };

    pub(super) fn then(self, next: Self) -> Self {
        Self { least: self.least.saturating_add(next.least), most: self.most.saturating_add(next.most) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    pub(super) fn times(self, least: u32, most: Option<u32>) -> Self {
        let most = match most {
            Some(most) => self.most.saturating_mul(u64::from(most)),
            None if self.most == 0 => 0,
            None => u64::MAX,
        };
        Self { least: self.least.saturating_mul(u64::from(least)), most }
    }
}

/// A node with its width.
#[derive(Debug)]
pub(super) struct Sized {
    pub node: Node,
    pub width: Width,
}

impl Sized {
    pub(super) fn new(node: Node, width: Width) -> Self {
        Self { node, width }
    }
}
