//! Custom constraints, which are evaluated outside of this crate.

use kiln_value::{Value, text};

/// Evaluates custom constraints.
///
/// Results must be available immediately: implementations for constraints of the cloud send their requests beforehand.
pub trait CustomConstraints {
    /// Checks a value against the constraint with this name (`neutron.network`).
    ///
    /// Errors: the complete message, or [`not_found`] if the constraint does not exist.
    fn validate(&self, name: &str, value: &Value) -> Result<(), String>;
}

/// Accepts every value: used where custom constraints are checked elsewhere or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl CustomConstraints for AcceptAll {
    fn validate(&self, _name: &str, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// The message for an unknown constraint.
pub fn not_found(name: &str, value: &Value) -> String {
    format!("\"{}\" does not validate {name} (constraint not found)", text::str(value))
}
