//! Custom constraints of the operator, which a program checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kiln_value::Value;

use crate::{Cloud, Finders};

/// Checks values against constraints of the operator.
#[async_trait]
pub trait ConstraintCheck: Send + Sync {
    /// Checks a value against the constraint with this name. The cloud has the credentials of the user.
    ///
    /// # Errors
    /// The reason why the value is refused, or why it could not be checked.
    async fn check(&self, cloud: &dyn Cloud, name: &str, value: &Value) -> Result<(), String>;
}

/// The constraints that are known at the start: those of finders in definition files, and those of the operator, with
/// what checks them.
#[derive(Clone, Default)]
pub struct OwnConstraints {
    finders: Finders,
    checks: Arc<BTreeMap<String, Arc<dyn ConstraintCheck>>>,
}

impl OwnConstraints {
    /// The constraints of these finders.
    pub fn of(finders: Finders) -> Self {
        Self { finders, checks: Arc::default() }
    }

    /// The same with constraints of the operator.
    #[must_use]
    pub fn with(self, checks: impl IntoIterator<Item = (String, Arc<dyn ConstraintCheck>)>) -> Self {
        Self { checks: Arc::new(checks.into_iter().collect()), ..self }
    }

    /// What checks the constraint with this name.
    pub fn get(&self, name: &str) -> Option<&dyn ConstraintCheck> {
        self.checks.get(name).map(|check| &**check)
    }

    /// Whether a constraint with this name asks the cloud for an object.
    pub fn is_of_cloud(&self, name: &str) -> bool {
        self.finders.get(name).is_some()
    }
}

impl fmt::Debug for OwnConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.finders.names()).entries(self.checks.keys()).finish()
    }
}

impl PartialEq for OwnConstraints {
    /// Whether they have the same finders, and the same names of constraints.
    fn eq(&self, other: &Self) -> bool {
        self.finders == other.finders && self.checks.keys().eq(other.checks.keys())
    }
}
