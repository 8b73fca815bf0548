//! Groups: resource types whose nested stack has members that are counted and scaled.

use kiln_value::{Map, Value};

use crate::{Facts, Rescale};

/// The rules of a group.
pub trait Group: Send + Sync {
    /// The names of the resources that get the members of this group when they change
    /// ([`crate::NestedStack::with_members`]).
    fn load_balancers(&self, facts: &Facts) -> Vec<String> {
        let _ = facts;
        Vec::new()
    }

    /// The number of members of a new group, if they all have the definition of [`crate::NestedStack::draft`]: they are
    /// counted before any of them is built.
    fn initial_size(&self, facts: &Facts) -> Option<usize> {
        let _ = facts;
        None
    }

    /// Whether the members of a group are in the order of their age, without the failed ones, for
    /// [`crate::NestedStack::attribute`].
    fn members_by_age(&self) -> bool {
        false
    }

    /// The metadata of a group after its create or update, with the number of its healthy members; `None`: they do not
    /// change.
    fn completed(&self, facts: &Facts, size: usize, now: f64) -> Option<Map> {
        let _ = (facts, size, now);
        None
    }

    /// How a group with these members changes its size ([`crate::ScaleRequest`]); `None`: it does not. Not called while
    /// the nested stack is changing.
    fn rescale(&self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        let _ = (facts, adjustment, now);
        None
    }

    /// The metadata of a group after [`Group::rescale`].
    fn rescaled(&self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        let _ = (adjustment, succeeded, now);
        facts.metadata.as_map().cloned().unwrap_or_default()
    }

    /// The attribute of members whose list is an attribute of this name, if the nested stack has no such output: groups
    /// have outputs only for what templates read.
    fn member_attribute(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }
}
