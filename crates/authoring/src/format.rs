//! The formatter: two spaces per level, one space after colons and dashes, one empty line between sections.
//!
//! It changes only spaces and empty lines (and adds a space after `#`), and moves the sections into their usual order.
//! It checks that the value of the text does not change. Flow collections and multi-line strings are moved as a whole.

use std::collections::{BTreeMap, BTreeSet};

use kiln_value::{Span, Spans, Value, text};

use crate::lines::Lines;
use crate::order::ordered;

/// The reason why a text cannot be formatted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It is not valid YAML.
    #[error("{0}")]
    Syntax(String),
    /// It is JSON, which is not formatted.
    #[error("this is JSON; only YAML is formatted")]
    Json,
}

/// The layout of these lines is not understood well enough to change it.
struct Unclear(Vec<u32>);

/// Formats the text of a template or an environment. Line breaks are kept, and so is the layout of entries that cannot
/// be changed safely.
///
/// # Errors
/// See [`FormatError`]; the text should then not be changed.
pub fn format(text: &str) -> Result<String, FormatError> {
    let document = kiln_yaml::parse(text).map_err(|error| FormatError::Syntax(error.to_string()))?;
    if text.trim_start().starts_with(['{', '[']) && kiln_yaml::json::parse_with_spans(text).is_ok() {
        return Err(FormatError::Json);
    }
    let mut formatted = laid_out(text, &document.value, &document.spans).unwrap_or_else(|| text.to_owned());
    if let Some(sorted) = ordered(&formatted) {
        formatted = sorted;
    }
    if text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r')) {
        let with_returns = formatted.replace("\r\n", "\n").replace('\n', "\r\n");
        return Ok(if has_value(&with_returns, &document.value) { with_returns } else { text.to_owned() });
    }
    Ok(formatted)
}

/// The text with normalized spaces and empty lines; `None` if nothing can be changed safely.
fn laid_out(text: &str, value: &Value, spans: &Spans) -> Option<String> {
    let sections = top_level(value, spans);
    let mut kept = BTreeSet::new();
    let clear = loop {
        match attempt(text, value, spans, &kept) {
            Ok(formatted) => break formatted,
            // Keep the innermost entry around it, then the next one.
            Err(Unclear(lines)) => {
                let before = kept.clone();
                for line in lines {
                    let around = entries_around(value, spans, line);
                    kept.insert(around.into_iter().rev().find(|key| !before.contains(key))?);
                }
            }
        }
    };
    if has_value(&clear, value) {
        return Some(clear);
    }
    // Keep a section whose value would change.
    for own in &sections {
        let others = sections.iter().copied().filter(|other| other != own).chain(kept.iter().copied()).collect();
        let alone = attempt(text, value, spans, &others).ok();
        if !alone.is_some_and(|formatted| has_value(&formatted, value)) {
            kept.insert(*own);
        }
    }
    attempt(text, value, spans, &kept).ok().filter(|formatted| has_value(formatted, value))
}

/// Formats everything except the entries with keys in the lines `kept`.
fn attempt(text: &str, value: &Value, spans: &Spans, kept: &BTreeSet<u32>) -> Result<String, Unclear> {
    let mut layout = Layout {
        text,
        lines: Lines::new(text),
        kept,
        starts: BTreeMap::new(),
        owned: BTreeMap::new(),
        ends: BTreeMap::new(),
        gaps: BTreeMap::new(),
        unclear: Vec::new(),
    };
    if !layout.is_block(value, spans) && matches!(value, Value::Map(_) | Value::List(_)) {
        return Err(Unclear(vec![1]));
    }
    layout.node(value, spans, 0);
    if !layout.unclear.is_empty() {
        return Err(Unclear(layout.unclear));
    }
    let mut formatted = layout.written(&top_level(value, spans));
    if !text.ends_with('\n') && !has_value(&formatted, value) {
        // A string at the very end may have no line feed.
        formatted.truncate(formatted.trim_end_matches('\n').len());
    }
    Ok(formatted)
}

