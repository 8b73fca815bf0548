//! `repeat`.

use kiln_value::{Diagnostic, Map, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node, validate_args};

/// Repeats a template for every item of lists, or every combination of items.
#[derive(Debug)]
pub(crate) struct Repeat {
    /// Whether a map may replace a list; its keys are the items.
    maps: bool,
    /// Whether `permutations: false` iterates over the lists in parallel.
    zips: bool,
}

const USAGE: &str = "\"repeat\" syntax should be repeat:
              template: This is %var%
              for_each:
                %var%: ['a', 'b', 'c']";

impl Repeat {
    pub(crate) const LISTS: Self = Self { maps: false, zips: false };
    pub(crate) const MAPS: Self = Self { maps: true, zips: false };
    pub(crate) const LOOPS: Self = Self { maps: true, zips: true };

    fn is_nested(&self, args: &Node) -> Option<bool> {
        match args.as_map()?.get("permutations") {
            Some(Node::Scalar(Value::Bool(nested))) => Some(*nested),
            None => Some(true),
            Some(_) => None,
        }
        .or((!self.zips).then_some(true))
    }

    /// The items of each variable; null has no items.
    fn items(&self, name: &str, nested: bool, value: Value) -> Result<Vec<Value>, Diagnostic> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::List(items) => Ok(items),
            Value::Map(map) if self.maps && nested => Ok(map.into_keys().map(Value::Str).collect()),
            _ => {
                let what = if self.maps && nested { "lists or maps" } else { "lists" };
                Err(fault::type_error(format!("The values of the \"for_each\" argument to \"{name}\" must be {what}")))
            }
        }
    }
}

impl Function for Repeat {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let Some(map) = args.as_map() else {
            return Err(fault::type_error(format!("Arguments to \"{name}\" must be a map")));
        };
        if !map.contains_key("for_each") || !map.contains_key("template") {
            return Err(fault::key_error(USAGE));
        }
        match self.is_nested(args) {
            Some(_) => Ok(()),
            None => Err(fault::type_error(format!("\"permutations\" should be boolean type for {name} function."))),
        }
    }

    fn validate(&self, call: &Call, context: &Context) -> Result<(), Diagnostic> {
        validate_args(call, context)?;
        match call.args.as_map().and_then(|map| map.get("for_each")) {
            Some(Node::Call(_) | Node::Map(_)) | None => Ok(()),
            Some(_) => {
                Err(fault::type_error(format!("The \"for_each\" argument to \"{}\" must contain a map", call.name)))
            }
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let Some(args) = call.args.as_map() else { return Ok(Some(Value::Null)) };
        let nested = !self.zips || self.is_nested(&call.args).unwrap_or(true);
        let for_each = match args.get("for_each").map(|node| node.resolve(context)).transpose()? {
            Some(Value::Map(map)) => map,
            other => return Err(fault::no_attribute(&other.unwrap_or_default(), "items")),
        };
        if for_each.is_empty() {
            return Err(fault::value_error("not enough values to unpack (expected 2, got 0)"));
        }
        let mut variables = Vec::with_capacity(for_each.len());
        let mut lengths = Vec::with_capacity(for_each.len());
        for (key, value) in for_each {
            let is_null = value.is_null();
            let items = self.items(call.name, nested, value)?;
            if !is_null {
                lengths.push(items.len());
            }
            variables.push((key, items));
        }
        if !nested && lengths.windows(2).any(|pair| matches!(pair, [a, b] if a != b)) {
            return Err(fault::value_error(format!(
                "For {}, the length of for_each values should be equal if no nested loop.",
                call.name
            )));
        }
        let template = args.get("template").map(|node| node.resolve(context)).transpose()?.unwrap_or_default();
        let rounds =
            if nested { lengths_product(&variables) } else { variables.iter().map(|(_, items)| items.len()).min() };
        // An overflow exceeds every budget.
        let rounds = rounds.unwrap_or(usize::MAX);
        context.spend(call, rounds)?;
        let round =
            |round: usize| Substitution { chosen: chosen(&variables, nested, round), call, context }.value(&template);
        (0..rounds).map(round).collect::<Result<Vec<_>, _>>().map(|list| Some(Value::List(list)))
    }
}

type Variable = (String, Vec<Value>);

fn lengths_product(variables: &[Variable]) -> Option<usize> {
    if variables.iter().any(|(_, items)| items.is_empty()) {
        return Some(0);
    }
    variables.iter().try_fold(1usize, |product, (_, items)| product.checked_mul(items.len()))
}

/// The item of each variable in a round: in parallel, or every combination, the last variable changing fastest.
fn chosen(variables: &[Variable], nested: bool, round: usize) -> Vec<(&str, &Value)> {
    let mut rest = round;
    let mut chosen: Vec<_> = variables
        .iter()
        .rev()
        .filter_map(|(key, items)| {
            let index = if nested { rest % items.len().max(1) } else { round };
            rest /= items.len().max(1);
            Some((key.as_str(), items.get(index)?))
        })
        .collect();
    chosen.reverse();
    chosen
}

/// The variables of one round.
struct Substitution<'a> {
    chosen: Vec<(&'a str, &'a Value)>,
    call: &'a Call,
    context: &'a Context<'a>,
}

impl Substitution<'_> {
    /// The template with the variables replaced one after the other, also in keys; later variables are also replaced in
    /// inserted values.
    fn value(&self, template: &Value) -> Result<Value, Diagnostic> {
        self.context.spend(self.call, size_of::<Value>())?;
        Ok(match template {
            Value::Str(text) => Value::Str(self.text(text)?),
            Value::List(items) => Value::List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Value::Map(map) => {
                let mut result = Map::with_capacity(map.len());
                for (key, value) in map {
                    result.insert(self.text(key)?, self.value(value)?);
                }
                Value::Map(result)
            }
            other => other.clone(),
        })
    }

    fn text(&self, text: &str) -> Result<String, Diagnostic> {
        let mut text = text.to_owned();
        for (key, value) in &self.chosen {
            let Value::Str(value) = value else {
                let kind = fault::type_name(value);
                return Err(fault::type_error(format!("replace() argument 2 must be str, not {kind}")));
            };
            let count = text.matches(key).count();
            if count > 0 {
                self.context.spend(self.call, count.saturating_mul(value.len()))?;
                text = text.replace(key, value);
            }
        }
        self.context.spend(self.call, text.len())?;
        Ok(text)
    }
}
