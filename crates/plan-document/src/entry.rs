//! A resource in a plan.

use serde::{Deserialize, Serialize};

use crate::{Bounds, Decision, Downtime, OutsideChange, Property, Risk};

/// A resource and what happens to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path through the nested stacks: `group/0`.
    pub path: String,
    /// Whether another resource has this path now: it is what an earlier replacement has left, or a part of a nested stack
    /// that is replaced as a whole.
    #[serde(default, skip_serializing_if = "is_default")]
    pub former: bool,
    /// Its name before the change, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The path of the resource that owns its nested stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its type, as the template names it.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The ID of its current object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What is done with it.
    pub decision: Bounds,
    /// The risk of the most that is done with it.
    pub risk: Risk,
    /// How it is away meanwhile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub downtime: Downtime,
    /// Whether its object is left in the cloud, although it is deleted or replaced: `deletion_policy: Retain`, or an
    /// abandoned stack.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retained: bool,
    /// What is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Loss>,
    /// The properties that change; of a new resource those that are given, and of a deleted one those that there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// Why it is replaced or refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The values that are known only later, and on which the decision depends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<Awaited>,
    /// What the content of its nested stack depends on, if that is known only later: then there are no entries for the
    /// resources that it will have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Awaited>,
    /// The guard that forbids what is done with it at most: its ID, its author, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The properties of which guards ignore what others do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Ignored>,
    /// The names in its properties that mean other objects than at its last change, and which it keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NewMeaning>,
    /// What others have changed in its object. Only of a plan that has read the objects, and only of resources that it
    /// changes or deletes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
    /// Where it is in the templates; a deleted resource may be in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
    /// The paths of the resources that are done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// A property of which a guard ignores what others do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ignored {
    /// Its name.
    pub property: String,
    /// Whether it is not written either, although the template changes it.
    pub leaves: bool,
    /// The guard: its ID, its author, and the reason.
    pub guard: String,
}

impl Entry {
    /// A resource that stays as it is.
    pub fn kept(path: String, resource_type: String) -> Self {
        let parent = path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        Self {
            path,
            former: false,
            moved_from: None,
            parent,
            resource_type,
            object: None,
            decision: Bounds::certain(Decision::Keep),
            risk: Risk::None,
            downtime: Downtime::None,
            retained: false,
            lost: Vec::new(),
            properties: Vec::new(),
            reasons: Vec::new(),
            awaited: Vec::new(),
            content: None,
            guard: None,
            ignored: Vec::new(),
            names: Vec::new(),
            outside: Vec::new(),
            source: None,
            waits_for: Vec::new(),
        }
    }

    /// Whether it certainly stays as it is, with its name.
    pub fn is_unchanged(&self) -> bool {
        self.decision.is_kept() && self.moved_from.is_none()
    }

    /// Its name in its stack.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether its object is or may be deleted, replaced or damaged.
    pub fn destroys(&self) -> bool {
        self.risk >= Risk::Replacement || matches!(self.decision.at_most, Decision::Replace | Decision::Delete)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Something that a change destroys, and that cannot be created anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// `volume`, `disk`, `address` and so on, as the resource type says.
    pub kind: String,
    /// In words: `the volume's data`.
    pub what: String,
}

/// A value that is known only later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The property; empty if it is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub property: String,
    /// Where it comes from: `resource` or `resource.attribute`.
    pub known_after: String,
}

/// A name that means another object than at the last change of the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMeaning {
    /// The property.
    pub property: String,
    /// The name.
    pub name: String,
    /// The ID of the object that the resource keeps.
    pub kept: String,
    /// The ID of the object that the name means now.
    pub current: String,
}

/// A place in a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The name of the template among the files; none is the template of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The place in it: `resources.server`.
    pub path: String,
}
