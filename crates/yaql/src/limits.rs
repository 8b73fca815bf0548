//! Limits of an evaluation.

/// Limits of an evaluation. [`Limits::default`] has Heat's defaults (`[yaql] limit_iterators`, `memory_quota`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of items of a collection that a function iterates over; `None` for no limit.
    pub iterations: Option<usize>,
    /// Maximum size of a value in bytes, as in CPython; `None` for no limit.
    pub memory: Option<usize>,
    /// Maximum number of steps of the evaluation. The reference has no such limit and may run forever
    /// (`sequence().len()`); the default is far above what the other two limits allow in practice.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { iterations: Some(200), memory: Some(10_000), steps: 10_000_000 }
    }
}

impl Limits {
    /// No limits except for steps: for trusted expressions.
    pub fn unlimited() -> Self {
        Self { iterations: None, memory: None, ..Self::default() }
    }
}
