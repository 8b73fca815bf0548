//! Mappings of resource types, and settings of individual resources.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use kiln_value::{Class, Diagnostic, Map, Value, glob, text};

/// The points at which a hook can pause a resource.
pub const HOOKS: [&str; 6] = ["pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete"];

/// The actions that can be restricted for a resource.
pub const RESTRICTED_ACTIONS: [&str; 2] = ["update", "replace"];

/// The `resource_registry` of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Registry {
    pub(super) root: Branch,
}

/// A level of the registry.
pub(super) type Branch = IndexMap<String, Node>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A nested level: `resources`, or one resource in it.
    Branch(Branch),
    /// The mapping of a type.
    RegistryEntry(RegistryEntry),
    /// `hooks` or `restricted_actions`, as written.
    Item(Value),
}

/// The mapping of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegistryEntry {
    /// The keys that lead to it; the last is the type or a pattern.
    pub(super) path: Vec<String>,
    /// Another type, a pattern, or a template.
    pub(super) value: String,
    pub(super) kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A template: a file or URL.
    Template,
    /// Another type.
    Alias,
    /// A mapping for all types with this prefix.
    Wildcard,
}

/// Whether a type, or its mapping, is a template, judged by its name.
pub(super) fn is_template(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "template"))
}

impl RegistryEntry {
    pub(super) fn new(path: Vec<String>, value: &str) -> Self {
        let name = path.last().map(String::as_str).unwrap_or_default();
        let (kind, value) = if is_template(name) {
            (EntryKind::Template, name.to_owned())
        } else if is_template(value) {
            (EntryKind::Template, value.to_owned())
        } else if name.ends_with('*') {
            (EntryKind::Wildcard, value.to_owned())
        } else {
            (EntryKind::Alias, value.to_owned())
        };
        Self { path, value, kind }
    }

    /// The last key.
    pub(super) fn name(&self) -> &str {
        self.path.last().map(String::as_str).unwrap_or_default()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self { root: Branch::from_iter([("resources".to_owned(), Node::Branch(Branch::new()))]) }
    }
}

impl Registry {
    /// Adds entries. A null removes entries: with a name that ends in `*`, all with this prefix.
    ///
    /// Errors: `InvalidBreakPointHook`, `InvalidRestrictedAction`; `AttributeError` for an invalid mapping.
    pub fn load(&mut self, entries: &Map) -> Result<(), Diagnostic> {
        load(&mut self.root, &mut Vec::new(), entries)
    }

    /// The registry as written in environments.
    pub fn to_value(&self) -> Value {
        branch_value(&self.root)
    }

    /// Whether the resource has this hook.
    pub fn has_hook(&self, resource_name: &str, hook: &str) -> bool {
        self.settings_of(resource_name, "hooks").any(|hooks| words(hooks).any(|word| word == hook))
    }

    /// The restricted actions of the resource.
    pub fn restricted_actions(&self, resource_name: &str) -> BTreeSet<&str> {
        self.settings_of(resource_name, "restricted_actions").flat_map(words).collect()
    }

    /// The items with a key for all names in `resources` that match the resource.
    fn settings_of(&self, resource_name: &str, key: &'static str) -> impl Iterator<Item = &Value> {
        let matching =
            self.resources().into_iter().flatten().filter(move |(name, _)| glob::matches(name, resource_name));
        matching.filter_map(move |(_, node)| match node {
            Node::Branch(branch) => match branch.get(key) {
                Some(Node::Item(item)) => Some(item),
                _ => None,
            },
            _ => None,
        })
    }

    /// The nested level `resources`.
    pub(super) fn resources(&self) -> Option<&Branch> {
        match self.root.get("resources") {
            Some(Node::Branch(branch)) => Some(branch),
            _ => None,
        }
    }
}

/// The string, or the strings in the list.
fn words(item: &Value) -> impl Iterator<Item = &str> {
    item.as_str().into_iter().chain(item.as_list().unwrap_or_default().iter().filter_map(Value::as_str))
}

