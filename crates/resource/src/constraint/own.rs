//! Custom constraints of the operator, which a program checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kiln_value::Value;

use crate::Cloud;

/// Checks values against constraints of the operator.
#[async_trait]
pub trait ConstraintCheck: Send + Sync {
    /// Checks a value against the constraint with this name. The cloud has the credentials of the user.
    ///
    /// # Errors The reason why the value is refused, or why it could not be checked.
    async fn check(&self, cloud: &dyn Cloud, name: &str, value: &Value) -> Result<(), String>;
}

/// The constraints of the operator by name, with what checks them.
#[derive(Clone, Default)]
pub struct OwnConstraints(Arc<BTreeMap<String, Arc<dyn ConstraintCheck>>>);

impl OwnConstraints {
    /// What checks the constraint with this name.
    pub fn get(&self, name: &str) -> Option<&dyn ConstraintCheck> {
        self.0.get(name).map(|check| &**check)
    }

    /// Whether a constraint of Kiln has this name.
    pub fn is_taken(name: &str) -> bool {
        super::CLOUD.contains(&name) || super::local(name, &Value::Null, 0.0).is_some()
    }
}

impl FromIterator<(String, Arc<dyn ConstraintCheck>)> for OwnConstraints {
    fn from_iter<I: IntoIterator<Item = (String, Arc<dyn ConstraintCheck>)>>(checks: I) -> Self {
        Self(Arc::new(checks.into_iter().collect()))
    }
}

impl fmt::Debug for OwnConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PartialEq for OwnConstraints {
    /// Whether they have the same names.
    fn eq(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}
