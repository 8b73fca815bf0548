//! How much an expression may use.

/// Bounds on one evaluation. [`Limits::default`] is what Heat sets (`[yaql] limit_iterators`, `memory_quota`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most items that a collection may have where a function walks over it; `None` for no bound.
    pub iterations: Option<usize>,
    /// The most bytes that one value may take, counted as CPython lays it out; `None` for no bound.
    pub memory: Option<usize>,
    /// The most steps of the whole evaluation. The reference has no such bound and can run for ever
    /// (`sequence().len()`); the default is far beyond what the other two bounds leave room for in earnest.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { iterations: Some(200), memory: Some(10_000), steps: 10_000_000 }
    }
}

impl Limits {
    /// No bounds but the one on steps: for trusted expressions.
    pub fn unlimited() -> Self {
        Self { iterations: None, memory: None, ..Self::default() }
    }
}