/// The lines of the keys of all entries that contain a line, outermost first.
fn entries_around(value: &Value, spans: &Spans, line: u32) -> Vec<u32> {
    let (mut around, mut value, mut spans) = (Vec::new(), value, spans);
    loop {
        let children: Vec<&Value> = match value {
            Value::Map(map) => map.values().collect(),
            Value::List(list) => list.iter().collect(),
            _ => return around,
        };
        let begins = |child: &Spans| child.key.unwrap_or(child.value).start.line <= line;
        let holds = |child: &Spans| begins(child) && line <= child.value.end.line;
        let inner = children.into_iter().zip(&spans.children).rfind(|(_, child)| holds(child));
        let Some((inside, child)) = inner else { return around };
        around.extend(child.key.map(|key| key.start.line));
        (value, spans) = (inside, child);
    }
}

/// Whether a text has this value, including the types of its numbers.
fn has_value(formatted: &str, value: &Value) -> bool {
    kiln_yaml::parse(formatted).is_ok_and(|document| text::repr(&document.value) == text::repr(value))
}

/// The lines of the names of the sections.
fn top_level(value: &Value, spans: &Spans) -> Vec<u32> {
    match value {
        Value::Map(_) => spans.children.iter().filter_map(|child| Some(child.key?.start.line)).collect(),
        _ => Vec::new(),
    }
}

struct Layout<'t> {
    text: &'t str,
    lines: Lines,
    /// The lines of keys whose values are not changed.
    kept: &'t BTreeSet<u32>,
    /// The new indentation of lines that begin with a key or an item.
    starts: BTreeMap<u32, usize>,
    /// Lines that move with the key they belong to, with the distance.
    owned: BTreeMap<u32, i64>,
    /// After the last key or value in a line, where a comment may follow.
    ends: BTreeMap<u32, u32>,
    /// Parts of lines that are replaced: `:  ` becomes one colon and one space.
    gaps: BTreeMap<u32, Vec<(Span, &'static str)>>,
    unclear: Vec<u32>,
}

