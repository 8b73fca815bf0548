//! The stack as template functions see it: the actual one, or a draft before anything exists.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;
use kiln_resource::physical_name::physical_name;
use kiln_resource::{Attempt, Facts, Resource, StackFacts};
use kiln_template::{Bound, Facade, ResourceView, Scope, select};
use kiln_value::{Map, Unknown, Value};

use crate::Blueprint;
use crate::kind::Kind;

/// A stack without existing resources: references are logical names, attributes are null.
pub struct Draft<'a> {
    bound: &'a Bound,
    planned: &'a IndexMap<String, Planned>,
    facade: Option<Facade>,
}

/// A resource before it exists.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    reference: Value,
    pub(crate) kind: Kind,
}

impl Planned {
    /// A resource with a logical name.
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Self { reference: name.into(), kind }
    }

    /// The resource with the reference that it has in Heat before it exists: for types that always refer by ID, it is
    /// null.
    pub(crate) fn without_id(&self) -> Self {
        let name = &self.kind.resource_type().name;
        let refers_by_id = name.starts_with("OS::Neutron::") || name == "OS::Nova::KeyPair";
        let reference = if refers_by_id { Value::Null } else { self.reference.clone() };
        Self { reference, kind: self.kind.clone() }
    }
}

impl<'a> Draft<'a> {
    /// A draft of a stack with these resources.
    pub(crate) fn new(bound: &'a Bound, planned: &'a IndexMap<String, Planned>, facade: Option<Facade>) -> Self {
        Self { bound, planned, facade }
    }

    /// A draft of a blueprint's stack.
    pub fn of(blueprint: &'a Blueprint) -> Self {
        Self::new(blueprint.bound(), blueprint.planned(), blueprint.place.facade.clone())
    }
}

impl Scope for Draft<'_> {
    fn bound(&self) -> &Bound {
        self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.planned.get(name).map(|planned| planned as &dyn ResourceView)
    }

    fn facade(&self) -> Option<Facade> {
        self.facade.clone()
    }
}

impl ResourceView for Planned {
    fn reference_id(&self) -> Value {
        self.reference.clone()
    }

    fn action(&self) -> &'static str {
        "INIT"
    }

    fn status(&self) -> &'static str {
        "COMPLETE"
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.kind.resource_type().has_attribute(name)
    }

    fn attribute(&self, name: &str, _path: &[Value]) -> Option<Value> {
        self.has_attribute(name).then_some(Value::Null)
    }

    fn attributes(&self) -> Map {
        Map::new()
    }
}

/// A draft that keeps references unresolved, for types that inspect their siblings.
pub(crate) struct References<'a> {
    bound: &'a Bound,
    planned: HashMap<&'a str, Planned>,
}

impl<'a> References<'a> {
    pub(crate) fn new(bound: &'a Bound, planned: &'a IndexMap<String, Planned>) -> Self {
        let of = |(name, planned): (&'a String, &Planned)| {
            let reference = kiln_value::value!({"get_resource": name.as_str()});
            (name.as_str(), Planned { reference, kind: planned.kind.clone() })
        };
        Self { bound, planned: planned.iter().map(of).collect() }
    }
}

impl Scope for References<'_> {
    fn bound(&self) -> &Bound {
        self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.planned.get(name).map(|planned| planned as &dyn ResourceView)
    }
}

/// The actual stack: the current rows of its names, with the attributes that were read. In a plan, also the future
/// stack ([`StackScope::foresee`]).
#[derive(Debug)]
pub struct StackScope {
    blueprint: Arc<Blueprint>,
    stack: StackFacts,
    views: HashMap<String, View>,
    has_unknown: bool,
}

/// The planned state of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Prospect {
    /// A new object: only values that follow from its properties are known.
    New,
    /// An existing object with these changed properties: attributes that may depend on them are unknown.
    Changed(BTreeSet<String>),
    /// An existing nested stack with this content.
    Nested(Inside),
    /// A new nested stack with this content.
    NewNested(Inside),
    /// A nested stack with unknown content.
    Opaque,
}

#[derive(Debug)]
struct View {
    kind: Kind,
    reference: Value,
    action: &'static str,
    status: &'static str,
    attributes: Seen,
    prospect: Option<(Prospect, Facts)>,
}

/// The known attributes of a resource.
#[derive(Debug)]
enum Seen {
    /// Their values.
    Plain(Map),
    /// Those of a nested stack.
    Nested { facts: Box<Facts>, inside: Inside },
}

/// Data of a nested stack that its parent resource stores in [`Resource::attributes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inside {
    /// Values of the outputs.
    pub outputs: Map,
    /// Reference IDs of its resources.
    pub refs: IndexMap<String, Value>,
    /// Requested attributes of its resources, by `resource.<name>.<attribute>`.
    pub more: Map,
    /// Errors of outputs without a value.
    pub errors: Map,
}

