//! A compact position in a text, a third of the size of libyaml's: a tree contains several for every node.

use kiln_value::Position;

/// Line and column in characters, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl From<libyaml_safer::Mark> for Mark {
    fn from(mark: libyaml_safer::Mark) -> Self {
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: short(mark.line), column: short(mark.column) }
    }
}

/// Conversion to positions that count from 1.
impl From<Mark> for Position {
    fn from(mark: Mark) -> Self {
        Self { line: mark.line.saturating_add(1), column: mark.column.saturating_add(1) }
    }
}
