//! Changes a text only where its value changes.

use std::ops::Range;

use kiln_value::{Path, Span, Spans, Value, text};

use crate::Page;
use crate::emit::{block, entry, flow, has_value};

/// Changes the value of a page: entries are changed, renamed or added, and the rest of the text stays. `None` if that cannot be
/// done in place.
pub fn patch(page: &Page, new: &Value) -> Option<String> {
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
            (Value::Map(before), Value::Map(after))
                if !before.is_empty()
                    && before.len() < after.len()
                    && before.keys().eq(after.keys().take(before.len())) =>
            {
                for (((key, old), new), child) in before.iter().zip(after.values()).zip(&spans.children) {
                    self.compare(old, new, child, &path.key(key.as_str()))?;
                }
                self.add(after.iter().skip(before.len()), before.values().last()?, spans)
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

    /// Adds entries to a map, after its last entry.
    fn add<'v>(
        &mut self,
        new: impl Iterator<Item = (&'v String, &'v Value)>,
        last: &Value,
        spans: &Spans,
    ) -> Option<()> {
        let is_block = !self.page.slice(spans.value).starts_with('{');
        let child = spans.children.last()?;
        let (range, _) = self.range(last, child)?;
        let column = usize::try_from(child.key?.start.column).ok()?.checked_sub(1)?;
        let written = |(key, value): (&'v String, &'v Value)| {
            if is_block {
                format!("\n{}{}", " ".repeat(column), entry(key, value, column))
            } else {
                format!(", {}: {}", flow(&key.as_str().into()), flow(value))
            }
        };
        self.edits.push((range.end..range.end, new.map(written).collect::<Vec<_>>().concat()));
        Some(())
    }

    /// Where a value is written, without the comments after it, and whether it is a block of several lines.
    fn range(&self, old: &Value, spans: &Spans) -> Option<(Range<usize>, bool)> {
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
        Some((range, is_block))
    }

    fn replace(&mut self, old: &Value, new: &Value, spans: &Spans) -> Option<()> {
        let (mut range, is_block) = self.range(old, spans)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(text: &str, change: impl FnOnce(&mut Value)) -> String {
        let page = Page::read(text).expect("a template");
        let mut value = page.value().clone();
        change(&mut value);
        patch(&page, &value).expect("in place")
    }

    fn properties(value: &mut Value) -> &mut kiln_value::Map {
        let resources = value.as_map_mut().and_then(|sections| sections.get_mut("resources")?.as_map_mut());
        let resource = resources.and_then(|resources| resources.get_mut("a")?.as_map_mut()).expect("a resource");
        resource.entry("properties".to_owned()).or_insert_with(|| kiln_value::value!({})).as_map_mut().expect("a map")
    }

    const TEXT: &str = "heat_template_version: 2018-08-31
# the network
resources:
  a:  # first
    type: OS::Neutron::Net
    properties:
      name: 'old'   # its name
      tags: [x, y]
      # the end of a

  # the second one
  b: {type: OS::Neutron::Net, properties: {name: b}}
";

    #[test]
    fn only_the_changed_value_is_written_again() {
        let text = patched(TEXT, |value| _ = properties(value).insert("name".to_owned(), "new".into()));
        assert_eq!(text, TEXT.replace("'old' ", "new "));
    }

    #[test]
    fn entries_are_added_after_the_last_one() {
        let text = patched(TEXT, |value| _ = properties(value).insert("mtu".to_owned(), 1450.into()));
        assert_eq!(text, TEXT.replace("[x, y]\n", "[x, y]\n      mtu: 1450\n"));
        let short = "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::None}}\n";
        let text = patched(short, |value| _ = properties(value).insert("x".to_owned(), "1".into()));
        assert_eq!(text, short.replace("None}", "None, properties: {x: '1'}}"));
        let bare = "heat_template_version: 2018-08-31\nresources:\n  a:\n    type: OS::Heat::None\n# end\n";
        let text = patched(bare, |value| _ = properties(value).insert("x".to_owned(), "y".into()));
        assert_eq!(text, bare.replace("None\n", "None\n    properties: {x: y}\n"));
    }
}