impl Layout<'_> {
    fn node(&mut self, value: &Value, spans: &Spans, column: usize) {
        match value {
            Value::Map(map) => {
                for (value, child) in map.values().zip(&spans.children) {
                    // Keys from a merge are elsewhere.
                    if let Some(key) = child.key.filter(|key| is_in(*key, spans.value)) {
                        self.entry(value, child, key, column);
                    }
                }
            }
            Value::List(list) => {
                for (value, child) in list.iter().zip(&spans.children) {
                    self.item(value, child, column);
                }
            }
            _ => {}
        }
    }

    fn entry(&mut self, value: &Value, child: &Spans, key: Span, column: usize) {
        if self.before(key).trim().is_empty() {
            self.starts.insert(key.start.line, column);
        }
        self.end(key);
        self.end(child.value);
        let gap = Span { start: key.end, end: child.value.start };
        let between = self.slice(gap);
        if gap.start.line == gap.end.line
            && child.value.start < child.value.end
            && between.trim() == ":"
            && between.ends_with(' ')
        {
            self.gap(gap, ": ");
        }
        let old = usize::try_from(key.start.column).unwrap_or(usize::MAX).saturating_sub(1);
        if self.kept.contains(&key.start.line) {
            self.own(key.start.line, child.value, difference(column, old));
            return;
        }
        self.inside(key.start.line, value, child, column, old);
    }

    fn item(&mut self, value: &Value, child: &Spans, column: usize) {
        self.end(child.value);
        let before = self.before(child.value);
        if before.trim().is_empty() {
            return self.item_below(value, child, column);
        }
        let Some(head) = before.trim_end().strip_suffix('-') else {
            return self.unclear.push(child.value.start.line);
        };
        let old = head.chars().count();
        if head.trim().is_empty() {
            self.starts.insert(child.value.start.line, column);
        }
        if child.value.start < child.value.end {
            let dash = u32::try_from(old + 1).unwrap_or(u32::MAX);
            let start = kiln_value::Position { line: child.value.start.line, column: dash };
            self.gap(Span { start, end: child.value.start }, "- ");
        }
        self.inside(child.value.start.line, value, child, column, old);
    }

    /// The content after a key or a dash that moves from one column to another.
    fn inside(&mut self, line: u32, value: &Value, child: &Spans, column: usize, old: usize) {
        if self.is_block(value, child) {
            return self.node(value, child, column + 2);
        }
        self.own(line, child.value, difference(column, old));
    }

    /// An item that begins on a line below its dash.
    fn item_below(&mut self, value: &Value, child: &Spans, column: usize) {
        let line = child.value.start.line;
        let above = (1..line).rev().find(|above| !self.lines.line(self.text, *above).trim().is_empty());
        let dash = above.filter(|above| self.lines.line(self.text, *above).trim() == "-");
        match dash {
            Some(dash) if self.is_block(value, child) => {
                self.starts.insert(dash, column);
                self.node(value, child, column + 2);
            }
            _ => self.unclear.push(line),
        }
    }

    /// Whether the parts of a value are on their own lines, and do not belong to an alias.
    fn is_block(&self, value: &Value, spans: &Spans) -> bool {
        let is_collection = matches!(value, Value::Map(_) | Value::List(_)) && !spans.children.is_empty();
        let first = self.slice(spans.value).chars().next();
        is_collection && !first.is_some_and(|c| matches!(c, '{' | '[' | '*' | '&' | '!'))
    }

    fn end(&mut self, part: Span) {
        if part.start.line == part.end.line {
            let end = self.ends.entry(part.end.line).or_default();
            *end = part.end.column.max(*end);
        }
    }

    /// The column of the comment at the end of a line, from 0.
    fn comment_column(&self, line: u32, old: &str) -> Option<usize> {
        let end = usize::try_from(*self.ends.get(&line)?).unwrap_or(usize::MAX).saturating_sub(1);
        let behind = old.chars().skip(end);
        let blanks = behind.clone().take_while(|c| matches!(c, ':' | ' ')).count();
        (blanks > 0 && behind.clone().nth(blanks) == Some('#')).then_some(end + blanks)
    }

    fn gap(&mut self, span: Span, text: &'static str) {
        self.gaps.entry(span.start.line).or_default().push((span, text));
    }

    /// The lines below `line` that belong to a string or a flow collection.
    fn own(&mut self, line: u32, span: Span, by: i64) {
        let mut last = if span.end.column > 1 { span.end.line } else { span.end.line.saturating_sub(1) };
        // Empty lines at the end of a string are part of it only with `|+`.
        if !self.slice(span).lines().next().is_some_and(|head| head.contains('+')) {
            while last > line && self.lines.line(self.text, last).trim().is_empty() {
                last -= 1;
            }
        }
        for line in line + 1..=last {
            self.owned.insert(line, by);
        }
    }

    fn before(&self, span: Span) -> String {
        let characters = usize::try_from(span.start.column).unwrap_or(usize::MAX).saturating_sub(1);
        self.lines.line(self.text, span.start.line).chars().take(characters).collect()
    }

    fn slice(&self, span: Span) -> &str {
        self.lines.range(self.text, span).and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// The formatted text.
    fn written(&self, sections: &[u32]) -> String {
        let count = u32::try_from(self.lines.count()).unwrap_or(u32::MAX);
        let mut out: Vec<String> = Vec::new();
        for line in 1..=count {
            let old = self.lines.line(self.text, line).trim_end_matches('\r');
            if let Some(by) = self.owned.get(&line) {
                out.push(moved(old, *by));
                continue;
            }
            let line_text = self.with_gaps(line, old);
            let content = line_text.trim();
            if content.is_empty() {
                // At most one empty line, and none at the beginning.
                if out.last().is_some_and(|last| !last.is_empty()) {
                    out.push(String::new());
                }
                continue;
            }
            if sections.iter().skip(1).any(|section| *section == line) {
                space_out(&mut out);
            }
            let indented = format!("{}{}", " ".repeat(self.indent(line, old)), commented(content));
            out.push(match self.comment_column(line, old) {
                Some(column) => with_comment_at(&indented, old.trim_end().chars().count() - column, column),
                None => indented,
            });
        }
        while out.last().is_some_and(String::is_empty) {
            out.pop();
        }
        let mut formatted = out.join("\n");
        if !formatted.is_empty() {
            formatted.push('\n');
        }
        formatted
    }

    /// A line with one space after its colons and dashes.
    fn with_gaps(&self, line: u32, old: &str) -> String {
        let mut gaps: Vec<_> = self.gaps.get(&line).into_iter().flatten().collect();
        gaps.sort_by_key(|(span, _)| span.start);
        let column = |n: u32| usize::try_from(n).unwrap_or(usize::MAX).saturating_sub(1);
        let mut new = String::with_capacity(old.len());
        let mut at = 0;
        let characters: Vec<char> = old.chars().collect();
        for (span, text) in gaps {
            new.extend(characters.get(at..column(span.start.column)).unwrap_or_default());
            new.push_str(text);
            at = column(span.end.column);
        }
        new.extend(characters.get(at..).unwrap_or_default());
        new
    }

    /// The indentation of a line.
    fn indent(&self, line: u32, old: &str) -> usize {
        if let Some(column) = self.starts.get(&line) {
            return *column;
        }
        let blanks = |line: u32| {
            let text = self.lines.line(self.text, line);
            text.len() - text.trim_start().len()
        };
        let own = old.len() - old.trim_start().len();
        let next = self.starts.range(line..).next();
        let before = || self.starts.range(..line).rev();
        if old.trim_start().starts_with('#') {
            // A comment belongs to the entry after it, or else to an entry before it with the same indentation.
            if let Some((_, column)) = next.filter(|(line, _)| blanks(**line) == own) {
                return *column;
            }
            if let Some((_, column)) = before().find(|(line, _)| blanks(**line) == own) {
                return *column;
            }
            return next.map_or(own, |(_, column)| *column);
        }
        if own == 0 {
            return 0;
        }
        match before().next() {
            Some((line, column)) => shifted(own, difference(*column, blanks(*line))),
            None => own,
        }
    }
}

