//! The conditions of a template (`docs/heat-behaviour.md` §4.1).

use std::sync::OnceLock;

use indexmap::IndexMap;
use kiln_value::{Diagnostic, Path, Subject, Value, text};

use crate::expr::{Context, Deciding, Expr};
use crate::function::fault;
use crate::hint::hinted;
use crate::version::Words;
use crate::{Bound, Unbuilt};

/// The conditions of a template. Each is evaluated once, on first use.
#[derive(Debug, Default)]
pub struct Conditions {
    conditions: IndexMap<String, Condition>,
}

#[derive(Debug)]
struct Condition {
    expr: Expr,
    decided: OnceLock<bool>,
}

/// Limit on the total nesting of a chain of conditions.
const MAX_DEPTH: usize = 400;

impl Conditions {
    pub(crate) fn parse(bound: &Bound) -> Result<Self, Diagnostic> {
        let Some(section) = bound.template().conditions() else { return Ok(Self::default()) };
        let path = Path::root().key(bound.template().words().conditions);
        let Value::Map(definitions) = section else {
            let kind = section.kind().python_name();
            let message =
                format!("Conditions validation error: Condition definitions must be a map. Found a {kind} instead");
            return Err(Diagnostic::invalid(message).at(path));
        };
        let parse = |(name, definition): (&String, &Value)| {
            let expr = Expr::parse_condition(bound, definition, &path.key(name.as_str()))?;
            Ok((name.clone(), Condition { expr, decided: OnceLock::new() }))
        };
        Ok(Self { conditions: definitions.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// The names of the conditions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.conditions.keys().map(String::as_str)
    }

    /// Checks that every definition is a boolean or a call, and validates the calls.
    ///
    /// Fails with `StackValidationFailed`.
    pub fn validate(&self, bound: &Bound) -> Result<(), Diagnostic> {
        self.errors(bound).into_iter().next().map_or(Ok(()), Err)
    }

    /// The errors of [`Conditions::validate`]: the first of each condition.
    pub fn errors(&self, bound: &Bound) -> Vec<Diagnostic> {
        let scope = Unbuilt::empty(bound);
        let words = bound.template().words();
        let errors = self.conditions.iter().filter_map(|(name, condition)| {
            if !condition.expr.is_call() {
                return truth(name, &condition.expr.source(), words).err();
            }
            // The text has no path to the section, as in Heat.
            condition.expr.validate(&scope, &Path::root()).err().map(|mut error| {
                let inner = std::mem::replace(&mut error.path, Path::root().key(words.conditions).key(name.as_str()));
                error.path.0.extend(inner.0);
                error
            })
        });
        errors.collect()
    }

    /// Whether a condition is true.
    ///
    /// Fails with `ValueError` for an unknown name, with `StackValidationFailed` if the definition is circular or not a
    /// boolean, and with the errors of its functions.
    pub fn holds(&self, bound: &Bound, name: &str) -> Result<bool, Diagnostic> {
        self.decide(&Value::from(name), &Context::new(&Unbuilt::empty(bound)))
    }

    /// Evaluates the condition with this name within the evaluation of others. A missing name counts as true.
    pub(crate) fn decide(&self, name: &Value, context: &Context) -> Result<bool, Diagnostic> {
        let truth = self.judge(name, context)?;
        match truth.unknown() {
            Some(unknown) => Err(unknown.undecided(&format!("The condition \"{}\"", text::str(name)))),
            None => Ok(truth.is_truthy()),
        }
    }

    /// As `decide`: a boolean, or the unknown value that the condition depends on.
    pub(crate) fn judge(&self, name: &Value, context: &Context) -> Result<Value, Diagnostic> {
        if name.is_null() {
            return Ok(true.into());
        }
        let words = context.bound().template().words();
        let known = name.as_str().and_then(|name| self.conditions.get_key_value(name));
        let Some((name, condition)) = known else {
            let name = text::str(name);
            let error = fault::value_error(format!("Invalid condition \"{name}\"")).about(Subject::Name(name.clone()));
            return Err(hinted(error, &name, self.names()));
        };
        if let Some(decided) = condition.decided.get() {
            return Ok((*decided).into());
        }
        let mut chain = context.deciding;
        while let Some(deciding) = chain {
            if deciding.name == name {
                return Err(invalid(words, name, &format!("Circular definition for condition \"{name}\"")));
            }
            chain = deciding.outer;
        }
        let depth = condition.expr.node().depth() + context.deciding.map_or(0, |deciding| deciding.depth);
        if depth > MAX_DEPTH {
            return Err(invalid(words, name, &format!("The definition of condition \"{name}\" is nested too deeply")));
        }
        let deciding = Deciding { name, outer: context.deciding, depth };
        let value = condition.expr.node().resolve(&context.deciding(&deciding))?;
        if value.unknown().is_some() {
            return Ok(value);
        }
        let decided = truth(name, &value, words)?;
        Ok((*condition.decided.get_or_init(|| decided)).into())
    }
}

fn truth(name: &str, value: &Value, words: &Words) -> Result<bool, Diagnostic> {
    value.as_bool().ok_or_else(|| {
        invalid(words, name, &format!("The definition of condition \"{name}\" is invalid: {}", text::str(value)))
    })
}

fn invalid(words: &Words, name: &str, message: &str) -> Diagnostic {
    Diagnostic::invalid(format!("Condition validation error: {message}"))
        .at(Path::root().key(words.conditions).key(name))
}
