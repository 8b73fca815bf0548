//! The origin of a template, to show errors in its source.

use kiln_value::{Path, Segment, Span, Spans, Value};

/// The text of a document of the user: a template or an environment, with its value and the positions of its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// Its URL.
    pub url: String,
    /// Its original text.
    pub text: String,
    value: Value,
    spans: Spans,
}

impl Origin {
    /// The origin of a value that was made from this text; `spans` has the shape of the value.
    pub fn new(url: String, text: String, value: Value, spans: Spans) -> Self {
        Self { url, text, value, spans }
    }

    /// The existing part of a path such as `resources.server.properties.networks[0]`: names may contain dots.
    pub fn path(&self, text: &str) -> Path {
        read(&self.value, text)
    }

    /// The part at a path.
    pub fn value(&self, path: &Path) -> Option<&Value> {
        path.0.iter().try_fold(&self.value, |value, step| match step {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.at(*index),
        })
    }

    /// The positions of the part at a path: of the key of an entry, else of the value; `None` for the whole document.
    pub fn span(&self, path: &Path) -> Option<Span> {
        let spans = self.spans.find(&self.value, path);
        (!path.is_root()).then(|| spans.key.unwrap_or(spans.value))
    }

    /// The position of the first string with this text.
    pub(crate) fn mention(&self, text: &str) -> Option<Span> {
        let mut open = vec![(&self.value, &self.spans)];
        while let Some((value, spans)) = open.pop() {
            match value {
                Value::Str(this) if this == text => return Some(spans.value),
                Value::Map(entries) => open.extend(entries.values().zip(&spans.children).rev()),
                Value::List(items) => open.extend(items.iter().zip(&spans.children).rev()),
                _ => {}
            }
        }
        None
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
    fn parts_are_found_in_the_text() {
        let text = "a:\n  b.c:\n    - x: ü\n    - {y: 1}\n";
        let document = kiln_yaml::parse(text).unwrap();
        let origin = Origin::new(String::new(), text.to_owned(), document.value, document.spans);
        let found = |path| {
            let start = origin.span(&origin.path(path))?.start;
            Some((start.line, start.column))
        };
        assert_eq!(found("a"), Some((1, 1)));
        assert_eq!(found("a.b.c[0].x"), Some((3, 7)));
        assert_eq!(found("a.b.c[1].y"), Some((4, 8)));
        assert_eq!(found("a.b.c.none"), Some((2, 3)));
        assert_eq!(found("none"), None);
        assert_eq!(origin.mention("ü").map(|span| span.start.column), Some(10));
    }
}
