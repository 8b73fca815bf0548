//! The standard library: functions by name.

mod boolean;
mod branching;
mod collections;
mod comparison;
mod datetime;
mod generators;
mod grouping;
mod math;
mod queries;
mod regex;
mod search;
mod sets;
mod slices;
mod strings;
mod system;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::parameter::Overload;

/// All functions of one name.
#[derive(Debug, Default)]
struct FunctionEntry {
    library: Vec<Overload>,
    /// Used only if nothing in the library matches.
    fallback: Vec<Overload>,
}

static LIBRARY: LazyLock<HashMap<&'static str, FunctionEntry>> = LazyLock::new(|| {
    let mut library: HashMap<_, FunctionEntry> = HashMap::new();
    let groups = [
        boolean::FUNCTIONS,
        branching::FUNCTIONS,
        collections::FUNCTIONS,
        comparison::FUNCTIONS,
        datetime::FUNCTIONS,
        datetime::PROPERTIES,
        generators::FUNCTIONS,
        grouping::FUNCTIONS,
        math::FUNCTIONS,
        queries::FUNCTIONS,
        regex::FUNCTIONS,
        search::FUNCTIONS,
        sets::FUNCTIONS,
        slices::FUNCTIONS,
        strings::FUNCTIONS,
        system::FUNCTIONS,
    ];
    for overload in groups.into_iter().flatten() {
        library.entry(overload.name).or_default().library.push(*overload);
    }
    for overload in system::FALLBACKS {
        library.entry(overload.name).or_default().fallback.push(*overload);
    }
    library
});

/// The overloads of a name in the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overloads(Option<&'static FunctionEntry>);

impl Overloads {
    /// Overloads by distance, nearest first.
    pub(crate) fn levels(self) -> impl Iterator<Item = (usize, &'static [Overload])> {
        self.0.into_iter().flat_map(|entry| [(0, entry.library.as_slice()), (1, entry.fallback.as_slice())])
    }
}

/// The names of all functions and methods that an expression can call, sorted, for completion in editors.
pub fn functions() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = LIBRARY.keys().copied().filter(|name| name.starts_with(char::is_alphabetic)).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Looks up a name. Trailing underscores are ignored.
pub(crate) fn find(name: &str) -> Overloads {
    Overloads(LIBRARY.get(name.trim_end_matches('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_of_methods_are_evaluated() {
        for overload in LIBRARY.values().flat_map(|entry| &entry.library).filter(|overload| overload.suits(true)) {
            let receiver = overload.param(0).unwrap_or_else(|| panic!("{} has no parameters", overload.name));
            assert!(!receiver.kind.is_lazy(), "{}", overload.name);
        }
    }

    #[test]
    fn optional_parameters_come_last() {
        for overload in LIBRARY.values().flat_map(|entry| &entry.library) {
            let optional = overload.params.iter().skip_while(|param| param.default.is_none());
            assert!(optional.clone().all(|param| param.default.is_some()), "{}", overload.name);
        }
    }
}
