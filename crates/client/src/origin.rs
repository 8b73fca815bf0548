//! The origin of a template, to show errors in its source.

use kiln_value::{Path, Span, Spans, Value};

/// The text of a template and the positions of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its URL.
    pub url: String,
    /// Its original text.
    pub text: String,
    pub(crate) spans: Spans,
}

impl Origin {
    /// The origin of a template that was made from this text; `spans` has the shape of the template.
    pub fn of_made(url: String, text: String, spans: Spans) -> Self {
        Self { url, text, spans }
    }

    /// The byte range of the part of `template` at `path`: the key of an entry, else the value. If the end of the path
    /// does not exist, the existing part of it is used.
    pub fn find(&self, template: &Value, path: &str) -> Option<std::ops::Range<usize>> {
        let path = read(template, path);
        if path.is_root() {
            return None;
        }
        let spans = self.spans.find(template, &path);
        let Span { start, end } = spans.key.unwrap_or(spans.value);
        Some(self.offset(start.line, start.column)?..self.offset(end.line, end.column)?)
    }

    /// The byte offset of a position that starts at 1, with columns in characters.
    fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let before: usize = self.text.split_inclusive('\n').take(index).map(str::len).sum();
        let rest = self.text.get(before..)?;
        let within: usize = rest.chars().take(usize::try_from(column.checked_sub(1)?).ok()?).map(char::len_utf8).sum();
        Some(before + within)
    }
}

/// Parses a path such as `resources.server.properties.networks[0]` for a value: names may contain dots.
fn read(value: &Value, text: &str) -> Path {
    let (mut path, mut value, mut rest) = (Path::root(), value, text);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((index, after)) = inner.split_once(']') else { break };
            let Some((index, item)) = index.parse().ok().and_then(|i| Some((i, value.at(i)?))) else { break };
            path = path.index(index);
            (value, rest) = (item, after.strip_prefix('.').unwrap_or(after));
            continue;
        }
        let leads =
            |key: &str| rest.strip_prefix(key).is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']));
        let entries = value.as_map().into_iter().flatten();
        let Some((key, inner)) = entries.filter(|(key, _)| leads(key)).max_by_key(|(key, _)| key.len()) else { break };
        path = path.key(key.as_str());
        let after = rest.get(key.len()..).unwrap_or_default();
        (value, rest) = (inner, after.strip_prefix('.').unwrap_or(after));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_whole_template() {
        let text =
            "heat_template_version: 2018-08-31\nresources:\n  a: {type: X, depends_on: b}\noutputs:\n  w: {value: 1}\n";
        let document = kiln_yaml::parse(text.trim_end()).unwrap();
        let origin = Origin { url: String::new(), text: text.to_owned(), spans: document.spans };
        assert_eq!(origin.find(&document.value, "resources.a.type"), Some(51..55));
    }

    #[test]
    fn parts_are_found_in_the_text() {
        let text = "a:\n  b.c:\n    - x: ü\n    - {y: 1}\n";
        let document = kiln_yaml::parse(text).unwrap();
        let origin = Origin { url: String::new(), text: text.to_owned(), spans: document.spans };
        let found = |path| origin.find(&document.value, path).map(|range| &text[range]);
        assert_eq!(found("a"), Some("a"));
        assert_eq!(found("a.b.c[0].x"), Some("x"));
        assert_eq!(found("a.b.c[1].y"), Some("y"));
        assert_eq!(found("a.b.c.none"), Some("b.c"));
        assert_eq!(found("none"), None);
    }
}
