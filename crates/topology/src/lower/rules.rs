//! What types become, as data: `topology-types/tosca/hot.yaml`, and the type files.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kiln_value::{Map, Path, Value, text};

use crate::graph::Node;
use crate::{Refusal, TypeFiles};

/// Bytes that type files and references may make of a document.
const BUDGET: usize = 64 << 20;

/// The rules by type.
pub(crate) struct Rules {
    shipped: HashMap<String, Value>,
    files: Arc<TypeFiles>,
    /// By type.
    found: RefCell<HashMap<String, Option<Rc<Rule>>>>,
    left: Cell<usize>,
}

/// What a type becomes; the parts are those of `hot.yaml`.
pub(crate) struct Rule {
    parts: Value,
    /// Bytes.
    pub(super) size: usize,
    /// Whether a type file says it, or a part of it.
    pub(super) is_of_file: bool,
}

impl Rule {
    fn section(&self, name: &str) -> Option<&Map> {
        self.parts.get(name)?.as_map()
    }

    /// The resources by their suffixes.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.section("resources").into_iter().flatten()
    }

    pub(crate) fn resource(&self, suffix: &str) -> Option<&Value> {
        self.section("resources")?.get(suffix)
    }

    pub(crate) fn suffixes(&self) -> impl Iterator<Item = &str> {
        self.section("resources").into_iter().flat_map(Map::keys).map(String::as_str)
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&Value> {
        self.section("attributes")?.get(name)
    }

    /// Why nodes of the type are refused.
    pub(super) fn refused(&self) -> Option<&str> {
        self.parts.str_at("refused")
    }

    /// Why nodes of the type have no resource.
    pub(super) fn boundary(&self) -> Option<&str> {
        self.parts.str_at("boundary")
    }

    /// The property whose value is the ID of an object that exists already.
    pub(super) fn existing(&self) -> Option<&str> {
        self.parts.str_at("existing")
    }
}

impl Rules {
    /// The rules that are part of Kiln, with those of type files.
    pub(crate) fn of(files: &Arc<TypeFiles>) -> Result<Self, Vec<Refusal>> {
        let text = include_str!("../../../../topology-types/tosca/hot.yaml");
        let document =
            kiln_yaml::parse(text).map_err(|error| vec![Refusal::new("not-yaml", &Path::root(), error.message)])?;
        let shipped = document.value.as_map().into_iter().flatten();
        Ok(Self {
            shipped: shipped.map(|(name, rule)| (name.clone(), rule.clone())).collect(),
            files: Arc::clone(files),
            found: RefCell::default(),
            left: Cell::new(BUDGET),
        })
    }

    /// Whether Kiln has a rule of its own for a type.
    pub(crate) fn has_shipped(&self, name: &str) -> bool {
        self.shipped.contains_key(name)
    }

    /// Takes from the budget; whether there was enough.
    pub(super) fn spend(&self, size: usize) -> bool {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// The rule of a node: that of its type, or of the nearest parent.
    pub(super) fn find(&self, node: &Node) -> Option<Rc<Rule>> {
        if let Some(found) = self.found.borrow().get(&node.type_name) {
            return found.clone();
        }
        let line: Vec<&str> = std::iter::once(&node.type_name).chain(&node.ancestors).map(String::as_str).collect();
        let found = self.of_line(&line);
        self.found.borrow_mut().insert(node.type_name.clone(), found.clone());
        found
    }

    /// The rule of a type, its parent, and so on: what a type file says is laid over what its parent becomes.
    pub(crate) fn of_line(&self, line: &[&str]) -> Option<Rc<Rule>> {
        let (mut over, mut base) = (Vec::new(), None);
        for name in line {
            if let Some(file) = self.files.get(name) {
                over.extend(Some(&file.hot).filter(|hot| !hot.is_empty()));
            } else if let Some(rule) = self.shipped.get(*name) {
                base = Some(rule);
                break;
            }
        }
        if over.is_empty() {
            return base.map(|rule| Rc::new(Rule { parts: rule.clone(), size: 0, is_of_file: false }));
        }
        let mut parts = base.and_then(Value::as_map).cloned().unwrap_or_default();
        over.into_iter().rev().for_each(|hot| lay(&mut parts, hot));
        let parts = Value::Map(parts);
        Some(Rc::new(Rule { size: text::json(&parts).len(), parts, is_of_file: true }))
    }
}

/// Lays what a type says over what its parent becomes.
fn lay(parts: &mut Map, over: &Map) {
    for (key, value) in over {
        let Some(value) = value.as_map() else {
            parts.insert(key.clone(), value.clone());
            continue;
        };
        let section = parts.entry(key.clone()).or_insert_with(|| Value::Map(Map::new()));
        let Some(section) = section.as_map_mut() else { continue };
        for (name, entry) in value {
            if entry.is_null() {
                section.shift_remove(name);
            } else if key == "resources"
                && let Some(known) = section.get_mut(name).filter(|known| is_same(known, entry))
            {
                lay_resource(known, entry);
            } else {
                section.insert(name.clone(), entry.clone());
            }
        }
    }
}

/// Whether a resource only adds to that of the parent.
fn is_same(known: &Value, over: &Value) -> bool {
    over.get("type").is_none_or(|kind| known.get("type") == Some(kind))
}

/// Lays a resource over one of the same type: its properties are added.
fn lay_resource(known: &mut Value, over: &Value) {
    let (Some(known), Some(over)) = (known.as_map_mut(), over.as_map()) else { return };
    for (key, value) in over {
        match (known.get_mut(key).and_then(Value::as_map_mut), value) {
            (Some(properties), Value::Map(more)) if key == "properties" => {
                for (name, value) in more {
                    if value.is_null() {
                        properties.shift_remove(name);
                    } else {
                        properties.insert(name.clone(), value.clone());
                    }
                }
            }
            _ => drop(known.insert(key.clone(), value.clone())),
        }
    }
}
