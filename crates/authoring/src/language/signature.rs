//! Signature help: the arguments of the function at the cursor.

use kiln_template::{Arguments, Release, functions};
use kiln_value::{Position, Segment};

use super::cursor::Cursor;
use super::repair::readable;

/// The call around a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The function with its arguments: `get_attr: [resource, attribute, path…]`.
    pub label: String,
    /// Its result.
    pub summary: &'static str,
    /// The arguments as written in the label.
    pub arguments: Vec<&'static str>,
    /// The index of the argument that is being written; `None` if unknown.
    pub active: Option<usize>,
}

/// The innermost call at a position of a text, which may be invalid.
pub fn signature(text: &str, at: Position) -> Option<Signature> {
    let release = readable(text, at).map_or(Release::Hot20210416, |page| page.release());
    let known = functions(release, true);
    let path = Cursor::at(text, at).path.0;
    let (index, function) = path.iter().enumerate().skip(2).rev().find_map(|(index, segment)| match segment {
        Segment::Key(key) => Some((index, known.iter().find(|function| function.name == key)?)),
        Segment::Index(_) => None,
    })?;
    let next = path.get(index + 1);
    let (arguments, active) = match function.arguments {
        Arguments::One(argument) => (vec![argument], Some(0)),
        Arguments::List(arguments) => {
            let last = arguments.len().saturating_sub(1);
            let repeats = arguments.last().is_some_and(|argument| argument.ends_with('…'));
            let active = match next {
                Some(Segment::Index(index)) if *index <= last || repeats => Some((*index).min(last)),
                Some(_) => None,
                None => Some(0),
            };
            (arguments.to_vec(), active)
        }
        Arguments::Map(keys) => {
            let active = match next {
                Some(Segment::Key(key)) => keys.iter().position(|known| known == key),
                _ => None,
            };
            (keys.to_vec(), active)
        }
    };
    Some(Signature { label: function.label(), summary: function.summary, arguments, active })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The label and the active argument for the `^` in a value.
    fn at(value: &str) -> Option<(String, Option<&'static str>)> {
        let text = format!("heat_template_version: 2021-04-16\noutputs:\n  o:\n    value: {value}");
        let (before, after) = text.split_once('^').unwrap();
        let line = u32::try_from(before.matches('\n').count() + 1).unwrap();
        let column = u32::try_from(before.rsplit('\n').next().unwrap().chars().count() + 1).unwrap();
        let found = signature(&format!("{before}{after}"), Position { line, column })?;
        Some((found.label, found.active.map(|active| found.arguments[active])))
    }

    #[test]
    fn the_active_argument_is_found() {
        for (value, label, active) in [
            ("{get_attr: [^", "get_attr: [resource, attribute, path…]", Some("resource")),
            ("{get_attr: [a, ^", "get_attr: [resource, attribute, path…]", Some("attribute")),
            ("{get_attr: [a, b, 1, ^]}", "get_attr: [resource, attribute, path…]", Some("path…")),
            ("{get_param: ^}", "get_param: [parameter, path…]", Some("parameter")),
            ("\n      str_replace:\n        params: ^", "str_replace: {template, params}", Some("params")),
            ("\n      str_replace:\n        ^", "str_replace: {template, params}", None),
            ("{if: [c, {get_resource: ^}]}", "get_resource: resource", Some("resource")),
            ("{if: [c, 1, ^", "if: [condition, then, else]", Some("else")),
        ] {
            assert_eq!(at(value), Some((label.to_owned(), active)), "{value}");
        }
        assert_eq!(at("^"), None);
    }
}
