//! Type definitions: those of the profiles, and those that service templates define or import.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kiln_value::{Map, Path, Value};

use crate::Refusal;
use crate::type_file::TypeFiles;

const SIMPLE: &str = include_str!("../../../../topology-types/tosca/simple.yaml");
const NFV: &str = include_str!("../../../../topology-types/tosca/nfv.yaml");
const MEC: &str = include_str!("../../../../topology-types/tosca/mec.yaml");

/// Longer lines of descent are refused.
const MAX_ANCESTORS: usize = 64;

/// What a type describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Section {
    Node,
    Relationship,
    Capability,
    Interface,
    Data,
    Policy,
    Group,
}

impl Section {
    /// The sections whose types a document may define.
    pub(crate) const KEYS: [&'static str; 7] = [
        "node_types",
        "capability_types",
        "relationship_types",
        "data_types",
        "interface_types",
        "policy_types",
        "group_types",
    ];

    /// What names without a profile begin with.
    fn prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["tosca.nodes."],
            Self::Relationship => &["tosca.relationships."],
            Self::Capability => &["tosca.capabilities."],
            Self::Interface => &["tosca.interfaces."],
            Self::Data => &["tosca.datatypes.network.", "tosca.datatypes."],
            Self::Policy => &["tosca.policies."],
            Self::Group => &["tosca.groups."],
        }
    }

    /// The keys that a definition may have, and how a definition is called. Empty: they are not checked.
    fn keys(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Node => (
                "Node type",
                &[
                    "derived_from",
                    "metadata",
                    "properties",
                    "version",
                    "description",
                    "attributes",
                    "requirements",
                    "capabilities",
                    "interfaces",
                    "artifacts",
                ],
            ),
            Self::Relationship => (
                "Relationship type",
                &[
                    "derived_from",
                    "metadata",
                    "valid_target_types",
                    "valid_capability_types",
                    "valid_target_node_types",
                    "valid_source_node_types",
                    "interfaces",
                    "attributes",
                    "properties",
                    "description",
                    "version",
                    "credential",
                ],
            ),
            Self::Policy => (
                "Policy type",
                &[
                    "derived_from",
                    "metadata",
                    "properties",
                    "version",
                    "description",
                    "targets",
                    "triggers",
                    "type",
                    "reservation",
                ],
            ),
            Self::Group => (
                "Group type",
                &[
                    "derived_from",
                    "version",
                    "metadata",
                    "description",
                    "properties",
                    "members",
                    "interfaces",
                    "attributes",
                    "requirements",
                    "capabilities",
                ],
            ),
            Self::Interface | Self::Capability | Self::Data => ("", &[]),
        }
    }
}

/// All definitions by name.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Those of the document and its imports.
    pub(crate) custom: HashMap<String, Value>,
    /// The nodes of type files.
    files: Arc<TypeFiles>,
    profile: HashMap<String, Value>,
}

impl Definitions {
    /// The definitions of the profile of a version, and those of type files.
    pub(crate) fn of(version: &str, files: &Arc<TypeFiles>) -> Result<Self, Vec<Refusal>> {
        match version {
            "tosca_simple_profile_for_nfv_1_0_0" => Self::of_texts(&[SIMPLE, NFV], files),
            "tosca_simple_profile_for_mec_1_0_0" => Self::of_texts(&[SIMPLE, MEC], files),
            _ => Self::of_texts(&[SIMPLE], files),
        }
    }

    /// The definitions of all profiles and of type files.
    pub(crate) fn of_all_profiles(files: &Arc<TypeFiles>) -> Result<Self, Vec<Refusal>> {
        Self::of_texts(&[SIMPLE, NFV, MEC], files)
    }

    fn of_texts(texts: &[&str], files: &Arc<TypeFiles>) -> Result<Self, Vec<Refusal>> {
        let mut definitions = Self { files: Arc::clone(files), ..Self::default() };
        for text in texts {
            let document =
                kiln_yaml::parse(text).map_err(|error| vec![Refusal::new("not-yaml", &Path::root(), error.message)])?;
            let Value::Map(sections) = document.value else { continue };
            for (_, section) in sections {
                let Value::Map(types) = section else { continue };
                definitions.profile.extend(types);
            }
        }
        Ok(definitions)
    }

    /// Whether a profile defines a type of this name.
    pub(crate) fn has_profile_type(&self, name: &str) -> bool {
        self.profile.contains_key(name)
    }

    /// The full name and the definition; full names of the profile may be shortened.
    fn find(&self, section: Section, name: &str) -> Option<(String, &Map)> {
        let short = name.strip_prefix("tosca:").unwrap_or(name);
        if let Some(found) = self.custom.get(short) {
            return Some((short.to_owned(), found.as_map()?));
        }
        if section == Section::Node
            && let Some(found) = self.files.get(short)
        {
            return Some((short.to_owned(), found.definition.as_map()?));
        }
        let full = |full: String| Some((full.clone(), self.profile.get(&full)?.as_map()?));
        if short.starts_with("tosca") && short == name {
            return full(short.to_owned());
        }
        section.prefixes().iter().find_map(|prefix| full(format!("{prefix}{short}")))
    }
}

