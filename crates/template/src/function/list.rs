//! List functions: `list_join`, `list_concat`, `filter`, `contains`.

use std::borrow::Cow;

use kiln_value::{Diagnostic, Value, text};

use super::seen::Seen;
use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// The first 200 characters of a value as messages show it.
fn shown(value: &Value) -> String {
    text::repr(value).chars().take(200).collect()
}

/// Joins the items to one string; `other` renders values that are neither null nor strings.
fn join(
    call: &Call,
    context: &Context,
    delimiter: &Node,
    items: &[Cow<'_, Value>],
    other: impl Fn(&Value) -> Result<String, Diagnostic>,
) -> Result<Option<Value>, Diagnostic> {
    let delimiter = delimiter.view(context)?.unwrap_or_default();
    let Value::Str(delimiter) = &*delimiter else {
        return Err(fault::type_error(format!("\"{}\" delimiter must be a string", call.name)));
    };
    let delimiters = delimiter.len().saturating_mul(items.len());
    let texts: usize = items.iter().filter_map(|item| item.as_str()).map(str::len).sum();
    context.spend(call, texts.saturating_add(delimiters))?;
    let mut joined = String::with_capacity(texts + delimiters);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            joined.push_str(delimiter);
        }
        match &**item {
            Value::Null => {}
            Value::Str(text) => joined.push_str(text),
            item => {
                let text = other(item)?;
                context.spend(call, text.len())?;
                joined.push_str(&text);
            }
        }
    }
    Ok(Some(Value::Str(joined)))
}

/// Adds the items of a list; returns the value if it is not a list.
fn add_items<'a>(
    list: &'a Node,
    context: &Context<'a>,
    items: &mut Vec<Cow<'a, Value>>,
) -> Result<Option<Value>, Diagnostic> {
    if let Some(list) = list.as_list() {
        for item in list {
            items.extend(item.view(context)?);
        }
        return Ok(None);
    }
    match list.resolve(context)? {
        Value::List(list) => {
            items.extend(list.into_iter().map(Cow::Owned));
            Ok(None)
        }
        other => Ok(Some(other)),
    }
}

/// `Fn::Join` and the first `list_join`: one list of strings.
#[derive(Debug)]
pub(crate) struct Join;

impl Function for Join {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let usage =
            || format!("Incorrect arguments to \"{name}\" should be: \"{name}\" : [ \" \", [ \"str1\", \"str2\"]]");
        match args.as_list() {
            Some([_, _]) => Ok(()),
            Some(_) => Err(fault::value_error(usage())),
            None => Err(fault::type_error(usage())),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let [delimiter, items] = call.args.unpack()?;
        let mut joined = Vec::new();
        match add_items(&items, context, &mut joined)? {
            None | Some(Value::Null) => {}
            Some(_) => return Err(fault::type_error(format!("\"{name}\" must operate on a list"))),
        }
        join(call, context, &delimiter, &joined, |item| {
            Err(fault::type_error(format!("Items to join must be strings not {}", shown(item))))
        })
    }
}

/// `list_join` since 2015-10-15: several lists. Maps and lists in them become JSON. False values are not lists.
#[derive(Debug)]
pub(crate) struct JoinLists;

impl Function for JoinLists {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let usage =
            || format!("Incorrect arguments to \"{name}\" should be: \"{name}\" : [ \" \", [ \"str1\", \"str2\"] ...]");
        match args.as_list() {
            Some([_, _, ..]) => Ok(()),
            Some(_) => Err(fault::value_error(usage())),
            None => Err(fault::type_error(usage())),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let Some([delimiter, lists @ ..]) = call.args.as_list() else { return Ok(Some(Value::Null)) };
        let (mut items, mut others) = (Vec::new(), Vec::new());
        for list in lists {
            others.extend(add_items(list, context, &mut items)?);
        }
        if others.iter().any(Value::is_truthy) {
            return Err(fault::type_error(format!("\"{name}\" must operate on a list")));
        }
        join(call, context, delimiter, &items, |item| match item {
            Value::List(_) | Value::Map(_) => Ok(text::json_sorted(item)),
            item => Err(fault::type_error(format!("Items to join must be string, map or list not {}", shown(item)))),
        })
    }
}

