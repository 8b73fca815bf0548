//! `Fn::MemberListToMap`.

use std::collections::BTreeMap;

use kiln_value::{Class, Diagnostic, Map, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// A map from the numbered pairs of EC2 queries: `.member.0.Name=key`, `.member.0.Value=value`.
#[derive(Debug)]
pub(crate) struct MemberListToMap;

const USAGE: &str = "
            {'Fn::MemberListToMap': ['Name', 'Value',
                                     ['.member.0.Name=key',
                                      '.member.0.Value=door']]}
            ";

impl Function for MemberListToMap {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let [key, value, _] = args.unpack().map_err(|error| match error.class {
            Class::ValueError => fault::type_error(format!("Wrong Arguments try: \"{USAGE}\"")),
            _ => error,
        })?;
        for (part, word) in [(key, "Key"), (value, "Value")] {
            if part.as_str().is_none() {
                return Err(fault::type_error(format!("{name} {word} Name must be a string")));
            }
        }
        Ok(())
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [key_name, value_name, list] = call.args.unpack()?;
        let (key_name, value_name) = (key_name.as_str().unwrap_or_default(), value_name.as_str().unwrap_or_default());
        let list = match list.resolve(context)? {
            Value::List(items) => items,
            Value::Map(map) => map.into_keys().map(Value::Str).collect(),
            Value::Str(text) => text.chars().map(|c| Value::Str(c.to_string())).collect(),
            _ => return Err(fault::type_error("Member list must be a list")),
        };
        let mut pairs = Map::new();
        for (index, item) in list.into_iter().enumerate() {
            let Value::Str(item) = item else {
                return Err(fault::type_error("Member list items must be strings"));
            };
            let Some((key, value)) = item.split_once('=') else {
                let message = format!("dictionary update sequence element #{index} has length 1; 2 is required");
                return Err(fault::value_error(message));
            };
            pairs.insert(key.to_owned(), Value::from(value));
        }
        let mut members = BTreeMap::<u64, Map>::new();
        for (key, value) in pairs {
            if let Some((number, field)) = member(&key) {
                members.entry(number).or_default().insert(field.to_owned(), value);
            }
        }
        let entries = members.into_values().filter_map(|mut member| {
            let key = member.get(key_name)?.as_str()?.to_owned();
            Some((key, member.swap_remove(value_name)?))
        });
        Ok(Some(Value::Map(entries.collect())))
    }
}

/// The number and the field of `.member.<number>.<field>`.
fn member(key: &str) -> Option<(u64, &str)> {
    let (number, field) = key.strip_prefix(".member.")?.split_once('.')?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten().map(|number| (number, field))
}
