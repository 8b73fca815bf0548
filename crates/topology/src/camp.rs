//! CAMP 1.1 deployment plans, read into the model of blueprints.
//!
//! Artifacts and services become components, requirements and characteristics become requirements. Of the
//! characteristics of a service, the one that names a component type is its type. Source: CAMP 1.1, section 4.2, and
//! `docs/topology.md`.

use std::collections::HashMap;

use kiln_value::{Map, Path, Segment, Value};
use kiln_yaml::Document;

use crate::Refusal;
use crate::blueprint::{Application, Component, Fulfilment, Library, read_document};
use crate::refusal::{kind_of, sort};

/// Reads the text of a plan.
///
/// Errors: all that it contains, with the paths of the plan, and the document if it is YAML.
pub fn read(text: &str, library: &Library) -> Result<Application, (Option<Document>, Vec<Refusal>)> {
    let document =
        kiln_yaml::parse(text).map_err(|error| (None, vec![Refusal::new("not-yaml", &Path::root(), error.message)]))?;
    let mut converter = Converter { library, places: HashMap::new(), refusals: Vec::new() };
    let value = converter.convert(&document.value);
    let result = if converter.refusals.is_empty() {
        let blueprint = Document { value, spans: document.spans.clone() };
        let read = read_document(&blueprint, library);
        read.map(|mut blueprint| {
            blueprint.components.iter_mut().for_each(|component| converter.place(component));
            blueprint
        })
        .map_err(|mut refusals| {
            for refusal in &mut refusals {
                refusal.at = converter.original(&refusal.at);
            }
            refusals
        })
    } else {
        Err(converter.refusals)
    };
    result.map_err(|mut refusals| {
        sort(&mut refusals, &document);
        (Some(document), refusals)
    })
}

struct Converter<'l> {
    library: &'l Library,
    /// Places in the blueprint and in the plan; the parts of a place have the same keys in both.
    places: HashMap<Path, Path>,
    refusals: Vec<Refusal>,
}

