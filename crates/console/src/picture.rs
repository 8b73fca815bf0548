//! Shows a message at its place in a text, as compilers do.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use kiln_authoring::lines::Lines;
use kiln_value::Span;

/// Longer lines are shortened.
const LONGEST: usize = 400;
/// The number of bytes of a shortened line before and after the position.
const AROUND: usize = 80;

/// A text with its name.
pub struct Source<'t> {
    name: &'t str,
    text: &'t str,
    lines: Lines,
}

impl<'t> Source<'t> {
    /// A text with the name that is shown.
    pub fn new(name: &'t str, text: &'t str) -> Self {
        Self { name, text, lines: Lines::new(text) }
    }

    /// A message with the lines of its place, and hints below. `id` is the name of a rule.
    pub fn picture(&self, level: Level<'_>, id: Option<&str>, message: &str, at: Span, hints: &[String]) -> String {
        let mut title = level.primary_title(message);
        if let Some(id) = id {
            title = title.id(id);
        }
        let range = self.lines.range(self.text, at).unwrap_or_default();
        let Excerpt { text, range, is_cut } = excerpt(self.text, range);
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let (line, column) = (number(at.start.line), number(at.start.column));
        let snippet = Snippet::source(text).line_start(line).annotation(AnnotationKind::Primary.span(range));
        let mut group = Group::with_title(title);
        if is_cut {
            group = group.element(Origin::path(self.name).line(line).char_column(column)).element(snippet);
        } else {
            group = group.element(snippet.path(self.name));
        }
        for hint in hints {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        Renderer::styled().render(&[group])
    }
}

/// A part of a text around a position.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt<'t> {
    /// The complete lines, or a part of a very long line.
    text: &'t str,
    /// The position in `text`.
    range: Range<usize>,
    /// Whether `text` starts within a line, so that its columns have an offset.
    is_cut: bool,
}

/// The lines of a range. Renderers search a snippet from its start, so passing the whole text for each of many ranges
/// would take quadratic time.
fn excerpt(text: &str, range: Range<usize>) -> Excerpt<'_> {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let (before, behind) = (part(0..range.start), part(range.end..text.len()));
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = behind.find('\n').map_or(text.len(), |at| range.end + at);
    let own = |start: usize, end: usize, is_cut: bool| {
        let range = range.start - start..range.end.min(end) - start;
        Excerpt { text: part(start..end), range, is_cut }
    };
    if end - start <= LONGEST || part(start..end).contains('\n') {
        return own(start, end, false);
    }
    let mut from = range.start.saturating_sub(AROUND).max(start);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (range.start + 2 * AROUND).min(end);
    while !text.is_char_boundary(to) {
        to += 1;
    }
    own(from, to, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_with_its_lines() {
        let text = "a: 1\nbb: 2\nc: 3\n";
        assert_eq!(excerpt(text, 5..7), Excerpt { text: "bb: 2", range: 0..2, is_cut: false });
        assert_eq!(excerpt(text, 8..12), Excerpt { text: "bb: 2\nc: 3", range: 3..7, is_cut: false });
        assert_eq!(excerpt(text, 16..16), Excerpt { text: "", range: 0..0, is_cut: false });
    }

    #[test]
    fn a_very_long_line_is_cut() {
        let text = format!("{}place{}", "ä".repeat(500), "ü".repeat(500));
        let found = excerpt(&text, 1000..1005);
        assert_eq!(&found.text[found.range.clone()], "place");
        assert!(found.is_cut && found.text.len() < 300, "{found:?}");
        let whole = excerpt(&text, 0..text.len());
        assert!(whole.is_cut && whole.range.end == whole.text.len(), "{whole:?}");
    }
}
