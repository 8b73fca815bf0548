//! Custom constraints, which are evaluated outside of this crate.

use kiln_value::{Value, text};

/// Who judges custom constraints.
///
/// The answer must be at hand: whoever implements this for constraints of the cloud has asked it before.
pub trait CustomConstraints {
    /// Judges a value by the constraint of a name (`neutron.network`).
    ///
    /// Errors: the whole message to show, [`not_found`] if there is no such constraint.
    fn validate(&self, name: &str, value: &Value) -> Result<(), String>;
}

/// Accepts everything: for where custom constraints are judged elsewhere or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl CustomConstraints for AcceptAll {
    fn validate(&self, _name: &str, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// The message for a constraint that nobody knows.
pub fn not_found(name: &str, value: &Value) -> String {
    format!("\"{}\" does not validate {name} (constraint not found)", text::str(value))
}
