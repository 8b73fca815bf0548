//! The members of a group, for drivers that generate the next template of a nested stack from the current one.

use indexmap::IndexMap;
use kiln_value::Value;

/// A resource of the nested stack of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Logical name in the nested stack.
    pub name: String,
    /// Its definition in the template that was last requested for the nested stack.
    pub definition: Value,
    /// Whether its state is FAILED.
    pub failed: bool,
    /// Its reference ID.
    pub reference: Value,
}

impl Member {
    /// The reference IDs of members, by name.
    pub fn references(members: &[Self]) -> IndexMap<String, Value> {
        members.iter().map(|member| (member.name.clone(), member.reference.clone())).collect()
    }
}