/// A type with everything that it inherits.
#[derive(Debug)]
pub(crate) struct Kind<'d> {
    pub(crate) name: String,
    /// The parent, its parent, and so on.
    pub(crate) ancestors: Vec<String>,
    /// Its own definition and those of the ancestors.
    pub(crate) line: Vec<&'d Map>,
    pub(crate) properties: Map<&'d Value>,
    pub(crate) attributes: Map<&'d Value>,
    pub(crate) capabilities: Map<&'d Value>,
    pub(crate) interfaces: Map<&'d Value>,
    /// Own requirements and those of the ancestors, also overridden ones.
    pub(crate) requirements: Vec<(String, &'d Value)>,
}

impl<'d> Kind<'d> {
    fn new(name: String, ancestors: Vec<String>, line: Vec<&'d Map>) -> Self {
        let merged = |key: &str| {
            let mut all: Map<&'d Value> = Map::new();
            for definition in &line {
                for (name, value) in definition.get(key).and_then(Value::as_map).into_iter().flatten() {
                    all.entry(name.clone()).or_insert(value);
                }
            }
            all
        };
        let mut requirements: Vec<(String, &'d Value)> = Vec::new();
        let mut seen = HashSet::new();
        for definition in &line {
            let own: Vec<(&String, &Value)> = match definition.get("requirements") {
                Some(Value::List(items)) => items.iter().filter_map(Value::as_map).flatten().collect(),
                Some(Value::Map(entries)) => entries.iter().collect(),
                _ => Vec::new(),
            };
            for (name, value) in own {
                if seen.insert((name.clone(), kiln_value::text::json(value))) {
                    requirements.push((name.clone(), value));
                }
            }
        }
        let (properties, attributes) = (merged("properties"), merged("attributes"));
        let (capabilities, interfaces) = (merged("capabilities"), merged("interfaces"));
        Self { name, ancestors, line, properties, attributes, capabilities, interfaces, requirements }
    }

    /// Whether this is the type `name` or derived from it.
    pub(crate) fn is_a(&self, name: &str) -> bool {
        self.name == name || self.ancestors.iter().any(|ancestor| ancestor == name)
    }
}

/// A type, if there is one.
type Found<'d> = Option<Rc<Kind<'d>>>;

/// Finds types, and remembers what has been found.
pub(crate) struct Types<'d> {
    definitions: &'d Definitions,
    known: RefCell<HashMap<(Section, String), Found<'d>>>,
    /// Errors in definitions that were used.
    pub(crate) refusals: RefCell<Vec<Refusal>>,
}

impl<'d> Types<'d> {
    pub(crate) fn new(definitions: &'d Definitions) -> Self {
        Self { definitions, known: RefCell::default(), refusals: RefCell::default() }
    }

    /// The type of this name; `None` if there is none.
    pub(crate) fn find(&self, section: Section, name: &str) -> Option<Rc<Kind<'d>>> {
        let key = (section, name.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let kind = self.load(section, name).map(Rc::new);
        self.known.borrow_mut().insert(key, kind.clone());
        kind
    }

    /// The names of all types that describe this. Types of profiles are recognized by their names, others by their keys.
    pub(crate) fn names(&self, section: Section) -> Vec<String> {
        let of_profile = |name: &&String| section.prefixes().iter().any(|prefix| name.starts_with(prefix));
        let of_custom = |name: &&String| {
            let ancestors = self.find(section, name).map(|kind| kind.ancestors.clone()).unwrap_or_default();
            ancestors.iter().any(|ancestor| section.prefixes().iter().any(|prefix| ancestor.starts_with(prefix)))
        };
        let custom = self.definitions.custom.keys().filter(of_custom);
        let profile = self.definitions.profile.keys().filter(of_profile);
        let files = self.definitions.files.all().map(|this| &this.name).filter(|_| section == Section::Node);
        let mut names: Vec<String> = custom.chain(profile).chain(files).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn load(&self, section: Section, name: &str) -> Option<Kind<'d>> {
        let (full, definition) = self.definitions.find(section, name)?;
        self.check_keys(section, &full, definition);
        let (mut ancestors, mut line) = (Vec::new(), vec![definition]);
        let mut parent = definition.get("derived_from").and_then(Value::as_str);
        while let Some(name) = parent {
            let Some((name, definition)) = self.definitions.find(section, name) else {
                // A data type may be derived from a simple one.
                if section == Section::Data {
                    ancestors.push(name.to_owned());
                } else {
                    self.refuse(
                        "unknown-type",
                        format!("Type \"{name}\", which \"{full}\" is derived from, is unknown."),
                    );
                }
                break;
            };
            if ancestors.contains(&name) || name == full || ancestors.len() >= MAX_ANCESTORS {
                self.refuse("cycle", format!("The type \"{full}\" is derived from itself, or has too many ancestors."));
                break;
            }
            parent = definition.get("derived_from").and_then(Value::as_str);
            self.check_keys(section, &name, definition);
            ancestors.push(name);
            line.push(definition);
        }
        Some(Kind::new(full, ancestors, line))
    }

    fn check_keys(&self, section: Section, name: &str, definition: &Map) {
        let (what, keys) = section.keys();
        for key in definition.keys().filter(|key| !keys.is_empty() && !keys.contains(&key.as_str())) {
            self.refuse("unknown-field", format!("{what} \"{name}\" has no field \"{key}\"."));
        }
    }

    fn refuse(&self, kind: &'static str, message: String) {
        self.refusals.borrow_mut().push(Refusal::new(kind, &Path::root(), message));
    }
}
