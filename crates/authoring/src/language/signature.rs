//! Signature help: the arguments of the function at the cursor.

use kiln_template::{Release, functions};
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

/// The form of the arguments of a function.
enum Form {
    /// One value.
    One(&'static str),
    /// A list; a last argument with an ellipsis may be repeated.
    List(&'static [&'static str]),
    /// A map.
    Map(&'static [&'static str]),
}

use Form::{List, Map, One};

/// The arguments of every function.
const FORMS: &[(&str, Form)] = &[
    ("get_param", List(&["parameter", "path…"])),
    ("get_resource", One("resource")),
    ("get_attr", List(&["resource", "attribute", "path…"])),
    ("get_file", One("file")),
    ("list_join", List(&["delimiter", "lists…"])),
    ("list_concat", List(&["lists…"])),
    ("list_concat_unique", List(&["lists…"])),
    ("contains", List(&["value", "sequence"])),
    ("str_replace", Map(&["template", "params"])),
    ("str_replace_strict", Map(&["template", "params"])),
    ("str_replace_vstrict", Map(&["template", "params"])),
    ("str_split", List(&["delimiter", "text", "index"])),
    ("repeat", Map(&["template", "for_each", "permutations"])),
    ("digest", List(&["algorithm", "value"])),
    ("map_merge", List(&["maps…"])),
    ("map_replace", List(&["map", "{keys, values}"])),
    ("yaql", Map(&["expression", "data"])),
    ("filter", List(&["values", "list"])),
    ("make_url", Map(&["scheme", "username", "password", "host", "port", "path", "query", "fragment"])),
    ("resource_facade", One("metadata | deletion_policy | update_policy")),
    ("equals", List(&["left", "right"])),
    ("if", List(&["condition", "then", "else"])),
    ("not", One("condition")),
    ("and", List(&["conditions…"])),
    ("or", List(&["conditions…"])),
    ("Ref", One("parameter or resource")),
    ("Fn::GetAtt", List(&["resource", "attribute"])),
    ("Fn::FindInMap", List(&["mapping", "key", "value"])),
    ("Fn::GetAZs", One("region")),
    ("Fn::Base64", One("text")),
    ("Fn::Join", List(&["delimiter", "list"])),
    ("Fn::Split", List(&["delimiter", "text"])),
    ("Fn::Select", List(&["index", "list"])),
    ("Fn::Replace", List(&["{placeholder: value}", "text"])),
    ("Fn::MemberListToMap", List(&["key name", "value name", "list"])),
    ("Fn::ResourceFacade", One("Metadata | DeletionPolicy | UpdatePolicy")),
    ("Fn::Equals", List(&["left", "right"])),
    ("Fn::If", List(&["condition", "then", "else"])),
    ("Fn::Not", List(&["condition"])),
    ("Fn::And", List(&["conditions…"])),
    ("Fn::Or", List(&["conditions…"])),
];

/// The innermost call at a position of a text, which may be invalid.
pub fn signature(text: &str, at: Position) -> Option<Signature> {
    let release = readable(text, at).map_or(Release::Hot20210416, |page| page.release());
    let known = functions(release, true);
    let path = Cursor::at(text, at).path.0;
    let (index, function) = path.iter().enumerate().skip(2).rev().find_map(|(index, segment)| match segment {
        Segment::Key(key) => Some((index, known.iter().find(|function| function.name == key)?)),
        Segment::Index(_) => None,
    })?;
    let (_, form) = FORMS.iter().find(|(name, _)| *name == function.name)?;
    let next = path.get(index + 1);
    let name = function.name;
    let (label, arguments, active) = match form {
        One(argument) => (format!("{name}: {argument}"), vec![*argument], Some(0)),
        List(arguments) => {
            let last = arguments.len().saturating_sub(1);
            let repeats = arguments.last().is_some_and(|argument| argument.ends_with('…'));
            let active = match next {
                Some(Segment::Index(index)) if *index <= last || repeats => Some((*index).min(last)),
                Some(_) => None,
                None => Some(0),
            };
            (format!("{name}: [{}]", arguments.join(", ")), arguments.to_vec(), active)
        }
        Map(keys) => {
            let active = match next {
                Some(Segment::Key(key)) => keys.iter().position(|known| known == key),
                _ => None,
            };
            (format!("{name}: {{{}}}", keys.join(", ")), keys.to_vec(), active)
        }
    };
    Some(Signature { label, summary: function.summary, arguments, active })
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

    #[test]
    fn every_function_has_a_form() {
        for release in Release::ALL {
            for function in functions(release, true) {
                assert!(FORMS.iter().any(|(name, _)| *name == function.name), "{}", function.name);
            }
        }
    }
}
