//! Hooks: places where an operation stops until a user clears them.
//!
//! The hook at which a resource waits, or which it has passed in this request, is an entry of its data: so any engine
//! waits on, and none stops twice at the same hook.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use kiln_resource::{Action, Resource};
use kiln_template::environment::Registry;
use kiln_value::{Value, value};

/// The entry of a resource's data.
const ENTRY: &str = "kiln_hook";

/// A place where an operation stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Before the create of a resource, when a stack is created.
    PreCreate,
    /// Before a resource is compared with the template, when a stack is updated.
    PreUpdate,
    /// Before the delete of a resource, when a stack is deleted.
    PreDelete,
    /// After the create.
    PostCreate,
    /// After an update in place.
    PostUpdate,
    /// After the delete.
    PostDelete,
}

/// The hooks of the resources of a stack, by name.
pub type Hooks = BTreeMap<String, BTreeSet<Hook>>;

impl Hook {
    const ALL: [Self; 6] =
        [Self::PreCreate, Self::PreUpdate, Self::PreDelete, Self::PostCreate, Self::PostUpdate, Self::PostDelete];

    /// Heat's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreCreate => "pre-create",
            Self::PreUpdate => "pre-update",
            Self::PreDelete => "pre-delete",
            Self::PostCreate => "post-create",
            Self::PostUpdate => "post-update",
            Self::PostDelete => "post-delete",
        }
    }

    /// The operation that stops.
    pub(crate) fn operation(self) -> Action {
        match self {
            Self::PreCreate | Self::PostCreate => Action::Create,
            Self::PreUpdate | Self::PostUpdate => Action::Update,
            Self::PreDelete | Self::PostDelete => Action::Delete,
        }
    }

    /// Whether the operation stops before it starts.
    pub(crate) fn is_before(self) -> bool {
        matches!(self, Self::PreCreate | Self::PreUpdate | Self::PreDelete)
    }

    /// Whether it applies to a request with this action (docs/heat-behaviour.md §12.2).
    pub(crate) fn applies_to(self, action: Action) -> bool {
        action == self.operation() || (action == Action::Restore && self.operation() == Action::Update)
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownHook;

impl FromStr for Hook {
    type Err = UnknownHook;

    fn from_str(word: &str) -> Result<Self, UnknownHook> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == word).ok_or(UnknownHook)
    }
}

/// The hooks of these resources.
pub fn hooks_of<'n>(registry: &Registry, names: impl IntoIterator<Item = &'n str>) -> Hooks {
    let hooks = |name: &str| Hook::ALL.into_iter().filter(|hook| registry.has_hook(name, hook.as_str())).collect();
    let all = names.into_iter().map(|name| (name.to_owned(), hooks(name)));
    all.filter(|(_, hooks): &(String, BTreeSet<Hook>)| !hooks.is_empty()).collect()
}

/// The hook of a resource in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) hook: Hook,
    /// Number of the request.
    pub(crate) generation: i64,
    /// Whether the resource waits there; otherwise the hook is cleared.
    pub(crate) waits: bool,
}

impl Reached {
    /// The hook that a row has reached last.
    pub(crate) fn of(row: &Resource) -> Option<Self> {
        let entry = row.data.get(ENTRY)?;
        Some(Self {
            hook: entry.str_at("hook")?.parse().ok()?,
            generation: entry.get("generation")?.as_i64()?,
            waits: entry.get("waits").is_some_and(Value::is_truthy),
        })
    }

    pub(crate) fn store(self, row: &mut Resource) {
        let entry = value!({ "hook": (self.hook.as_str()), "generation": (self.generation), "waits": (self.waits) });
        row.data.insert(ENTRY.to_owned(), entry);
    }
}

/// The hook at which a resource waits.
pub fn waits_at(row: &Resource) -> Option<Hook> {
    Reached::of(row).filter(|reached| reached.waits).map(|reached| reached.hook)
}