fn load(root: &mut Branch, path: &mut Vec<String>, entries: &Map) -> Result<(), Diagnostic> {
    for (key, value) in entries {
        let node = match value {
            Value::Null => None,
            value if is_item(key, value)? => Some(Node::Item(value.clone())),
            Value::Map(below) => {
                path.push(key.clone());
                load(root, path, below)?;
                path.pop();
                continue;
            }
            value => Some(Node::RegistryEntry(entry(path, key, value)?)),
        };
        at_level(root, path, |level| match node {
            Some(node) => _ = level.insert(key.clone(), node),
            None => remove(level, key),
        });
    }
    Ok(())
}

fn entry(path: &[String], key: &str, value: &Value) -> Result<RegistryEntry, Diagnostic> {
    let path: Vec<String> = path.iter().map(String::as_str).chain([key]).map(str::to_owned).collect();
    match value {
        Value::Str(value) => Ok(RegistryEntry::new(path, value)),
        // Only the name matters.
        _ if is_template(key) => Ok(RegistryEntry::new(path, key)),
        other => {
            let message = format!("'{}' object has no attribute 'support_status'", other.kind().python_name());
            let hint = format!("{} must be the name of a resource type or template", path.join("."));
            Err(Diagnostic::new(Class::AttributeError, message).hint(hint))
        }
    }
}

/// Changes the level at a path. Missing levels are created.
fn at_level(branch: &mut Branch, path: &[String], change: impl FnOnce(&mut Branch)) {
    let Some((key, rest)) = path.split_first() else { return change(branch) };
    let node = branch.entry(key.clone()).or_insert_with(|| Node::Branch(Branch::new()));
    if !matches!(node, Node::Branch(_)) {
        *node = Node::Branch(Branch::new());
    }
    if let Node::Branch(below) = node {
        at_level(below, rest, change);
    }
}

fn remove(branch: &mut Branch, name: &str) {
    match name.strip_suffix('*') {
        Some(prefix) => branch.retain(|key, node| !(matches!(node, Node::RegistryEntry(_)) && key.starts_with(prefix))),
        None => _ = branch.shift_remove(name),
    }
}

/// Whether this is a valid `hooks` or `restricted_actions` entry, rather than a type.
fn is_item(key: &str, value: &Value) -> Result<bool, Diagnostic> {
    let valid = |allowed: &[&str]| match value {
        Value::Str(word) => allowed.contains(&word.as_str()),
        Value::List(words) => words.iter().all(|word| word.as_str().is_some_and(|word| allowed.contains(&word))),
        _ => false,
    };
    let shown = |allowed: &[&str]| {
        let quoted: Vec<String> = allowed.iter().map(|word| text::quote(word)).collect();
        format!("({})", quoted.join(", "))
    };
    let (class, message) = match key {
        "hooks" if !valid(&HOOKS) => (
            Class::InvalidBreakPointHook,
            format!(
                "Invalid hook type \"{}\" for resource breakpoint, acceptable hook types are: {}",
                text::str(value),
                shown(&HOOKS)
            ),
        ),
        "restricted_actions" if !valid(&RESTRICTED_ACTIONS) => (
            Class::InvalidRestrictedAction,
            format!(
                "Invalid restricted_action type \"{}\" for resource, acceptable restricted_action types are: {}",
                text::str(value),
                shown(&RESTRICTED_ACTIONS)
            ),
        ),
        _ => return Ok(matches!(key, "hooks" | "restricted_actions")),
    };
    Err(Diagnostic::new(class, message))
}

fn branch_value(branch: &Branch) -> Value {
    branch
        .iter()
        .map(|(key, node)| {
            let value = match node {
                Node::Branch(below) => branch_value(below),
                Node::RegistryEntry(entry) => entry.value.as_str().into(),
                Node::Item(item) => item.clone(),
            };
            (key.clone(), value)
        })
        .collect()
}
