//! The types that a blueprint can use: data, in the format of `topology-types/blueprint.yaml`.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_value::{Map, Path, Value};

use super::form::Form;
use super::library_types::add_types;
use crate::{Refusal, TypeFiles};

/// Number of a component type in its [`Library`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ComponentTypeId(usize);

/// Number of a requirement type in its [`Library`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequirementTypeId(usize);

/// A component type.
#[derive(Debug, Default)]
pub(crate) struct ComponentType {
    pub(crate) name: String,
    pub(crate) is_abstract: bool,
    parent: Option<ComponentTypeId>,
    /// What this type adds to its parent.
    requires: Vec<String>,
    attributes: Vec<String>,
    specs: Vec<(String, String)>,
    default_requirement: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Concrete descendants and the type itself, if it is concrete, in the order of the library.
    pub(crate) concrete: Vec<ComponentTypeId>,
}

/// A requirement type.
#[derive(Debug)]
pub(crate) struct RequirementType {
    pub(crate) name: String,
    pub(crate) attributes: Map<Form>,
    pub(crate) default_attribute: Option<String>,
    pub(crate) fulfilled_by: Option<ComponentTypeId>,
    pub(crate) implied: bool,
    pub(crate) owner: Option<ComponentTypeId>,
    pub(crate) of_blueprint: bool,
}

/// The attribute that names who fulfils a requirement.
pub(crate) const FULFILLMENT: &str = "fulfillment";

/// Component and requirement types by name.
#[derive(Debug, Default)]
pub struct Library {
    components: Vec<ComponentType>,
    requirements: Vec<RequirementType>,
    /// Full names and aliases.
    component_names: HashMap<String, ComponentTypeId>,
    requirement_names: HashMap<String, RequirementTypeId>,
    pub(crate) default_requirement: Option<RequirementTypeId>,
    /// The type files that some of these types are from.
    pub(crate) types: Arc<TypeFiles>,
}

impl Library {
    /// The library that is part of Kiln.
    pub fn shipped() -> Result<Self, Vec<Refusal>> {
        Self::of(&TypeFiles::shipped()?)
    }

    /// The library that is part of Kiln, with the types of files.
    ///
    /// Errors: names that no type has, two types of one name, parents in a circle.
    pub fn of(types: &Arc<TypeFiles>) -> Result<Self, Vec<Refusal>> {
        let mut document = parsed(include_str!("../../../../topology-types/blueprint.yaml"))?;
        add_types(&mut document, types)?;
        Ok(Self { types: Arc::clone(types), ..Self::load(&document)? })
    }

    /// Reads a library.
    ///
    /// Errors: unknown keys, names that no type has, parents in a circle, wrong shapes.
    pub fn parse(text: &str) -> Result<Self, Vec<Refusal>> {
        Self::load(&parsed(text)?)
    }

    fn load(document: &Value) -> Result<Self, Vec<Refusal>> {
        let mut loader = Loader { library: Self::default(), refusals: Vec::new() };
        loader.load(document);
        if loader.refusals.is_empty() { Ok(loader.library) } else { Err(loader.refusals) }
    }

    pub(crate) fn component(&self, id: ComponentTypeId) -> &ComponentType {
        &self.components[id.0]
    }

    pub(crate) fn requirement(&self, id: RequirementTypeId) -> &RequirementType {
        &self.requirements[id.0]
    }

    /// The component type with this full name or alias.
    pub(crate) fn find_component(&self, name: &str) -> Option<ComponentTypeId> {
        self.component_names.get(name).copied()
    }

    pub(crate) fn find_requirement(&self, name: &str) -> Option<RequirementTypeId> {
        self.requirement_names.get(name).copied()
    }

    /// Full names and aliases of component types, in alphabetical order.
    pub(crate) fn component_words(&self) -> Vec<&str> {
        sorted(self.component_names.keys())
    }

    pub(crate) fn requirement_words(&self) -> Vec<&str> {
        sorted(self.requirement_names.keys())
    }

    /// The type that has this tag; the first in the library.
    pub(crate) fn tagged(&self, tag: &str) -> Option<ComponentTypeId> {
        (0..self.components.len()).map(ComponentTypeId).find(|id| self.component(*id).tags.iter().any(|t| t == tag))
    }

    /// The type, its parent, and so on.
    pub(crate) fn line(&self, id: ComponentTypeId) -> impl Iterator<Item = &ComponentType> {
        std::iter::successors(Some(self.component(id)), |kind| kind.parent.map(|parent| self.component(parent)))
    }

    /// Whether `child` is `ancestor` or derived from it.
    pub(crate) fn is_a(&self, child: ComponentTypeId, ancestor: ComponentTypeId) -> bool {
        std::iter::successors(Some(child), |id| self.component(*id).parent).any(|id| id == ancestor)
    }

    /// The more derived of two types in one line of descent; `None` if they are not in one.
    pub(crate) fn narrower(&self, a: ComponentTypeId, b: ComponentTypeId) -> Option<ComponentTypeId> {
        if self.is_a(a, b) {
            Some(a)
        } else if self.is_a(b, a) {
            Some(b)
        } else {
            None
        }
    }

