//! Links to files in templates and environments.

use kiln_value::{Path, Position, Segment, Span, Value};

use crate::Page;
use crate::walk::{value_at, visit};

/// The name of a file in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its range.
    pub span: Span,
    /// The name, relative to the directory of the text.
    pub name: String,
}

/// Whether a name is that of a template rather than of a type.
pub(super) fn is_template(name: &str) -> bool {
    [".yaml", ".yml", ".template"].iter().any(|ending| name.ends_with(ending)) && !name.contains("::")
}

/// The files of a template, in the order of the text: `get_file`, and templates used as types, also of the members of
/// groups.
pub fn links(page: &Page) -> Vec<Link> {
    let link = |path: Path| {
        let name = value_at(page.value(), &path)?.as_str()?.to_owned();
        Some(Link { span: page.value_span(&path), name })
    };
    linked(page).into_iter().filter_map(link).collect()
}

/// The paths of the names of files.
fn linked(page: &Page) -> Vec<Path> {
    let mut found = Vec::new();
    visit(page.value(), &Path::root(), &mut |value, path| {
        let (Value::Str(name), Some(Segment::Key(key))) = (value, path.0.last()) else { return };
        let is_file = match key.as_str() {
            "get_file" => true,
            "type" | "Type" => is_template(name),
            _ => false,
        };
        if is_file {
            found.push(path.clone());
        }
    });
    found
}

/// The file whose name is at a position.
pub(super) fn link_at(page: &Page, at: Position) -> Option<Link> {
    links(page).into_iter().find(|link| link.span.start <= at && at <= link.span.end)
}

/// The names of the files of a template, each once.
pub fn files(page: &Page) -> Vec<String> {
    let mut names: Vec<String> = links(page).into_iter().map(|link| link.name).collect();
    names.sort();
    names.dedup();
    names
}

/// The value of a template with the names of its files replaced.
pub fn with_links(page: &Page, name: &dyn Fn(&str) -> String) -> Value {
    let mut value = page.value().clone();
    for link in linked(page) {
        if let Some(Value::Str(text)) = slot(&mut value, &link) {
            *text = name(text);
        }
    }
    value
}

fn slot<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.0.iter().try_fold(value, |value, segment| match (segment, value) {
        (Segment::Key(key), Value::Map(map)) => map.get_mut(key),
        (Segment::Index(index), Value::List(list)) => list.get_mut(*index),
        _ => None,
    })
}
