//! Parameter groups, for user interfaces.

use kiln_value::{Class, Diagnostic, Path, Value, text};

use crate::Template;
use crate::version::Dialect;

/// A group of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterGroup {
    /// The displayed name.
    pub label: Option<Value>,
    /// The description.
    pub description: Option<Value>,
    /// The names of its parameters.
    pub parameters: Vec<String>,
}

const SECTION: &str = "parameter_groups";

impl Template {
    /// The groups of parameters; CFN has none.
    ///
    /// Every group must have parameters, and every parameter must exist and be in one group only; otherwise
    /// `StackValidationFailed` (`docs/heat-behaviour.md` §4).
    pub fn parameter_groups(&self) -> Result<Vec<ParameterGroup>, Diagnostic> {
        let groups = match self.as_value().get(SECTION) {
            Some(groups) if groups.is_truthy() && self.release().dialect() == Dialect::Hot => groups,
            _ => return Ok(Vec::new()),
        };
        let Value::List(groups) = groups else {
            return Err(invalid(None, &format!("The {SECTION} should be a list.")));
        };
        let known = self.parameter_schemata()?;
        let mut grouped = Vec::new();
        groups
            .iter()
            .map(|group| {
                let Value::Map(group) = group else {
                    let kind = group.kind().python_name();
                    return Err(Diagnostic::new(
                        Class::AttributeError,
                        format!("'{kind}' object has no attribute 'get'"),
                    ));
                };
                let label = group.get("label").map_or_else(String::new, text::str);
                let error = |message: String| Err(invalid(Some(&label), &message));
                let parameters = match group.get("parameters") {
                    None | Some(Value::Null) => {
                        return error("The parameters must be provided for each parameter group.".to_owned());
                    }
                    Some(Value::List(parameters)) => parameters,
                    Some(_) => return error("The parameters of parameter group should be a list.".to_owned()),
                };
                let start = grouped.len();
                for parameter in parameters {
                    let name = text::str(parameter);
                    if grouped.contains(&name) {
                        return error(format!("The {name} parameter must be assigned to one parameter group only."));
                    }
                    let is_pseudo = matches!(&*name, "OS::stack_id" | "OS::project_id");
                    if parameter.as_str().is_none() || !(known.contains_key(&name) || is_pseudo) {
                        return error(format!("The grouped parameter {name} does not reference a valid parameter."));
                    }
                    grouped.push(name);
                }
                Ok(ParameterGroup {
                    label: group.get("label").cloned(),
                    description: group.get("description").cloned(),
                    parameters: grouped.get(start..).unwrap_or_default().to_vec(),
                })
            })
            .collect()
    }
}

fn invalid(label: Option<&str>, message: &str) -> Diagnostic {
    let mut path = Path::root().key(SECTION);
    if let Some(label) = label {
        path = path.key(label);
    }
    Diagnostic::invalid(format!("Parameter Groups error: {path}: {message}")).at(path)
}
