//! Lookup of the implementation of a resource type.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use kiln_value::{Class, Diagnostic, Subject, Value};

use super::registry::{EntryKind, Node, RegistryEntry, is_template};
use super::{Environment, Globals, Registry};

/// Longer chains of aliases are considered circular.
const MAX_ALIASES: usize = 64;

/// The implementation of a resource type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// A type of the service.
    Type(String),
    /// A template: the key of a file, or a URL.
    Template(String),
}

/// The implementation of a resource type and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The implementation.
    pub resolved: Resolved,
    /// Whether the user's environment defines it; such templates may not be read from `file:` URLs.
    pub user: bool,
}

/// A candidate for the implementation: an entry of the user's or the service's registry, or the type itself.
enum Candidate<'a> {
    User(&'a RegistryEntry),
    Global(&'a RegistryEntry),
    Type,
}

impl Candidate<'_> {
    /// Entries of the user come first, then more specific ones, then by name: wildcards come before the names they
    /// match.
    fn rank<'b>(&'b self, resource_type: &'b str) -> (bool, Reverse<usize>, Vec<&'b str>) {
        match self {
            Self::User(entry) | Self::Global(entry) => {
                let path: Vec<&str> = entry.path.iter().map(String::as_str).collect();
                (matches!(self, Self::Global(_)), Reverse(path.len()), path)
            }
            Self::Type => (true, Reverse(1), vec![resource_type]),
        }
    }
}

impl Registry {
    /// The entries for a type, and for a resource if a name is given.
    fn entries(&self, resource_type: &str, resource_name: Option<&str>) -> Vec<&RegistryEntry> {
        let of_resource = resource_name
            .and_then(|name| match self.resources()?.get(name)? {
                Node::Branch(branch) => branch.get(resource_type),
                _ => None,
            })
            .and_then(entry);
        let of_type = self.root.get(resource_type).and_then(entry);
        let of_patterns = self.root.iter().filter(|(key, _)| key.ends_with('*')).filter_map(|(_, node)| entry(node));
        let matching = of_patterns.filter(|entry| {
            let prefix = entry.name().strip_suffix('*');
            // A wildcard that refers to this type would never end.
            entry.kind == EntryKind::Wildcard
                && entry.value != resource_type
                && prefix.is_some_and(|prefix| resource_type.starts_with(prefix))
        });
        of_resource.into_iter().chain(of_type).chain(matching).collect()
    }
}

fn entry(node: &Node) -> Option<&RegistryEntry> {
    match node {
        Node::RegistryEntry(entry) => Some(entry),
        _ => None,
    }
}

fn not_found(resource_type: &str) -> Diagnostic {
    let message = format!("The Resource Type ({resource_type}) could not be found.");
    Diagnostic::new(Class::EntityNotFound, message).about(Subject::ResourceType(resource_type.to_owned()))
}

/// A lookup in the user's registry and then the service's, or in the service's alone.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    user: Option<&'a Registry>,
    globals: &'a Globals,
    resource_name: Option<&'a str>,
    notes: &'a Notes,
}

/// Results that are collected during a lookup.
#[derive(Default)]
struct Notes {
    /// Entries that the environment is to remember, see [`Environment::resolve`].
    remembered: RefCell<Vec<(String, RegistryEntry)>>,
    /// Types without an implementation, in the user's registry or the service's alone. Without this set, a lookup would
    /// take exponential time where several aliases lead to the same type at every step.
    missing: RefCell<BTreeSet<(bool, String)>>,
}

