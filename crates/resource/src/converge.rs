//! Which resources an update compares with their objects first, to repair them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// How a resource is compared with its object before an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Converging {
    /// Not at all.
    #[default]
    None,
    /// Names mean what they mean today, as in Heat.
    NamesOfToday,
    /// Names keep their objects: the repair of drift.
    KeptNames,
}

/// All resources, none, or those with certain paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converge {
    #[serde(rename = "converge", default, skip_serializing_if = "std::ops::Not::not")]
    is_on: bool,
    /// Empty: all.
    #[serde(rename = "converge_only", default, skip_serializing_if = "BTreeSet::is_empty")]
    only: BTreeSet<String>,
    #[serde(rename = "converge_keeps_names", default, skip_serializing_if = "std::ops::Not::not")]
    keeps_names: bool,
}

impl Converge {
    /// All resources.
    pub fn all() -> Self {
        Self { is_on: true, ..Self::default() }
    }

    /// The resources with these paths, and all in their nested stacks: `group/0/server`. Names keep their objects. An empty set
    /// means none.
    pub fn only(paths: BTreeSet<String>) -> Self {
        let is_on = !paths.is_empty();
        Self { is_on, only: paths, keeps_names: is_on }
    }

    /// Whether any resource is compared.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether some resources are compared and others are not.
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// The paths that are compared; none if all or no resources are.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.only.iter().map(String::as_str)
    }

    /// How a resource of the stack is compared.
    pub fn of(&self, name: &str) -> Converging {
        match (self.covers(name), self.keeps_names) {
            (false, _) => Converging::None,
            (true, false) => Converging::NamesOfToday,
            (true, true) => Converging::KeptNames,
        }
    }

    fn covers(&self, name: &str) -> bool {
        self.is_on && (self.only.is_empty() || self.only.contains(name))
    }

    /// What is compared in the nested stack of a resource.
    #[must_use]
    pub fn inside(&self, name: &str) -> Self {
        if !self.is_on || self.covers(name) {
            return Self { only: BTreeSet::new(), ..self.clone() };
        }
        let below = |path: &String| Some(path.strip_prefix(name)?.strip_prefix('/')?.to_owned());
        Self::only(self.only.iter().filter_map(below).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(paths: &[&str]) -> Converge {
        Converge::only(paths.iter().map(|path| (*path).to_owned()).collect())
    }

    #[test]
    fn a_path_covers_its_resource_and_what_is_below() {
        let some = only(&["server", "group/0/port", "app"]);
        assert!(some.covers("server") && !some.covers("group") && !some.covers("port"));
        assert_eq!(some.inside("group"), only(&["0/port"]));
        assert_eq!(some.inside("group").inside("0").of("port"), Converging::KeptNames);
        assert_eq!((some.inside("app").of("any"), some.of("group")), (Converging::KeptNames, Converging::None));
        assert_eq!(Converge::all().inside("a").of("b"), Converging::NamesOfToday);
        assert_eq!(some.inside("other"), Converge::default());
        assert_eq!((Converge::all().inside("a"), only(&[])), (Converge::all(), Converge::default()));
    }

    #[test]
    fn the_record_of_the_release_before_is_read() {
        let of = |text: &str| serde_json::from_str::<Converge>(text).expect("valid");
        assert_eq!((of("{}"), of(r#"{"converge":true}"#)), (Converge::default(), Converge::all()));
        let some = only(&["a"]);
        assert_eq!(of(&serde_json::to_string(&some).expect("valid")), some);
        assert_eq!(serde_json::to_string(&Converge::default()).expect("valid"), "{}");
    }
}