fn is_in(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn difference(new: usize, old: usize) -> i64 {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    number(new) - number(old)
}

fn shifted(indent: usize, by: i64) -> usize {
    let indent = i64::try_from(indent).unwrap_or(i64::MAX);
    usize::try_from(indent.saturating_add(by)).unwrap_or(0)
}

/// A line shifted by a distance, as far as its indentation allows.
fn moved(line: &str, by: i64) -> String {
    if line.trim().is_empty() && by <= 0 {
        let keep = shifted(line.len(), by);
        return line.get(..keep.min(line.len())).unwrap_or_default().to_owned();
    }
    if line.is_empty() {
        return String::new();
    }
    let content = line.trim_start_matches(' ');
    format!("{}{content}", " ".repeat(shifted(line.len() - content.len(), by)))
}

/// A line whose last characters are a comment, which begins at a column again if what is before it leaves room.
fn with_comment_at(line: &str, length: usize, column: usize) -> String {
    let characters: Vec<char> = line.chars().collect();
    let (before, comment) = characters.split_at(characters.len().saturating_sub(length));
    let (before, comment): (String, String) = (before.iter().collect(), comment.iter().collect());
    let before = before.trim_end();
    let blanks = column.saturating_sub(before.chars().count()).max(1);
    format!("{before}{}{comment}", " ".repeat(blanks))
}

/// Adds a space after the `#` of a comment.
fn commented(content: &str) -> String {
    match content.strip_prefix('#') {
        Some(rest) if rest.starts_with(char::is_alphanumeric) => format!("# {rest}"),
        _ => content.to_owned(),
    }
}

/// Inserts an empty line before a section and the comment directly above it.
fn space_out(out: &mut Vec<String>) {
    let comments = out.iter().rev().take_while(|line| line.starts_with('#')).count();
    let at = out.len() - comments;
    if at > 0 && out.get(at - 1).is_some_and(|line| !line.is_empty() && line != "---") {
        out.insert(at, String::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_normalized_and_comments_are_kept() {
        let text = "#head
heat_template_version:   2018-08-31
description: >
    folded
      text


#about resources
resources:
    a:   # trailing
        type:    OS::Heat::None
        # inside
        properties:
            list:
            -   x: 1
                y: |
                    kept
                      as it is
            -   - p
                -   q
            # last
            flow: {a:  1,
              b: 2}
outputs:
  o:
    value:  'x   y'";
        let expected = "# head
heat_template_version: 2018-08-31

description: >
    folded
      text

# about resources
resources:
  a:     # trailing
    type: OS::Heat::None
    # inside
    properties:
      list:
        - x: 1
          y: |
              kept
                as it is
        - - p
          - q
      # last
      flow: {a:  1,
        b: 2}

outputs:
  o:
    value: 'x   y'
";
        let formatted = format(text).unwrap();
        assert_eq!(formatted, expected);
        assert_eq!(format(&formatted).unwrap(), formatted);
    }

    #[test]
    fn comments_behind_values_stay_in_their_column() {
        let text = "a:\n    type:    string   # one\n    default: \"x # y\"   # two\n    list: [1, 2] # three\n    \
                    long_name: abc # four\n";
        let expected = "a:\n  type: string        # one\n  default: \"x # y\"     # two\n  list: [1, 2]   # three\n  \
                        long_name: abc   # four\n";
        assert_eq!(format(text).unwrap(), expected);
        assert_eq!(format(expected).unwrap(), expected);
    }

    #[test]
    fn json_and_invalid_texts_are_refused() {
        assert_eq!(format("{\"a\": 1}"), Err(FormatError::Json));
        assert!(matches!(format("a: [1"), Err(FormatError::Syntax(_))));
    }

    #[test]
    fn line_breaks_are_kept() {
        assert_eq!(format("a:   1\r\nb: |\r\n  x\r\n  y\r\n").unwrap(), "a: 1\r\n\r\nb: |\r\n  x\r\n  y\r\n");
        assert_eq!(format("a:   1\nb: 2\r\n").unwrap(), "a: 1\n\nb: 2\n");
    }

    #[test]
    fn an_entry_with_an_unusual_layout_is_kept_and_the_others_are_formatted() {
        for (odd, kept) in [
            ("list:\n        - # why\n          text\n", "  list:\n      - # why\n        text\n"),
            ("list:\n        -\n          text\n", "  list:\n      -\n        text\n"),
            ("list:\n        - !!str 1\n        - &a\n          x: 1\n", "- &a\n"),
            ("? a b\n    : x\n", "? a b\n"),
        ] {
            let text = format!("first:   1\nmap:\n    {odd}\nlast:\n        x:    2\n");
            let formatted = format(&text).unwrap();
            assert!(formatted.starts_with("first: 1\n") && formatted.ends_with("last:\n  x: 2\n"), "{formatted}");
            assert!(formatted.contains(kept), "{formatted}");
            assert_eq!(format(&formatted).unwrap(), formatted);
        }
        assert_eq!(format("{a: 1,\n  b: 2}\n").unwrap(), "{a: 1,\n  b: 2}\n");
        assert_eq!(format("- - # x\n    a\n").unwrap(), "- - # x\n    a\n");
        let twice = "a:\n      - # x\n        b\n      - # y\n        c\nd:\n    e:   1\n";
        assert_eq!(format(twice).unwrap(), "a:\n      - # x\n        b\n      - # y\n        c\n\nd:\n  e: 1\n");
    }
}