impl Lookup<'_> {
    fn find(&self, resource_type: &str, aliases: usize) -> Result<Found, Diagnostic> {
        if aliases > MAX_ALIASES {
            let message = format!("The resource type {resource_type} is an alias of itself.");
            return Err(Diagnostic::invalid(message));
        }
        let place = (self.user.is_some(), resource_type.to_owned());
        if self.notes.missing.borrow().contains(&place) {
            return Err(not_found(resource_type));
        }
        // A template name is a type without registration; only the user may specify one.
        let unknown = self.user.is_some_and(|user| !user.root.contains_key(resource_type));
        let named = (unknown && is_template(resource_type))
            .then(|| RegistryEntry::new(vec![resource_type.to_owned()], resource_type));
        if let Some(entry) = &named {
            self.remember(resource_type, entry);
        }
        let user = self.user.map(|user| user.entries(resource_type, self.resource_name)).unwrap_or_default();
        let global = self.globals.registry.entries(resource_type, self.resource_name);
        let own = self.globals.has_type(resource_type).then_some(Candidate::Type);
        let mut candidates: Vec<Candidate<'_>> = named.iter().chain(user).map(Candidate::User).collect();
        candidates.extend(global.into_iter().map(Candidate::Global).chain(own));
        candidates.sort_by(|a, b| a.rank(resource_type).cmp(&b.rank(resource_type)));
        for candidate in candidates {
            match self.follow(&candidate, resource_type, aliases) {
                Err(error) if error.class == Class::EntityNotFound => {}
                decided => return decided,
            }
        }
        self.notes.missing.borrow_mut().insert(place);
        Err(not_found(resource_type))
    }

    fn follow(&self, candidate: &Candidate<'_>, resource_type: &str, aliases: usize) -> Result<Found, Diagnostic> {
        let (entry, user) = match candidate {
            Candidate::Type => {
                let resolved = Resolved::Type(resource_type.to_owned());
                return Ok(Found { resolved, user: false });
            }
            Candidate::User(entry) => (entry, true),
            Candidate::Global(entry) => (entry, false),
        };
        let next = match entry.kind {
            EntryKind::Template => {
                return Ok(Found { resolved: Resolved::Template(entry.value.clone()), user });
            }
            EntryKind::Alias => entry.value.clone(),
            EntryKind::Wildcard => match (entry.value.strip_suffix('*'), entry.name().strip_suffix('*')) {
                (Some(to), Some(from)) => format!("{to}{}", resource_type.strip_prefix(from).unwrap_or(resource_type)),
                _ => entry.value.clone(),
            },
        };
        // An alias of the service is resolved with the service's registry only.
        let lookup = Lookup { user: self.user.filter(|_| user), ..*self };
        let found = lookup.find(&next, aliases + 1)?;
        if self.user.is_some() && !found.user {
            self.remember(resource_type, entry);
        }
        Ok(found)
    }

    fn remember(&self, resource_type: &str, entry: &RegistryEntry) {
        self.notes.remembered.borrow_mut().push((resource_type.to_owned(), entry.clone()));
    }
}

impl Environment {
    /// The implementation of a resource type, for the resource with this name.
    ///
    /// Errors: `EntityNotFound` for an unknown type, `StackValidationFailed` for an alias of itself.
    pub fn lookup(
        &self,
        globals: &Globals,
        resource_type: &str,
        resource_name: Option<&str>,
    ) -> Result<Found, Diagnostic> {
        self.lookup_noting(globals, resource_type, resource_name, &Notes::default())
    }

    fn lookup_noting(
        &self,
        globals: &Globals,
        resource_type: &str,
        resource_name: Option<&str>,
        notes: &Notes,
    ) -> Result<Found, Diagnostic> {
        Lookup { user: Some(&self.registry), globals, resource_name, notes }.find(resource_type, 0)
    }

    /// As [`Environment::lookup`], and remembers what Heat remembers: template names used as types and followed aliases
    /// become entries of the user's registry, so that they do not change with the service's registry.
    ///
    /// Errors: as [`Environment::lookup`].
    pub fn resolve(
        &mut self,
        globals: &Globals,
        resource_type: &str,
        resource_name: Option<&str>,
    ) -> Result<Found, Diagnostic> {
        let notes = Notes::default();
        let found = self.lookup_noting(globals, resource_type, resource_name, &notes);
        if found.as_ref().err().is_none_or(|error| error.class == Class::EntityNotFound) {
            let remembered = notes.remembered.into_inner().into_iter();
            self.registry.root.extend(remembered.map(|(name, entry)| (name, Node::RegistryEntry(entry))));
        }
        found
    }

    /// The implementation of the type of a resource as written in a template, which may be any value; remembers as
    /// [`Environment::resolve`].
    ///
    /// Errors: `StackValidationFailed`, also for an unknown type.
    pub fn implementation(
        &mut self,
        globals: &Globals,
        resource_type: &Value,
        resource_name: &str,
    ) -> Result<Found, Diagnostic> {
        let message = match resource_type {
            Value::Null => format!("Non-empty resource type is required for resource \"{resource_name}\""),
            Value::Str(name) if name.is_empty() => format!("Resource \"{resource_name}\" has no type"),
            Value::Str(name) => {
                return self.resolve(globals, name, Some(resource_name)).map_err(|mut error| {
                    error.class = Class::StackValidationFailed;
                    error
                });
            }
            _ => format!("Resource \"{resource_name}\" type is not a string"),
        };
        Err(Diagnostic::invalid(message))
    }
}