impl Inside {
    /// The stored form.
    pub fn to_map(&self) -> Map {
        let refs: Map = self.refs.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        [
            ("outputs", self.outputs.clone()),
            ("refs", refs),
            ("more", self.more.clone()),
            ("errors", self.errors.clone()),
        ]
        .into_iter()
        .filter(|(key, map)| *key != "errors" || !map.is_empty())
        .map(|(key, map)| (key.to_owned(), Value::Map(map)))
        .collect()
    }

    /// Reads the stored form.
    pub fn from_map(map: &Map) -> Self {
        let part = |key: &str| map.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
        Self {
            outputs: part("outputs"),
            refs: part("refs").into_iter().collect(),
            more: part("more"),
            errors: part("errors"),
        }
    }
}

impl StackScope {
    /// The scope of a stack whose resources do not exist yet.
    pub fn new(blueprint: Arc<Blueprint>, stack: StackFacts) -> Self {
        let views = blueprint
            .planned()
            .iter()
            .map(|(name, planned)| (name.clone(), View::unmade(name, &planned.kind)))
            .collect();
        Self { blueprint, stack, views, has_unknown: false }
    }

    /// Adds the planned state of a resource; `row` has its future properties.
    pub fn foresee(&mut self, row: &Resource, mut prospect: Prospect) {
        self.has_unknown = true;
        self.see(row);
        let Some(view) = self.views.get_mut(&row.name) else { return };
        let facts = facts(row, &view.kind, &self.stack);
        match &mut prospect {
            Prospect::New | Prospect::NewNested(_) => view.reference = new_reference(&view.kind, &facts),
            Prospect::Opaque if row.physical_id.is_none() => view.reference = new_reference(&view.kind, &facts),
            Prospect::Changed(_) | Prospect::Nested(_) | Prospect::Opaque => {}
        }
        if let Prospect::Nested(inside) | Prospect::NewNested(inside) = &mut prospect {
            if let Some(given) = inside.outputs.get("OS::stack_id").filter(|given| !given.is_null()) {
                view.reference = given.clone();
            }
            view.attributes = Seen::Nested { facts: Box::new(facts.clone()), inside: std::mem::take(inside) };
        }
        view.prospect = Some((prospect, facts));
    }

    /// The blueprint.
    pub fn blueprint(&self) -> &Arc<Blueprint> {
        &self.blueprint
    }

    /// Adds the current row of a name.
    pub fn see(&mut self, row: &Resource) {
        let Some(kind) = self.blueprint.kind(&row.name) else { return };
        let facts = facts(row, kind, &self.stack);
        let attributes = if kind.is_nested() {
            Seen::Nested { facts: Box::new(facts.clone()), inside: Inside::from_map(&row.attributes) }
        } else {
            Seen::Plain(row.attributes.clone())
        };
        let view = View {
            reference: reference(kind, &facts, &row.attributes, &self.stack),
            kind: kind.clone(),
            action: row.state.action.as_str(),
            status: row.state.status.as_str(),
            attributes,
            prospect: None,
        };
        self.views.insert(row.name.clone(), view);
    }
}

impl View {
    fn unmade(name: &str, kind: &Kind) -> Self {
        Self {
            kind: kind.clone(),
            reference: name.into(),
            action: "INIT",
            status: "COMPLETE",
            attributes: Seen::Plain(Map::new()),
            prospect: None,
        }
    }

    fn has_read(&self, attribute: &str) -> bool {
        matches!(&self.attributes, Seen::Plain(map) if map.contains_key(attribute))
    }

    /// The planned value of an attribute; `None` if it does not change.
    fn foreseen(&self, name: &str) -> Option<Value> {
        let (prospect, facts) = self.prospect.as_ref()?;
        let unknown = || Value::Unknown(Unknown::of(&format!("{}.{name}", facts.name)));
        let follows = || self.kind.entry().and_then(|entry| entry.driver.foreseen(facts, name));
        match prospect {
            Prospect::Nested(_) | Prospect::NewNested(_) => None,
            Prospect::Opaque => Some(unknown()),
            Prospect::New => Some(follows().unwrap_or_else(unknown)),
            Prospect::Changed(changed) => match follows() {
                Some(value) => Some(value),
                // An attribute with the name of an unchanged property keeps its value, if that was read.
                None if facts.properties.contains_key(name) && !changed.contains(name) && self.has_read(name) => None,
                None => Some(unknown()),
            },
        }
    }
}

impl Scope for StackScope {
    fn has_unknown(&self) -> bool {
        self.has_unknown || self.bound().has_unknown()
    }

    fn bound(&self) -> &Bound {
        self.blueprint.bound()
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.views.get(name).map(|view| view as &dyn ResourceView)
    }

    fn facade(&self) -> Option<Facade> {
        self.blueprint.place.facade.clone()
    }
}

impl ResourceView for View {
    fn reference_id(&self) -> Value {
        self.reference.clone()
    }

