//! Folding ranges: blocks, multi-line strings and comments.

use kiln_value::{Path, Value};

use crate::Page;
use crate::walk::visit;

/// A range of lines that can be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fold {
    /// The first line, which remains visible.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// Whether they are comments.
    pub is_comment: bool,
}

/// All folding ranges, in the order of the text.
pub fn folds(page: &Page) -> Vec<Fold> {
    let lines: Vec<&str> = page.text.lines().collect();
    let line = |number: u32| usize::try_from(number).ok().and_then(|n| lines.get(n.checked_sub(1)?)).map(|l| l.trim());
    let mut found = Vec::new();
    visit(page.value(), &Path::root(), &mut |value, path| {
        if path.is_root() || !matches!(value, Value::Map(_) | Value::List(_) | Value::Str(_)) {
            return;
        }
        let (head, whole) = (page.span(path), page.value_span(path));
        // The end of a block is at the start of the next token.
        let before_end = page.lines().line(&page.text, whole.end.line).chars();
        let width = usize::try_from(whole.end.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let mut last = whole.end.line - u32::from(before_end.take(width).all(char::is_whitespace));
        while last > head.start.line && line(last).is_none_or(|text| text.is_empty() || text.starts_with('#')) {
            last -= 1;
        }
        if last > head.start.line {
            found.push(Fold { first: head.start.line, last, is_comment: false });
        }
    });
    found.extend(comments(&lines));
    found.sort();
    // An item and its first entry begin on the same line: only the larger range is returned.
    found.reverse();
    found.dedup_by_key(|fold| fold.first);
    found.reverse();
    found
}

/// Runs of comment lines.
fn comments(lines: &[&str]) -> Vec<Fold> {
    let mut found = Vec::new();
    let mut first = None;
    for (number, line) in (1_u32..).zip(lines.iter().copied().chain([""])) {
        match (line.trim_start().starts_with('#'), first) {
            (true, None) => first = Some(number),
            (false, Some(start)) => {
                if number - 1 > start {
                    found.push(Fold { first: start, last: number - 1, is_comment: true });
                }
                first = None;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_strings_and_comments_are_folded() {
        let page = Page::read(
            "# a
# b
heat_template_version: 2021-04-16
resources:
  # one
  a:
    type: OS::Heat::Value
    properties:
      value:
        - x: 1
          y: 2
        - [1,
           2]

  b: {type: OS::Heat::Value, properties: {value: 1}}
description: |
  one

  two
outputs:
  o:
    value: {get_resource: a}
",
        )
        .unwrap();
        let found: Vec<(u32, u32, bool)> =
            folds(&page).into_iter().map(|fold| (fold.first, fold.last, fold.is_comment)).collect();
        let expected = [
            (1, 2, true),
            (4, 15, false),
            (6, 13, false),
            (8, 13, false),
            (9, 13, false),
            (10, 11, false),
            (12, 13, false),
            (16, 19, false),
            (20, 22, false),
            (21, 22, false),
        ];
        assert_eq!(found, expected);
    }
}
