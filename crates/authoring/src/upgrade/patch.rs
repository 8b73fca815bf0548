//! Changes a text only where its value changes.

use std::ops::Range;

use kiln_value::{Path, Span, Spans, Value, text};

use super::emit::{block, flow, has_value};
use crate::Page;

/// Changes the value of a page; `None` if that cannot be done in place.
pub(super) fn patch(page: &Page, new: &Value) -> Option<String> {
    let mut patch = Patch { page, edits: Vec::new() };
    patch.compare(page.value(), new, &page.spans, &Path::root())?;
    let mut edits = patch.edits;
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(page.text.len());
    let mut at = 0;
    for (range, text) in edits {
        if range.start < at {
            return None;
        }
        out.push_str(page.text.get(at..range.start)?);
        out.push_str(&text);
        at = range.end;
    }
    out.push_str(page.text.get(at..)?);
    has_value(&out, new).then_some(out)
}

struct Patch<'p> {
    page: &'p Page,
    edits: Vec<(Range<usize>, String)>,
}

impl Patch<'_> {
    fn compare(&mut self, old: &Value, new: &Value, spans: &Spans, path: &Path) -> Option<()> {
        if text::repr(old) == text::repr(new) {
            return Some(());
        }
        match (old, new) {
            (Value::Map(before), Value::Map(after)) if before.len() == after.len() => {
                for (((key, old), (name, new)), child) in before.iter().zip(after).zip(&spans.children) {
                    if key != name {
                        self.rename(key, name, child.key?)?;
                    }
                    self.compare(old, new, child, &path.key(key.as_str()))?;
                }
                Some(())
            }
            (Value::List(before), Value::List(after)) if before.len() == after.len() => {
                for (index, ((old, new), child)) in before.iter().zip(after).zip(&spans.children).enumerate() {
                    self.compare(old, new, child, &path.index(index))?;
                }
                Some(())
            }
            _ if path.is_root() => None,
            _ => self.replace(old, new, spans),
        }
    }

    fn rename(&mut self, key: &str, name: &str, span: Span) -> Option<()> {
        let written = self.page.slice(span);
        if written.trim_matches(['"', '\'']) != key {
            return None;
        }
        self.edits.push((self.page.lines().range(&self.page.text, span)?, flow(&Value::from(name))));
        Some(())
    }

    fn replace(&mut self, old: &Value, new: &Value, spans: &Spans) -> Option<()> {
        let mut range = self.page.lines().range(&self.page.text, spans.value)?;
        let written = self.page.text.get(range.clone())?;
        let is_block = matches!(old, Value::Map(_) | Value::List(_)) && !written.starts_with(['{', '[']);
        let trimmed = written.trim_end();
        if is_block && trimmed.lines().last().is_some_and(|line| line.trim_start().starts_with('#')) {
            // The end of a block includes the comments after it.
            let kept: Vec<&str> = trimmed.lines().collect();
            let comments =
                kept.iter().rev().take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
            let count = comments.count();
            let body: usize = written.split_inclusive('\n').take(kept.len().saturating_sub(count)).map(str::len).sum();
            range.end = range.start + written.get(..body)?.trim_end().len();
        } else {
            range.end = range.start + trimmed.len();
        }
        let column = usize::try_from(spans.value.start.column).ok()?.checked_sub(1)?;
        let mut text = if is_block { block(new, column) } else { flow(new) };
        let before = self.page.text.get(..range.start)?.trim_end();
        if is_block && !matches!(new, Value::Map(_) | Value::List(_)) && before.ends_with(':') {
            // A new scalar is on the line of its key.
            range.start = before.len();
            text.insert(0, ' ');
        }
        self.edits.push((range, text));
        Some(())
    }
}
