//! Python's text representations.

use std::fmt::Write as _;

use kiln_value::text as python;

use crate::dict::Dict;
use crate::object::{ListKind, Object};
use crate::set::Set;

/// Longer texts are truncated, because no caller may show or store them.
const MOST: usize = 1_000_000;

/// `str(object)`.
pub(crate) fn text(object: &Object) -> String {
    match object {
        Object::Str(text) => text.to_string(),
        Object::DateTime(time) => time.text(' '),
        Object::TimeSpan(span) => span.text(),
        other => repr(other),
    }
}

/// `repr(object)`.
pub(crate) fn repr(object: &Object) -> String {
    let mut out = String::new();
    write(&mut out, object);
    out
}

fn write(out: &mut String, object: &Object) {
    if out.len() > MOST {
        return;
    }
    match object {
        Object::Null => out.push_str("None"),
        Object::Bool(true) => out.push_str("True"),
        Object::Bool(false) => out.push_str("False"),
        Object::Int(i) => _ = write!(out, "{i}"),
        Object::BigInt(i) => _ = write!(out, "{i}"),
        Object::Float(f) => out.push_str(&python::float(*f)),
        Object::Str(text) => out.push_str(&python::quote(text)),
        Object::List(list) => {
            let (open, close) = if list.kind == ListKind::Tuple { ('(', ')') } else { ('[', ']') };
            out.push(open);
            separated(out, list.items(), write);
            if list.kind == ListKind::Tuple && list.items().len() == 1 {
                out.push(',');
            }
            out.push(close);
        }
        Object::Dict(dict) => {
            out.push('{');
            separated(out, dict.iter(), |out, (key, value)| {
                write(out, key);
                out.push_str(": ");
                write(out, value);
            });
            out.push('}');
        }
        Object::Set(set @ Set::Frozen(_)) if set.len() == 0 => out.push_str("frozenset()"),
        Object::Set(Set::Keys(dict)) if dict.is_frozen() => view(out, "KeysView", dict),
        Object::Set(Set::Items(dict)) if dict.is_frozen() => view(out, "ItemsView", dict),
        Object::Set(set) => {
            let (open, close) = match set.view_name() {
                None => ("frozenset({".to_owned(), "})"),
                Some(name) => (format!("{name}(["), "])"),
            };
            out.push_str(&open);
            separated(out, set.to_vec().unwrap_or_default(), |out, member| write(out, &member));
            out.push_str(close);
        }
        Object::Values(dict) if dict.is_frozen() => view(out, "ValuesView", dict),
        Object::Values(dict) => {
            out.push_str("dict_values([");
            separated(out, dict.iter(), |out, (_, value)| write(out, value));
            out.push_str("])");
        }
        Object::Iter(_) => out.push_str("<generator object>"),
        Object::Ordering(_) => out.push_str("<OrderingIterable object>"),
        Object::Context(_) => out.push_str("<Context object>"),
        Object::Rule(_) => out.push_str("<MappingRule object>"),
        Object::DateTime(time) => out.push_str(&time.repr()),
        Object::TimeSpan(span) => out.push_str(&span.repr()),
        Object::Regex(regex) => out.push_str(&regex.repr()),
    }
}

/// The view of a frozen dictionary shows the dictionary.
fn view(out: &mut String, name: &str, dict: &Dict) {
    out.push_str(name);
    out.push('(');
    write(out, &Object::Dict(dict.clone()));
    out.push(')');
}

fn separated<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut String, T)) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(out, item);
    }
}