/// `list_concat`, and `list_concat_unique`, which keeps the first of equal items.
#[derive(Debug)]
pub(crate) struct Concat {
    pub(crate) unique: bool,
}

impl Function for Concat {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let args = call.resolved_args(context)?;
        let Value::List(lists) = &args else {
            return Err(fault::type_error(format!(
                "Incorrect arguments to \"{name}\" should be: \"{name}\" : [ [ <value 1>, <value 2> ], [ <value 3>, \
                 <value 4> ] ]"
            )));
        };
        let mut items = Vec::new();
        let mut seen = Seen::default();
        for list in lists {
            match list {
                Value::Null => {}
                Value::List(list) if self.unique => items.extend(list.iter().filter(|item| seen.insert(item)).cloned()),
                Value::List(list) => items.extend_from_slice(list),
                other => {
                    return Err(fault::type_error(format!(
                        "Incorrect arguments: Items to concat must be lists. {} contains an item that is not a list: \
                         {}",
                        text::json(&args),
                        text::json(other)
                    )));
                }
            }
        }
        Ok(Some(Value::List(items)))
    }
}

/// `filter`: a list without the given values.
#[derive(Debug)]
pub(crate) struct Filter;

impl Function for Filter {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        match args.as_list() {
            Some([_, _]) => Ok(()),
            Some(args) => Err(fault::value_error(format!(
                "\"{name}\" expected 2 arguments of the form [values, sequence] but got {} arguments instead",
                args.len()
            ))),
            None => Err(fault::type_error(format!("Argument to \"{name}\" must be a list"))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let [values, sequence] = call.args.unpack()?;
        let sequence = sequence.resolve(context)?;
        if !sequence.is_truthy() {
            return Ok(Some(sequence));
        }
        let Value::List(mut list) = sequence else {
            return Err(fault::type_error(format!("\"{name}\" only works with lists")));
        };
        match values.resolve(context)? {
            Value::List(values) => {
                let mut unwanted = Seen::default();
                for value in &values {
                    unwanted.insert(value);
                }
                list.retain(|item| !unwanted.contains(item));
            }
            other if !other.is_truthy() => {}
            _ => return Err(fault::type_error(format!("\"{name}\" filters a list of values"))),
        }
        Ok(Some(Value::List(list)))
    }
}

/// `contains`: whether a value is an item of a list, or a string is part of a string.
#[derive(Debug)]
pub(crate) struct Contains;

impl Function for Contains {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        match args.as_list() {
            Some([_, _]) => Ok(()),
            None | Some([]) => Err(fault::type_error(format!(
                "Incorrect arguments to \"{name}\" should be: \"{name}\" : [ \"value1\", [ \"value1\", \"value2\"]]"
            ))),
            Some(_) => Err(fault::value_error(format!(
                "Arguments to \"{name}\" must be of the form: [value1, [value1, value2]]"
            ))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [value, sequence] = call.args.unpack()?;
        let value = value.resolve(context)?;
        let found = match (sequence.resolve(context)?, &value) {
            (Value::List(list), value) => list.contains(value),
            (Value::Str(text), Value::Str(part)) => text.contains(part),
            (Value::Str(_), other) => {
                let kind = fault::type_name(other);
                let message = format!("'in <string>' requires string as left operand, not {kind}");
                return Err(fault::type_error(message));
            }
            _ => {
                let message = format!("Second argument to \"{}\" should be a sequence.", call.name);
                return Err(fault::type_error(message));
            }
        };
        Ok(Some(Value::Bool(found)))
    }
}
