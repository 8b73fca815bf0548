//! Authorization with the rules of oslo.policy (docs/heat-behaviour.md §22).

mod check;
mod defaults;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

pub use check::CheckError;
use check::{Check, Facts};
pub use defaults::{DefaultCheck, DefaultRule};
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
        #[source]
        error: CheckError,
    },
}

type Rules = HashMap<String, Check>;

/// The effective rules, which can be replaced while they are in use.
#[derive(Debug)]
pub struct Policy {
    /// The names of the default rules.
    defaults: HashSet<String>,
    rules: RwLock<Arc<Rules>>,
}

impl Default for Policy {
    /// Heat's defaults.
    fn default() -> Self {
        Self::new(true, [])
    }
}

impl Policy {
    /// Heat's defaults, and `others`. `enforce_new_defaults` is the option in `[oslo_policy]`: if it is off, the rules of
    /// older releases are also sufficient.
    pub fn new(enforce_new_defaults: bool, others: impl IntoIterator<Item = &'static DefaultRule>) -> Self {
        let others = others.into_iter().map(|rule| (rule.name.to_owned(), rule.check));
        let mut rules = Rules::new();
        for (name, DefaultCheck { check, deprecated }) in rules_of_heat().into_iter().chain(others) {
            let mut check = own(check);
            if let Some(deprecated) = deprecated.filter(|_| !enforce_new_defaults) {
                check = Check::Any(vec![check, own(deprecated)]);
            }
            rules.insert(name, check);
        }
        Self { defaults: rules.keys().cloned().collect(), rules: RwLock::new(Arc::new(rules)) }
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Uses the rules of another policy from now on.
    pub fn replace(&self, other: &Self) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = other.rules();
    }

    /// Replaces rules with those of an operator: the content of `policy.yaml`, rules by name.
    pub fn with_overrides(self, overrides: &Map) -> Result<Self, PolicyError> {
        let mut rules = Rules::clone(&self.rules());
        for (name, rule) in overrides {
            let text = rule.as_str().ok_or_else(|| PolicyError::NotText(name.clone()))?;
            let check = Check::parse(text).map_err(|error| PolicyError::Rule { name: name.clone(), error })?;
            rules.insert(name.clone(), check);
        }
        Ok(Self { defaults: self.defaults, rules: RwLock::new(Arc::new(rules)) })
    }

    /// The names of an operator's rules that are not used by any request, resource type or other rule.
    pub fn unknown<'a>(&self, overrides: &'a Map) -> Vec<&'a str> {
        let rules = self.rules();
        let named: HashSet<&str> = rules.values().flat_map(Check::rules).collect();
        let known = |name: &str| {
            self.defaults.contains(name) || name.starts_with(TYPE_RULES) || name == "default" || named.contains(name)
        };
        overrides.keys().map(String::as_str).filter(|name| !known(name)).collect()
    }

    /// The undefined rules that other rules refer to; they are always false.
    pub fn missing(&self) -> Vec<String> {
        let rules = self.rules();
        let named: BTreeSet<&str> = rules.values().flat_map(Check::rules).collect();
        named.into_iter().filter(|name| !rules.contains_key(*name)).map(str::to_owned).collect()
    }

    /// The names of all rules.
    pub fn names(&self) -> Vec<String> {
        self.rules().keys().cloned().collect()
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
        let rules = self.rules();
        let check = rules.get(rule)?;
        Some(check.holds(&Facts { caller, target, rules: &rules }))
    }
}

/// The default rules of Heat by name, with their checks.
pub fn rules_of_heat() -> Vec<(String, DefaultCheck)> {
    let of_heat =
        defaults::RULES.iter().flat_map(|group| group.names.iter().map(|name| ((*name).to_owned(), group.check)));
    let of_types = defaults::ADMIN_TYPES.iter().map(|name| (type_rule(name), defaults::OF_ADMIN_TYPES));
    let mut all: Vec<_> = of_heat.chain(of_types).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
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
            Check::parse(group.check.check).unwrap();
            group.check.deprecated.map(|text| Check::parse(text).unwrap());
        }
    }
}
