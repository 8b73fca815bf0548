//! Positions of the parts of a value in its text.

use crate::{Path, Segment, Value};

/// A position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A range of a text; the end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first character.
    pub start: Position,
    /// After the last character.
    pub end: Position,
}

/// The spans of a [`Value`], as a tree of the same shape: the children of a map or list are in its order.
///
/// Values contain no positions; only error reporting uses this tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The key, if this is an entry of a map.
    pub key: Option<Span>,
    /// The value.
    pub value: Span,
    /// The entries or items.
    pub children: Vec<Spans>,
}

impl Spans {
    /// The spans of the longest existing prefix of `path` in `value`, which these spans belong to.
    pub fn find(&self, value: &Value, path: &Path) -> &Self {
        let (mut spans, mut value) = (self, value);
        for segment in &path.0 {
            let step = match (segment, value) {
                (Segment::Key(key), Value::Map(map)) => map.get_full(key).map(|(i, _, v)| (i, v)),
                (Segment::Index(i), Value::List(list)) => list.get(*i).map(|v| (*i, v)),
                _ => None,
            };
            match step.and_then(|(i, v)| Some((spans.children.get(i)?, v))) {
                Some((s, v)) => (spans, value) = (s, v),
                None => break,
            }
        }
        spans
    }
}
