//! The outputs of a template.

use indexmap::{IndexMap, IndexSet};
use kiln_value::{Diagnostic, Path, Value, text};

use crate::definition::in_condition;
use crate::expr::{AttributeUse, Expr};
use crate::{Bound, Scope, Unbuilt};

/// An output.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The description; `No description given` if the template has none.
    pub description: String,
    /// Its value; null if its condition is false.
    pub value: Expr,
    /// Whether its condition is true. Disabled outputs stay listed.
    pub enabled: bool,
}

impl Output {
    /// Validates the calls; the error has the path from the root of the template.
    ///
    /// Fails with `StackValidationFailed`.
    pub fn validate(&self, scope: &dyn Scope) -> Result<(), Diagnostic> {
        let words = scope.bound().template().words();
        let path = Path::root().key(words.outputs).key(self.name.as_str()).key(words.value);
        self.value.validate(scope, &path)
    }

    /// The names of the resources that it requires; none if one does not exist, since the output then cannot have a
    /// value.
    pub fn requires(&self, scope: &dyn Scope) -> IndexSet<String> {
        self.value.requires(scope, "").unwrap_or_default()
    }

    /// The attributes of resources that it reads.
    pub fn attributes(&self, scope: &dyn Scope) -> Vec<AttributeUse> {
        self.value.attributes(scope)
    }
}

impl Bound {
    /// The outputs, in the order of the template.
    ///
    /// Fails with `StackValidationFailed` for the first malformed one.
    pub fn outputs(&self) -> Result<IndexMap<String, Output>, Diagnostic> {
        match self.outputs_and_errors()? {
            (outputs, errors) if errors.is_empty() => Ok(outputs),
            (_, mut errors) => Err(errors.swap_remove(0)),
        }
    }

    /// The well-formed outputs, and the errors of the others. Fails if the sections cannot be read at all.
    pub(crate) fn outputs_and_errors(&self) -> Result<(IndexMap<String, Output>, Vec<Diagnostic>), Diagnostic> {
        self.conditions()?;
        let mut outputs = IndexMap::new();
        let mut errors = Vec::new();
        for (name, value) in self.template().outputs()? {
            match self.output(name, value) {
                Ok(output) => _ = outputs.insert(name.clone(), output),
                Err(error) => errors.push(error),
            }
        }
        Ok((outputs, errors))
    }

    fn output(&self, name: &str, value: &Value) -> Result<Output, Diagnostic> {
        let words = self.template().words();
        let path = Path::root().key(words.outputs).key(name);
        let invalid = |message: String| {
            Diagnostic::invalid(format!("Output validation error: {path}: {message}")).at(path.clone())
        };
        let Value::Map(fields) = value else {
            let kind = value.kind().python_name();
            return Err(invalid(format!("Output definitions must be a map. Found a {kind} instead")));
        };
        let Some(value) = fields.get(words.value) else {
            return Err(invalid(format!("Each output definition must contain a {} key.", words.value)));
        };
        let enabled = match fields.get(words.condition) {
            Some(condition) if self.release().has_conditions() => {
                let path = path.key(words.condition);
                let condition = Expr::parse_condition(self, condition, &path)?.value(&Unbuilt::empty(self));
                self.enabled(&condition.map_err(|error| in_condition(error, &path))?, &path)?
            }
            _ => true,
        };
        let description = match fields.get(words.description) {
            None | Some(Value::Null) => "No description given".to_owned(),
            Some(description) => text::str(description),
        };
        let value = if enabled { Expr::parse(self, value, &path.key(words.value))? } else { Expr::default() };
        Ok(Output { name: name.to_owned(), description, value, enabled })
    }
}
