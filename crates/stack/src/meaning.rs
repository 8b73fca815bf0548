//! Names that mean another object than when a resource was last changed. Nothing follows from it until a request says so.

use kiln_resource::names::KeptNames;
use kiln_resource::translation::Answers;

/// A name in the properties of a resource that means another object today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMeaning {
    /// The place of the name: `networks[0].network`.
    pub property: String,
    /// The name.
    pub name: String,
    /// The ID that the name had at the last change of the resource.
    pub kept: String,
    /// The ID that it has today.
    pub current: String,
}

/// The names with other IDs today; names without an answer mean nothing any more. Releases up to 0.1 did not store the IDs
/// of some names.
pub fn new_meanings(kept: KeptNames, today: &Answers) -> Vec<NewMeaning> {
    let known = kept.into_iter().filter(|(_, kept)| kept.id != kept.lookup.value);
    let changed = known.filter_map(|(place, kept)| {
        let current = today.get(&kept.lookup).filter(|current| **current != kept.id)?.clone();
        Some(NewMeaning { property: place.to_string(), name: kept.lookup.value, kept: kept.id, current })
    });
    changed.collect()
}