impl Converter<'_> {
    fn refuse(&mut self, kind: &'static str, at: &Path, message: impl Into<String>) {
        self.refusals.push(Refusal::new(kind, at, message));
    }

    /// Sets the places of a component to those in the plan.
    fn place(&self, component: &mut Component) {
        component.at = self.original(&component.at);
        component.specs.iter_mut().for_each(|(_, spec)| self.place(spec));
        for requirement in &mut component.requires {
            requirement.at = self.original(&requirement.at);
            for by in &mut requirement.fulfilled_by {
                if let Fulfilment::InLine(inline) = by {
                    self.place(inline);
                }
            }
        }
    }

    /// The place in the plan of a place in the blueprint.
    fn original(&self, at: &Path) -> Path {
        let mut prefix = at.clone();
        let mut rest: Vec<Segment> = Vec::new();
        loop {
            if let Some(original) = self.places.get(&prefix) {
                let mut path = original.clone();
                path.0.extend(rest.into_iter().rev());
                return path;
            }
            match prefix.0.pop() {
                Some(segment) => rest.push(segment),
                None => return at.clone(),
            }
        }
    }

    fn convert(&mut self, plan: &Value) -> Value {
        const KEYS: [&str; 7] = ["camp_version", "origin", "name", "description", "tags", "artifacts", "services"];
        let root = Path::root();
        let Some(sections) = plan.as_map() else {
            self.refuse("bad-shape", &root, format!("A plan must be a map, but this is {}.", kind_of(plan)));
            return Value::Null;
        };
        match sections.get("camp_version") {
            None => self.refuse("missing-version", &root, "A plan must have a camp_version: CAMP 1.1."),
            Some(Value::Str(version)) if version.trim() == "CAMP 1.1" => {}
            Some(_) => {
                let message = "The camp_version must be CAMP 1.1: other versions are not supported.";
                self.refuse("bad-value", &root.key("camp_version"), message);
            }
        }
        for key in sections.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.refuse("unknown-attribute", &root.key(key), format!("A plan has no key {key}."));
        }
        let mut components = Vec::new();
        for (name, of) in [("artifacts", Of::Artifact), ("services", Of::Service)] {
            for (i, item) in self.items(sections, name, &root).iter().enumerate() {
                let to = root.key("components").index(components.len());
                let component = self.component(item, &root.key(name).index(i), &to, of);
                components.push(component);
            }
        }
        let mut blueprint = Map::new();
        if let Some(name) = sections.get("name") {
            blueprint.insert("name".to_owned(), name.clone());
        }
        blueprint.insert("components".to_owned(), components.into());
        blueprint.into()
    }

    fn items<'v>(&mut self, of: &'v Map, key: &str, at: &Path) -> &'v [Value] {
        match of.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::List(items)) => items,
            Some(other) => {
                let message = format!("The {key} must be a list, but this is {}.", kind_of(other));
                self.refuse("bad-shape", &at.key(key), message);
                &[]
            }
        }
    }

    /// An artifact or a service at `from`, as the component at `to`.
    fn component(&mut self, item: &Value, from: &Path, to: &Path, of: Of) -> Value {
        let words = of.words();
        self.places.insert(to.clone(), from.clone());
        let Some(entries) = item.as_map() else {
            self.refuse("bad-shape", from, format!("{} must be a map, but this is {}.", words.what, kind_of(item)));
            return Value::Null;
        };
        let mut component = Map::new();
        for (key, value) in entries {
            match key.as_str() {
                key if key == words.id => drop(component.insert("id".to_owned(), value.clone())),
                "artifact_type" if of == Of::Artifact => drop(component.insert("type".to_owned(), value.clone())),
                "content" if of == Of::Artifact => {
                    let content = self.content(value, &from.key("content"));
                    component.insert("content".to_owned(), content);
                }
                // Texts for people.
                "description" | "name" => {}
                key if key == words.needs => {}
                key => drop(component.insert(key.to_owned(), value.clone())),
            }
        }
        let needs = self.items(entries, words.needs, from);
        let kind = if of == Of::Service { self.type_of(needs) } else { None };
        if let Some(i) = kind {
            let name = needs.get(i).and_then(|need| need.get(words.need_type));
            component.insert("type".to_owned(), name.cloned().unwrap_or_default());
            for key in needs.get(i).and_then(Value::as_map).into_iter().flat_map(Map::keys) {
                if key != words.need_type {
                    let at = from.key(words.needs).index(i).key(key);
                    self.refuse("unknown-attribute", &at, "A characteristic that is the type has no attributes.");
                }
            }
        }
        let mut requires = Vec::new();
        for (i, need) in needs.iter().enumerate().filter(|(i, _)| Some(*i) != kind) {
            let to = to.key("requires").index(requires.len());
            let need = self.requirement(need, &from.key(words.needs).index(i), &to, words.need_type);
            requires.push(need);
        }
        if !requires.is_empty() {
            component.insert("requires".to_owned(), requires.into());
        }
        component.into()
    }

    /// The characteristic that is the type: the first that names a component type and no requirement type, else the
    /// first that names a component type.
    fn type_of(&self, characteristics: &[Value]) -> Option<usize> {
        let names: Vec<&str> =
            characteristics.iter().map(|item| item.str_at("characteristic_type").unwrap_or_default()).collect();
        let is_component = |name: &&str| self.library.find_component(name).is_some();
        let only = |name: &&str| is_component(name) && self.library.find_requirement(name).is_none();
        names.iter().position(only).or_else(|| names.iter().position(is_component))
    }

    fn requirement(&mut self, need: &Value, from: &Path, to: &Path, need_type: &str) -> Value {
        self.places.insert(to.clone(), from.clone());
        let Some(entries) = need.as_map() else {
            self.refuse("bad-shape", from, format!("A requirement must be a map, but this is {}.", kind_of(need)));
            return Value::Null;
        };
        let mut requirement = Map::new();
        if let Some(name) = entries.get(need_type) {
            requirement.insert("type".to_owned(), name.clone());
        } else {
            self.refuse("missing-type", from, format!("A requirement must have a {need_type}."));
        }
        for (key, value) in entries.iter().filter(|(key, _)| *key != need_type) {
            let value = match (key.as_str(), value) {
                ("fulfillment", Value::Map(_)) => {
                    let (from, to) = (from.key(key), to.key(key));
                    self.component(value, &from, &to, Of::Service)
                }
                _ => value.clone(),
            };
            requirement.insert(key.clone(), value);
        }
        requirement.into()
    }

    fn content(&mut self, content: &Value, at: &Path) -> Value {
        match content {
            Value::Map(entries) => {
                for key in entries.keys().filter(|key| *key != "href") {
                    let message =
                        format!("Content by {key} is not supported: use href, a file of the package or a URL.");
                    self.refuse("unknown-attribute", &at.key(key), message);
                }
                entries.get("href").cloned().unwrap_or_default()
            }
            other => other.clone(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Artifact,
    Service,
}

struct Words {
    what: &'static str,
    id: &'static str,
    needs: &'static str,
    need_type: &'static str,
}

impl Of {
    fn words(self) -> Words {
        match self {
            Self::Artifact => {
                Words { what: "An artifact", id: "name", needs: "requirements", need_type: "requirement_type" }
            }
            Self::Service => {
                Words { what: "A service", id: "id", needs: "characteristics", need_type: "characteristic_type" }
            }
        }
    }
}
