//! Authorization with the rules of oslo.policy (docs/heat-behaviour.md §22).

mod check;
mod defaults;

use std::collections::{BTreeSet, HashMap, HashSet};

pub use check::CheckError;
use check::{Check, Facts};
use kiln_value::Map;

use crate::Caller;

/// Why an operator's rules are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A rule is not a string.
    #[error("policy rule {0:?} is not a string")]
    NotText(String),
    /// A rule is invalid.
    #[error("policy rule {name:?}: {error}")]
    Rule {
        /// Name of the rule.
        name: String,
        /// The error.
        error: CheckError,
    },
}

/// The effective rules.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: HashMap<String, Check>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Policy {
    /// Heat's defaults. `enforce_new_defaults` is the option in `[oslo_policy]`: if it is off, the rules of older
    /// releases are also sufficient.
    pub fn new(enforce_new_defaults: bool) -> Self {
        let mut rules = HashMap::new();
        for group in defaults::RULES {
            let mut check = own(group.check);
            if let Some(deprecated) = group.deprecated.filter(|_| !enforce_new_defaults) {
                check = Check::Any(vec![check, own(deprecated)]);
            }
            rules.extend(group.names.iter().map(|name| ((*name).to_owned(), check.clone())));
        }
        rules.extend(defaults::ADMIN_TYPES.iter().map(|name| (type_rule(name), Check::Rule("project_admin".into()))));
        Self { rules }
    }

    /// Replaces rules with those of an operator: the content of `policy.yaml`, rules by name.
    pub fn with_overrides(mut self, overrides: &Map) -> Result<Self, PolicyError> {
        for (name, rule) in overrides {
            let text = rule.as_str().ok_or_else(|| PolicyError::NotText(name.clone()))?;
            let check = Check::parse(text).map_err(|error| PolicyError::Rule { name: name.clone(), error })?;
            self.rules.insert(name.clone(), check);
        }
        Ok(self)
    }

    /// The names of an operator's rules that are not used by any request, resource type or other rule.
    pub fn unknown<'a>(&self, overrides: &'a Map) -> Vec<&'a str> {
        let usual = Self::default();
        let named: HashSet<&str> = self.rules.values().flat_map(Check::rules).collect();
        let known = |name: &str| {
            usual.rules.contains_key(name) || name.starts_with(TYPE_RULES) || name == "default" || named.contains(name)
        };
        overrides.keys().map(String::as_str).filter(|name| !known(name)).collect()
    }

    /// The undefined rules that other rules refer to; they are always false.
    pub fn missing(&self) -> Vec<&str> {
        let named: BTreeSet<&str> = self.rules.values().flat_map(Check::rules).collect();
        named.into_iter().filter(|name| !self.rules.contains_key(*name)).collect()
    }

    /// The names of all rules.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.keys().map(String::as_str)
    }

    /// Whether the caller may execute `action` (such as `stacks:create`) in a project. Actions without a rule are
    /// denied.
    pub fn allows(&self, action: &str, caller: &Caller, project_id: &str) -> bool {
        self.holds(action, caller, &[("project_id", project_id)]).unwrap_or(false)
    }

    /// Whether the caller may use a resource type: its own rule and that of its family (`OS::Keystone::*`) must be
    /// true, if they exist.
    pub fn allows_type(&self, resource_type: &str, caller: &Caller) -> bool {
        let holds = |name: &str| self.holds(&type_rule(name), caller, &[]).unwrap_or(true);
        holds(resource_type) && resource_type.rsplit_once("::").is_none_or(|(family, _)| holds(&format!("{family}::*")))
    }

    /// Whether the caller is an administrator: `context_is_admin`.
    pub fn is_admin(&self, caller: &Caller) -> bool {
        self.holds("context_is_admin", caller, &[]).unwrap_or(false)
    }

    /// Evaluates a rule; `None` if it does not exist.
    fn holds(&self, rule: &str, caller: &Caller, target: &[(&str, &str)]) -> Option<bool> {
        let check = self.rules.get(rule)?;
        Some(check.holds(&Facts { caller, target, rules: &self.rules }))
    }
}

/// Prefix of the rules for resource types.
const TYPE_RULES: &str = "resource_types:";

fn type_rule(resource_type: &str) -> String {
    format!("{TYPE_RULES}{resource_type}")
}

/// Parses a built-in rule; an invalid one denies everything (a test parses them all).
fn own(text: &str) -> Check {
    Check::parse(text).unwrap_or(Check::Never)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_defaults_are_valid() {
        for group in defaults::RULES {
            Check::parse(group.check).unwrap();
            group.deprecated.map(|text| Check::parse(text).unwrap());
        }
    }
}
