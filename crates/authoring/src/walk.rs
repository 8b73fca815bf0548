//! Traverses a template.

use kiln_template::functions;
use kiln_value::{Path, Segment, Value};

use crate::Page;

/// A call of a template function.
pub(crate) struct Found<'p> {
    /// The function's name.
    pub(crate) function: &'p str,
    /// Its arguments.
    pub(crate) args: &'p Value,
    /// The path of the arguments: its last key is the name of the function.
    pub(crate) path: Path,
}

/// The calls of the functions with these names (all functions, if there are none), in the order of the document,
/// outermost first.
pub(crate) fn calls<'p>(page: &'p Page, names: &[&str]) -> Vec<Found<'p>> {
    let known: Vec<&str> = functions(page.release(), true).iter().map(|function| function.name).collect();
    let mut found = Vec::new();
    visit(page.value(), &Path::root(), &mut |value, path| {
        let call = value.as_map().filter(|map| map.len() == 1 && !path.is_root()).and_then(|map| map.first());
        if let Some((function, args)) = call
            && known.contains(&function.as_str())
            && (names.is_empty() || names.contains(&function.as_str()))
        {
            found.push(Found { function, args, path: path.key(function.as_str()) });
        }
    });
    found
}

/// Visits every part of a value with its path, outermost first.
pub(crate) fn visit<'v>(value: &'v Value, path: &Path, see: &mut dyn FnMut(&'v Value, &Path)) {
    see(value, path);
    match value {
        Value::Map(map) => map.iter().for_each(|(key, value)| visit(value, &path.key(key.as_str()), see)),
        Value::List(list) => list.iter().enumerate().for_each(|(i, value)| visit(value, &path.index(i), see)),
        _ => {}
    }
}

/// The value at a path.
pub(crate) fn value_at<'v>(value: &'v Value, path: &Path) -> Option<&'v Value> {
    path.0.iter().try_fold(value, |value, segment| match segment {
        Segment::Key(key) => value.get(key),
        Segment::Index(index) => value.at(*index),
    })
}

/// All strings in a value.
pub(crate) fn literal_texts(value: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    visit(value, &Path::root(), &mut |value, _| texts.extend(value.as_str()));
    texts
}
