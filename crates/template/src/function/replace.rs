//! `str_replace` in its forms.

use std::borrow::Cow;
use std::collections::HashSet;

use kiln_value::{Diagnostic, Map, Value, text};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// A text with every occurrence of some keys replaced, longer keys first.
#[derive(Debug)]
pub(crate) struct Replace {
    form: Form,
    care: Care,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// CFN's `[params, template]`; values are scalars.
    Listed,
    /// A map of `params` and `template`; values are scalars.
    Scalars,
    /// The same, where maps and lists become JSON.
    Json,
}

/// What is an error besides; each has what stands before it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Care {
    Lax,
    /// A key that does not occur.
    Strict,
    /// A value that is null or empty.
    VeryStrict,
}

impl Replace {
    pub(crate) const CFN: Self = Self { form: Form::Listed, care: Care::Lax };
    pub(crate) const SCALARS: Self = Self { form: Form::Scalars, care: Care::Lax };
    pub(crate) const JSON: Self = Self { form: Form::Json, care: Care::Lax };
    pub(crate) const STRICT: Self = Self { form: Form::Json, care: Care::Strict };
    pub(crate) const VERY_STRICT: Self = Self { form: Form::Json, care: Care::VeryStrict };

    /// The keys with their values, and the text.
    fn parts<'a>(&self, name: &str, args: &'a Node) -> Result<[Cow<'a, Node>; 2], Diagnostic> {
        if self.form == Form::Listed {
            let usage = || {
                format!(
                    "Incorrect arguments to \"{name}\" should be: {{\"{name}\": [ {{\"$var1\": \"foo\", \"%var2%\": \
                     \"bar\"}}, \"$var1 is %var2%\"]}}"
                )
            };
            if args.as_str().is_some() || args.as_map().is_some() {
                return Err(fault::type_error(usage()));
            }
            return args.unpack().map_err(|error| match &*error.class {
                "ValueError" => fault::value_error(usage()),
                _ => error,
            });
        }
        let Some(map) = args.as_map() else {
            return Err(fault::type_error(format!("Arguments to \"{name}\" must be a map")));
        };
        match (map.get("params"), map.get("template")) {
            (Some(params), Some(template)) => Ok([Cow::Borrowed(params), Cow::Borrowed(template)]),
            _ => Err(fault::key_error(format!(
                "\"{name}\" syntax should be {name}:
              template: This is var1 template var2
              params:
                var1: a
                var2: string"
            ))),
        }
    }

    fn replacement(&self, name: &str, key: &str, value: &Value) -> Result<String, Diagnostic> {
        let replacement = match value {
            Value::Null => String::new(),
            Value::List(_) | Value::Map(_) if self.form != Form::Json => {
                return Err(fault::type_error(format!(
                    "\"{name}\" params must be strings or numbers, param {key} is not valid"
                )));
            }
            Value::List(_) | Value::Map(_) => text::json_sorted(value),
            scalar => text::str(scalar),
        };
        let is_collection = matches!(value, Value::List(_) | Value::Map(_));
        let is_empty = if is_collection { !value.is_truthy() } else { replacement.is_empty() };
        if is_empty && self.care == Care::VeryStrict { Err(undefined(name, key)) } else { Ok(replacement) }
    }
}

fn undefined(name: &str, key: &str) -> Diagnostic {
    fault::value_error(format!(
        "{name} has an undefined or empty value for param {key}, must be a defined non-empty value"
    ))
}

impl Function for Replace {
    fn summary(&self) -> &'static str {
        match self.care {
            Care::Lax => "A text with keys replaced by values.",
            Care::Strict => "A text with keys replaced by values, all of which must occur.",
            Care::VeryStrict => "A text with keys replaced by values, all of which must occur and have a value.",
        }
    }

    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let [params, _] = self.parts(name, args)?;
        match *params {
            Node::Map(_) | Node::Call(_) => Ok(()),
            _ => Err(fault::type_error(format!("\"{name}\" parameters must be a mapping"))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let [params, template] = self.parts(name, &call.args)?;
        let template = template.resolve(context)?;
        let params = params.resolve(context)?;
        let is_strict = self.care >= Care::Strict;
        if is_strict && params.is_null() {
            return Err(fault::type_error("'NoneType' object is not iterable"));
        }
        let Value::Str(template) = template else {
            return Err(fault::type_error(format!("\"{name}\" template must be a string")));
        };
        let Value::Map(params) = params else {
            return Err(fault::type_error(format!("\"{name}\" params must be a map")));
        };
        let pairs = self.pairs(name, &params)?;
        let mut found = HashSet::new();
        let text = replace(&template, &pairs, &mut found, |size| context.spend(call, size))?;
        if is_strict && found.len() < pairs.len() {
            let missing: Vec<_> =
                pairs.iter().enumerate().filter(|(i, _)| !found.contains(i)).map(|(_, (key, _))| *key).collect();
            return Err(fault::value_error(format!(
                "The following params were not found in the template: {}",
                missing.join(",")
            )));
        }
        Ok(Some(Value::Str(text)))
    }
}

impl Replace {
    /// Keys and replacements, longest key first, equally long ones in lexical order.
    fn pairs<'a>(&self, name: &str, params: &'a Map) -> Result<Vec<(&'a str, String)>, Diagnostic> {
        let mut keys: Vec<_> = params.iter().map(|(key, value)| (key.chars().count(), key.as_str(), value)).collect();
        keys.sort_by(|(a_len, a, _), (b_len, b, _)| b_len.cmp(a_len).then(a.cmp(b)));
        let pair = |(_, key, value): (usize, &'a str, &Value)| {
            let replacement = self.replacement(name, key, value)?;
            if key.is_empty() { Err(fault::value_error("empty separator")) } else { Ok((key, replacement)) }
        };
        keys.into_iter().map(pair).collect()
    }
}

/// A part of a text in which keys are being replaced.
enum Part<'a> {
    /// Still to be scanned for keys.
    Text(&'a str),
    /// Put in for a key.
    Done(&'a str),
}

/// Replaces the first key everywhere, then the next in what lies between, so that replaced text is not scanned again.
///
/// `found` takes the indexes of the keys that occur; `spend` is told the size of what is put in before it is.
fn replace(
    template: &str,
    pairs: &[(&str, String)],
    found: &mut HashSet<usize>,
    spend: impl Fn(usize) -> Result<(), Diagnostic>,
) -> Result<String, Diagnostic> {
    let mut parts = vec![Part::Text(template)];
    for (index, (key, replacement)) in pairs.iter().enumerate() {
        if !template.contains(key) {
            continue;
        }
        let mut next = Vec::with_capacity(parts.len());
        for part in parts {
            let Part::Text(text) = part else {
                next.push(part);
                continue;
            };
            let count = text.matches(key).count();
            spend(count.saturating_mul(replacement.len() + size_of::<Part>()))?;
            for (position, piece) in text.split(key).enumerate() {
                if position > 0 {
                    found.insert(index);
                    next.push(Part::Done(replacement));
                }
                if !piece.is_empty() {
                    next.push(Part::Text(piece));
                }
            }
        }
        parts = next;
    }
    Ok(parts.into_iter().map(|(Part::Text(text) | Part::Done(text))| text).collect())
}
