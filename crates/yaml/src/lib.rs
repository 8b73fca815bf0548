//! YAML 1.1 and JSON text to values, exactly as PyYAML and Heat read it.
//!
//! [`parse`] reads YAML (of which JSON is nearly a part), [`json::parse`] JSON as Python's `json` does. Both keep the
//! place of every key and value, and both refuse what would cost unbounded time, memory or stack.

pub mod json;

/// Deeper nesting than this is refused, so that nobody who walks a value can run out of stack. Heat itself fails on
/// templates of some hundred levels.
pub const MAX_DEPTH: usize = 256;
