//! Converts positions in a text to byte offsets and back.

use std::ops::Range;

use kiln_value::{Position, Span};

/// The offsets of the lines of a text. As in editors, only line feeds end a line.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    starts: Vec<usize>,
    /// Whether every character is one byte, so that characters of long lines need not be counted.
    is_ascii: bool,
}

impl Lines {
    /// The lines of a text.
    pub fn new(text: &str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_breaks).collect(), is_ascii: text.is_ascii() }
    }

    /// The number of lines; a text that ends in a line feed has an empty last line.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// A line, counted from 1, without its line feed.
    pub fn line<'t>(&self, text: &'t str, line: u32) -> &'t str {
        let index = usize::try_from(line).unwrap_or(usize::MAX).wrapping_sub(1);
        let Some(start) = self.starts.get(index) else { return "" };
        let end = self.starts.get(index + 1).map_or(text.len(), |next| next - 1);
        text.get(*start..end).unwrap_or_default()
    }

    /// The byte offset of a position; after the end of a line, that of its last byte. `None` below the last line.
    pub fn offset(&self, text: &str, at: Position) -> Option<usize> {
        let start = self.starts.get(usize::try_from(at.line.checked_sub(1)?).ok()?)?;
        let characters = usize::try_from(at.column.checked_sub(1)?).ok()?;
        let line = self.line(text, at.line);
        if self.is_ascii {
            return Some(start + characters.min(line.len()));
        }
        let within: usize = line.chars().take(characters).map(char::len_utf8).sum();
        Some(start + within)
    }

    /// The byte range of a span.
    pub fn range(&self, text: &str, span: Span) -> Option<Range<usize>> {
        let (start, end) = (self.offset(text, span.start)?, self.offset(text, span.end)?);
        (start <= end).then_some(start..end)
    }

    /// The position of a byte offset.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(index).copied().unwrap_or_default();
        let before = text.get(start..offset).unwrap_or_default();
        let column = if self.is_ascii { before.len() } else { before.chars().count() };
        Position { line: number(index + 1), column: number(column + 1) }
    }

    /// Converts a position for the Language Server Protocol: lines and UTF-16 units from 0.
    pub fn to_utf16(&self, text: &str, at: Position) -> (u32, u32) {
        let before = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let line = self.line(text, at.line);
        if self.is_ascii {
            return (at.line.saturating_sub(1), number(before.min(line.len())));
        }
        let units: usize = line.chars().take(before).map(char::len_utf16).sum();
        (at.line.saturating_sub(1), number(units))
    }

    /// Converts a position from the Language Server Protocol.
    pub fn of_utf16(&self, text: &str, line: u32, character: u32) -> Position {
        let mut units = usize::try_from(character).unwrap_or(usize::MAX);
        let line = line.saturating_add(1);
        let inside = |c: &char| match units.checked_sub(c.len_utf16()) {
            Some(left) => {
                units = left;
                true
            }
            None => false,
        };
        // In editors a carriage return is not part of its line.
        let column = self.line(text, line).trim_end_matches('\r').chars().take_while(inside).count();
        Position { line, column: number(column + 1) }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_offsets_agree() {
        let text = "aü\n😀b\n";
        let lines = Lines::new(text);
        assert_eq!(lines.count(), 3);
        let at = Position { line: 2, column: 2 };
        assert_eq!(lines.offset(text, at), Some(8));
        assert_eq!(lines.position(text, 8), at);
        assert_eq!(lines.to_utf16(text, at), (1, 2));
        assert_eq!(lines.of_utf16(text, 1, 2), at);
        assert_eq!(lines.of_utf16(text, 1, 99), Position { line: 2, column: 3 });
        assert_eq!(lines.offset(text, Position { line: 9, column: 1 }), None);
        assert_eq!(Lines::new("a\r\n").of_utf16("a\r\n", 0, 9), Position { line: 1, column: 2 });
    }
}