    /// Whether a component of this type may have a requirement of this type.
    pub(crate) fn understands(&self, id: ComponentTypeId, requirement: RequirementTypeId) -> bool {
        let name = &self.requirement(requirement).name;
        self.line(id).any(|kind| kind.requires.iter().any(|known| known == name))
    }

    pub(crate) fn has_attribute(&self, id: ComponentTypeId, name: &str) -> bool {
        self.line(id).any(|kind| kind.attributes.iter().any(|known| known == name))
    }

    /// The default type of the component that this attribute describes; `None` if it is not such an attribute.
    pub(crate) fn spec(&self, id: ComponentTypeId, name: &str) -> Option<ComponentTypeId> {
        let of = self.line(id).find_map(|kind| kind.specs.iter().find(|(known, _)| known == name))?;
        self.find_component(&of.1)
    }

    /// The names of the attributes of a type and its parents.
    pub(crate) fn attribute_names(&self, id: ComponentTypeId) -> Vec<&str> {
        self.line(id)
            .flat_map(|kind| kind.attributes.iter().chain(kind.specs.iter().map(|(name, _)| name)))
            .map(String::as_str)
            .collect()
    }

    /// The requirements that a type and its parents understand.
    pub(crate) fn requirement_names(&self, id: ComponentTypeId) -> Vec<&str> {
        self.line(id).flat_map(|kind| &kind.requires).map(String::as_str).collect()
    }

    /// The requirements of whole blueprints.
    pub(crate) fn global_requirements(&self) -> Vec<&str> {
        self.requirements.iter().filter(|kind| kind.of_blueprint).map(|kind| kind.name.as_str()).collect()
    }

    /// The attributes of a requirement.
    pub(crate) fn requirement_attributes(&self, name: &str) -> Vec<&str> {
        let kind = self.find_requirement(name).map(|id| self.requirement(id));
        kind.into_iter().flat_map(|kind| kind.attributes.keys()).map(String::as_str).collect()
    }

    /// The type of components that fulfils a requirement.
    pub(crate) fn fulfilled_by(&self, name: &str) -> Option<&str> {
        let by = self.requirement(self.find_requirement(name)?).fulfilled_by?;
        Some(&self.component(by).name)
    }

    /// Whether a value of a requirement names components.
    pub(crate) fn is_fulfilled(&self, name: &str) -> bool {
        let kind = self.find_requirement(name).map(|id| self.requirement(id));
        kind.is_some_and(|kind| kind.default_attribute.as_deref() == Some(FULFILLMENT))
    }

    /// The requirement type that a bare value of `requires` belongs to.
    pub(crate) fn default_requirement_of(&self, id: ComponentTypeId) -> Option<RequirementTypeId> {
        let name = self.line(id).find_map(|kind| kind.default_requirement.as_deref())?;
        self.find_requirement(name)
    }

    /// The component types that understand a requirement type, for hints.
    pub(crate) fn who_understands(&self, requirement: RequirementTypeId) -> Option<&str> {
        let name = &self.requirement(requirement).name;
        self.components.iter().find(|kind| kind.requires.contains(name)).map(|kind| kind.name.as_str())
    }
}

fn sorted<'a>(words: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut words: Vec<&str> = words.map(String::as_str).collect();
    words.sort_unstable();
    words
}

fn parsed(text: &str) -> Result<Value, Vec<Refusal>> {
    let document = kiln_yaml::parse(text);
    document
        .map(|document| document.value)
        .map_err(|error| vec![Refusal::new("not-yaml", &Path::root(), error.message)])
}

struct Loader {
    library: Library,
    refusals: Vec<Refusal>,
}

impl Loader {
    fn refuse(&mut self, kind: &'static str, at: &Path, message: impl Into<String>) {
        self.refusals.push(Refusal::new(kind, at, message));
    }

    fn load(&mut self, document: &Value) {
        let root = Path::root();
        let empty = Map::new();
        let Some(sections) = document.as_map() else {
            return self.refuse("bad-shape", &root, "A type library must be a map.");
        };
        self.check_keys(&root, sections, &["blueprint", "components", "requirements"]);
        let section = |name: &str| sections.get(name).and_then(Value::as_map).unwrap_or(&empty);
        self.name_components(section("components"));
        self.load_requirements(section("requirements"));
        self.load_components(section("components"));
        if let Some(name) = section("blueprint").get("default_requirement").and_then(Value::as_str) {
            self.library.default_requirement = self.library.find_requirement(name);
            if self.library.default_requirement.is_none() {
                let at = root.key("blueprint").key("default_requirement");
                self.refuse("unknown-requirement", &at, format!("No requirement type is named {name}."));
            }
        }
    }