    fn action(&self) -> &str {
        self.action
    }

    fn status(&self) -> &str {
        self.status
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.kind.resource_type().has_attribute(name)
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        if self.prospect.is_some() && (self.kind.is_nested() || self.has_attribute(name)) {
            match self.foreseen(name) {
                Some(unknown @ Value::Unknown(_)) => return Some(unknown),
                Some(value) => return Some(select(value, path)),
                None => {}
            }
        }
        match &self.attributes {
            Seen::Plain(map) => {
                let value = map.get(name).cloned();
                match value {
                    Some(value) => Some(select(value, path)),
                    None => self.has_attribute(name).then_some(Value::Null),
                }
            }
            Seen::Nested { facts, inside } => nested_attribute(&self.kind, facts, inside, name, path),
        }
    }

    /// The name of a group's output consists of the attribute and its path.
    fn attribute_error(&self, name: &str, path: &[Value]) -> Option<&str> {
        let Seen::Nested { inside, .. } = &self.attributes else { return None };
        if inside.errors.is_empty() {
            return None;
        }
        let parts = std::iter::once(name.to_owned()).chain(path.iter().map(kiln_value::text::str));
        let whole = parts.collect::<Vec<_>>().join(", ");
        inside.errors.get(&whole).or_else(|| inside.errors.get(name)).and_then(Value::as_str)
    }

    fn attributes(&self) -> Map {
        match &self.attributes {
            Seen::Plain(map) => map.iter().filter(|(k, _)| *k != "show").map(|(k, v)| (k.clone(), v.clone())).collect(),
            Seen::Nested { inside, .. } => inside.outputs.clone(),
        }
    }
}

/// An attribute of a resource with a nested stack (docs/heat-behaviour.md §14, §15).
fn nested_attribute(kind: &Kind, facts: &Facts, inside: &Inside, name: &str, path: &[Value]) -> Option<Value> {
    if let Kind::Type(entry) = kind {
        return entry.driver.nested_stack()?.attribute(facts, &inside.outputs, &inside.refs, name, path);
    }
    if let Some(value) = inside.more.get(name) {
        return Some(select(value.clone(), path));
    }
    if let Some(inner) = name.strip_prefix("resource.") {
        return inside.refs.get(inner).cloned();
    }
    inside.outputs.get(name).map(|value| select(value.clone(), path))
}

/// The value of `get_resource`.
fn reference(kind: &Kind, facts: &Facts, attributes: &Map, stack: &StackFacts) -> Value {
    match kind {
        Kind::Type(entry) if !entry.driver.refers_by_arn() => entry.driver.reference(facts),
        Kind::Type(_) | Kind::Template(_) => {
            let Some(id) = &facts.physical_id else { return facts.name.as_str().into() };
            let inside = Inside::from_map(attributes);
            if let Some(given) = inside.outputs.get("OS::stack_id").filter(|given| !given.is_null()) {
                return given.clone();
            }
            let identity =
                kiln_template::StackIdentity::new(stack.project_id.as_str(), facts.physical_name.as_str(), id.as_str());
            identity.map_or_else(|_| id.as_str().into(), |identity| Value::from(identity.arn()))
        }
    }
}

/// The value of `get_resource` for an object that does not exist yet: its ID is unknown, its name may be known.
fn new_reference(kind: &Kind, facts: &Facts) -> Value {
    let unknown = Value::Unknown(Unknown::of(&facts.name));
    let Some(entry) = kind.entry().filter(|_| !kind.is_nested()) else { return unknown };
    // No ID looks like this: a reference that does not change with the ID does not contain it.
    let with_id = |id: &str| entry.driver.reference(&Facts { physical_id: Some(id.to_owned()), ..facts.clone() });
    let (one, other) = (with_id("\u{1}"), with_id("\u{2}"));
    // The logical name stands for an object that does not exist yet.
    if one == other && one.as_str() != Some(&facts.name) { one } else { unknown }
}

/// The data of a row that is passed to a driver.
pub fn facts(row: &Resource, kind: &Kind, stack: &StackFacts) -> Facts {
    let limit = kind.resource_type().physical_name_limit;
    Facts {
        id: row.id.to_string(),
        name: row.name.clone(),
        resource_type: kind.resource_type().name.clone(),
        stack: stack.clone(),
        physical_name: physical_name(row.first_stack().unwrap_or(&stack.name), row.first_name(), row.id.0, limit),
        physical_id: row.physical_id.clone(),
        properties: row.properties().clone(),
        given: row.definition.iter().flat_map(|definition| definition.given().keys().cloned()).collect(),
        metadata: row.metadata.clone(),
        data: row.data.clone(),
        attempt: Attempt {
            token: row.running().map(|running| running.token.clone()).unwrap_or_default(),
            unmarked_since: None,
        },
        state: (row.state.action.to_string(), row.state.status.to_string()),
        ..Facts::default()
    }
}