    fn check_keys(&mut self, at: &Path, map: &Map, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.refuse("unknown-attribute", &at.key(key), format!("Unknown key {key} in a type library."));
        }
    }

    fn name_components(&mut self, types: &Map) {
        for (i, (name, body)) in types.iter().enumerate() {
            let id = ComponentTypeId(i);
            for word in std::iter::once(name.as_str()).chain(texts(body, "aliases")) {
                if self.library.component_names.insert(word.to_owned(), id).is_some() {
                    let at = Path::root().key("components").key(name);
                    self.refuse("duplicate-id", &at, format!("Two component types are named {word}."));
                }
            }
            self.library.components.push(ComponentType { name: name.clone(), ..ComponentType::default() });
        }
    }

    fn load_requirements(&mut self, types: &Map) {
        const KEYS: [&str; 6] = ["attributes", "default_attribute", "fulfilled_by", "implied", "owner", "where"];
        for (i, (name, body)) in types.iter().enumerate() {
            let at = Path::root().key("requirements").key(name);
            self.check_keys(&at, body.as_map().unwrap_or(&Map::new()), &KEYS);
            let mut attributes = Map::new();
            for (attribute, form) in body.get("attributes").and_then(Value::as_map).unwrap_or(&Map::new()) {
                if let Some(form) = form.as_str().and_then(Form::named) {
                    attributes.insert(attribute.clone(), form);
                } else {
                    let forms = Form::NAMES.map(|(name, _)| name).join(", ");
                    let message = format!("The form of an attribute must be one of {forms}.");
                    self.refuse("bad-value", &at.key("attributes").key(attribute), message);
                }
            }
            let default_attribute = body.str_at("default_attribute").map(str::to_owned);
            if let Some(unknown) = default_attribute.as_ref().filter(|name| !attributes.contains_key(*name)) {
                let message = format!("The default attribute {unknown} is not an attribute.");
                self.refuse("unknown-attribute", &at.key("default_attribute"), message);
            }
            let kind = RequirementType {
                name: name.clone(),
                attributes,
                default_attribute,
                fulfilled_by: self.component_named(&at, body, "fulfilled_by"),
                implied: body.get("implied").is_some_and(Value::is_truthy),
                owner: self.component_named(&at, body, "owner"),
                of_blueprint: body.str_at("where") == Some("blueprint"),
            };
            self.library.requirements.push(kind);
            self.library.requirement_names.insert(name.clone(), RequirementTypeId(i));
        }
    }

    fn component_named(&mut self, at: &Path, body: &Value, key: &str) -> Option<ComponentTypeId> {
        let name = body.str_at(key)?;
        let found = self.library.find_component(name);
        if found.is_none() {
            self.refuse("unknown-type", &at.key(key), format!("No component type is named {name}."));
        }
        found
    }

    fn load_components(&mut self, types: &Map) {
        const KEYS: [&str; 8] =
            ["aliases", "abstract", "derived_from", "requires", "default_requirement", "attributes", "specs", "tags"];
        for (i, (name, body)) in types.iter().enumerate() {
            let at = Path::root().key("components").key(name);
            self.check_keys(&at, body.as_map().unwrap_or(&Map::new()), &KEYS);
            let parent = self.component_named(&at, body, "derived_from");
            let requires: Vec<String> = texts(body, "requires").map(str::to_owned).collect();
            let default_requirement = body.str_at("default_requirement").map(str::to_owned);
            for word in requires.iter().chain(&default_requirement) {
                if self.library.find_requirement(word).is_none() {
                    self.refuse("unknown-requirement", &at, format!("No requirement type is named {word}."));
                }
            }
            let specs = body.get("specs").and_then(Value::as_map);
            let specs: Vec<(String, String)> = specs
                .into_iter()
                .flatten()
                .map(|(name, of)| (name.clone(), of.as_str().unwrap_or_default().to_owned()))
                .collect();
            for (attribute, of) in &specs {
                if self.library.find_component(of).is_none() {
                    let message = format!("No component type is named {of}.");
                    self.refuse("unknown-type", &at.key("specs").key(attribute), message);
                }
            }
            let kind = &mut self.library.components[i];
            kind.is_abstract = body.get("abstract").is_some_and(Value::is_truthy);
            kind.parent = parent;
            kind.requires = requires;
            kind.default_requirement = default_requirement;
            kind.attributes = texts(body, "attributes").map(str::to_owned).collect();
            kind.specs = specs;
            kind.tags = texts(body, "tags").map(str::to_owned).collect();
        }
        self.find_concrete_types();
    }

    fn find_concrete_types(&mut self) {
        let types = &mut self.library.components;
        for i in 0..types.len() {
            let mut line = vec![i];
            while let Some(ComponentTypeId(parent)) = types[line[line.len() - 1]].parent {
                if line.contains(&parent) {
                    let at = Path::root().key("components").key(&types[i].name);
                    let message = format!("The type {} is derived from itself.", types[i].name);
                    self.refusals.push(Refusal::new("cycle", &at, message));
                    types[i].parent = None;
                    break;
                }
                line.push(parent);
            }
            if !types[i].is_abstract {
                for ancestor in line {
                    types[ancestor].concrete.push(ComponentTypeId(i));
                }
            }
        }
    }
}

fn texts<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    body.get(key).and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_str)
}
