//! Requirements: their abbreviated forms, attributes and fulfilment.

use kiln_value::{Map, Path, Value};

use super::library::{ComponentTypeId, FULFILLMENT, RequirementTypeId};
use super::model::Requirement;
use super::reader::{DraftId, Need, Reader, Target};
use crate::refusal::kind_of;

impl<'a> Reader<'a> {
    /// Reads the value of `requires` of a component: a map by type, a list, or one value.
    pub(super) fn read_requires(
        &mut self,
        requires: &'a Value,
        at: &Path,
        owner: Option<ComponentTypeId>,
    ) -> Vec<Need<'a>> {
        match requires {
            Value::Null => Vec::new(),
            Value::Map(entries) if !self.is_longhand(entries) => {
                let mut needs = Vec::new();
                for (name, value) in entries {
                    match self.requirement_named(name, &at.key(name)) {
                        Some(kind) => needs.extend(self.read_need(kind, value, &at.key(name))),
                        None => needs.push(Need::Refused),
                    }
                }
                needs
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                items.filter_map(|(i, item)| self.read_item(item, &at.index(i), owner)).collect()
            }
            one => self.read_item(one, at, owner).into_iter().collect(),
        }
    }

    /// Whether a map is one requirement in full, `{type: …, …}`.
    fn is_longhand(&self, entries: &Map) -> bool {
        entries.contains_key("type") && self.library.find_requirement("type").is_none()
    }

    /// One item of a list of requirements.
    fn read_item(&mut self, item: &'a Value, at: &Path, owner: Option<ComponentTypeId>) -> Option<Need<'a>> {
        match item {
            Value::Map(entries) if self.is_longhand(entries) => self.read_longhand(entries, item, at, owner),
            Value::Map(entries) if entries.len() == 1 => {
                let (name, value) = entries.first()?;
                let kind = self.requirement_named(name, &at.key(name))?;
                self.read_need(kind, value, &at.key(name))
            }
            Value::Map(_) => {
                let message = "A requirement must have a type: {type: minRam, amount: 4gb}, or {minRam: 4gb}.";
                self.refuse("missing-type", at, message);
                None
            }
            Value::Str(word) => match self.library.find_requirement(word) {
                Some(_) if self.declared.contains(word.as_str()) => {
                    let message = format!("{word} is the ID of a component and a requirement type.");
                    self.refuse("ambiguous-abbreviation", at, message);
                    if let Some(refusal) = self.refusals.last_mut() {
                        refusal
                            .hints
                            .push(format!("Write id:{word} for the component, {{type: {word}}} for the type."));
                    }
                    None
                }
                Some(kind) => self.read_need(kind, &Value::Null, at),
                None => Some(Need::Bare { at: at.clone(), value: item }),
            },
            Value::Null => {
                self.refuse("bad-shape", at, "A requirement must not be empty.");
                None
            }
            _ => Some(Need::Bare { at: at.clone(), value: item }),
        }
    }

    fn read_longhand(
        &mut self,
        entries: &'a Map,
        item: &'a Value,
        at: &Path,
        owner: Option<ComponentTypeId>,
    ) -> Option<Need<'a>> {
        let Some(name) = entries.get("type").and_then(Value::as_str) else {
            self.refuse("missing-type", at, "The type of a requirement must be a text.");
            return None;
        };
        // A component in place, for the default requirement of its owner?
        let inline = self.library.find_component(name).is_some()
            && owner
                .and_then(|owner| self.library.default_requirement_of(owner))
                .is_some_and(|kind| self.library.requirement(kind).default_attribute.as_deref() == Some(FULFILLMENT));
        match self.library.find_requirement(name) {
            Some(_) if inline => {
                let message = format!("{name} is a requirement type and a component type.");
                self.refuse("ambiguous-abbreviation", at, message);
                None
            }
            None if inline => Some(Need::Bare { at: at.clone(), value: item }),
            Some(kind) => {
                let attributes = entries.iter().filter(|(key, _)| *key != "type");
                Some(self.read_attributes(kind, attributes, at))
            }
            None => {
                self.requirement_named(name, &at.key("type"));
                None
            }
        }
    }

    fn requirement_named(&mut self, name: &str, at: &Path) -> Option<RequirementTypeId> {
        let found = self.library.find_requirement(name);
        if found.is_none() {
            let known = self.library.requirement_words();
            self.refuse_word("unknown-requirement", at, format!("No requirement type is named {name}."), name, known);
        }
        found
    }

    /// Reads what stands under a requirement type: nothing, a value of its default attribute, or its attributes.
    pub(super) fn read_need(&mut self, kind: RequirementTypeId, value: &'a Value, at: &Path) -> Option<Need<'a>> {
        match value {
            Value::Null => Some(self.read_attributes(kind, std::iter::empty(), at)),
            Value::Map(entries) => self.read_need_map(kind, entries, value, at),
            value => self.read_default(kind, value, at),
        }
    }

    fn read_need_map(
        &mut self,
        kind: RequirementTypeId,
        entries: &'a Map,
        value: &'a Value,
        at: &Path,
    ) -> Option<Need<'a>> {
        let wanted = self.library.requirement(kind);
        let by_default = wanted.default_attribute.as_deref() == Some(FULFILLMENT);
        let named = entries.get("type").filter(|_| !wanted.attributes.contains_key("type"));
        if let Some(name) = named.and_then(Value::as_str) {
            let is_component = self.library.find_component(name).is_some();
            let is_requirement = self.library.find_requirement(name).is_some();
            if by_default && is_component && is_requirement {
                let message = format!("{name} is a requirement type and a component type.");
                self.refuse("ambiguous-abbreviation", at, message);
                if let Some(refusal) = self.refusals.last_mut() {
                    let hint = format!("Write fulfillment: {{type: {name}}} for a component in place.");
                    refusal.hints.push(hint);
                }
                return None;
            }
            if by_default && is_component {
                return self.read_default(kind, value, at);
            }
            if is_requirement && name == wanted.name {
                let attributes = entries.iter().filter(|(key, _)| *key != "type");
                return Some(self.read_attributes(kind, attributes, at));
            }
            if by_default && !is_requirement {
                let message = format!("No component type is named {name}.");
                let known = self.library.component_words();
                self.refuse_word("unknown-type", &at.key("type"), message, name, known);
                return None;
            }
        }
        Some(self.read_attributes(kind, entries, at))
    }

    /// A value of the default attribute.
    pub(super) fn read_default(&mut self, kind: RequirementTypeId, value: &'a Value, at: &Path) -> Option<Need<'a>> {
        let wanted = self.library.requirement(kind);
        let Some(attribute) = &wanted.default_attribute else {
            let names: Vec<&str> = wanted.attributes.keys().map(String::as_str).collect();
            let message = format!("{} has no default attribute: name one of {}.", wanted.name, names.join(", "));
            self.refuse("no-default-attribute", at, message);
            return None;
        };
        if attribute == FULFILLMENT {
            let targets = self.read_fulfilment(value, at, at)?;
            return Some(Need::Typed { kind, at: at.clone(), attributes: Map::new(), targets });
        }
        let mut attributes = Map::new();
        self.read_attribute(kind, attribute, value, at, &mut attributes);
        Some(Need::Typed { kind, at: at.clone(), attributes, targets: Vec::new() })
    }

    fn read_attributes(
        &mut self,
        kind: RequirementTypeId,
        entries: impl IntoIterator<Item = (&'a String, &'a Value)>,
        at: &Path,
    ) -> Need<'a> {
        let wanted = self.library.requirement(kind);
        let (mut attributes, mut targets) = (Map::new(), Vec::new());
        for (name, value) in entries {
            if !wanted.attributes.contains_key(name) {
                let message = format!("The requirement {} has no attribute {name}.", wanted.name);
                let known = wanted.attributes.keys().map(String::as_str);
                self.refuse_word("unknown-attribute", &at.key(name), message, name, known);
            } else if name == FULFILLMENT {
                match self.read_fulfilment(value, &at.key(name), at) {
                    Some(found) => targets = found,
                    None => return Need::Refused,
                }
            } else {
                self.read_attribute(kind, name, value, at, &mut attributes);
            }
        }
        Need::Typed { kind, at: at.clone(), attributes, targets }
    }

    fn read_attribute(&mut self, kind: RequirementTypeId, name: &str, value: &Value, at: &Path, attributes: &mut Map) {
        let wanted = self.library.requirement(kind);
        let Some(form) = wanted.attributes.get(name) else { return };
        match form.read(value) {
            Ok(value) => drop(attributes.insert(name.to_owned(), value)),
            Err(expected) => {
                let message = format!("The {name} of {} must be {expected}.", wanted.name);
                self.refuse("bad-value", at, message);
            }
        }
    }

    /// Reads who fulfils: `id:x`, `x`, a URL, a component in place, or a list of these.
    fn read_fulfilment(&mut self, value: &'a Value, at: &Path, requirement: &Path) -> Option<Vec<Target>> {
        match value {
            Value::List(items) => {
                let items = items.iter().enumerate();
                items.map(|(i, item)| self.read_target(item, &at.index(i), requirement)).collect()
            }
            one => Some(vec![self.read_target(one, at, requirement)?]),
        }
    }

    fn read_target(&mut self, value: &'a Value, at: &Path, requirement: &Path) -> Option<Target> {
        match value {
            Value::Str(text) if text.contains("://") => Some(Target::Url(text.clone())),
            Value::Str(text) if !text.is_empty() => {
                Some(Target::Name(text.strip_prefix("id:").unwrap_or(text).to_owned()))
            }
            Value::Map(_) => {
                let draft = self.read_component(value, at, false)?;
                self.refuse_id(draft);
                Some(Target::Draft(draft))
            }
            other => {
                let message =
                    format!("A component is named by a text or described by a map, but this is {}.", kind_of(other));
                self.refuse("bad-value", requirement, message);
                None
            }
        }
    }

    /// Refuses the ID of a component in place.
    pub(super) fn refuse_id(&mut self, draft: DraftId) {
        if self.drafts[draft].id.take().is_some() {
            let at = self.drafts[draft].at.key("id");
            self.refuse("unknown-attribute", &at, "A component in place has no ID: declare it under components.");
        }
    }

    /// Requirements of the blueprint itself.
    pub(super) fn read_global(&mut self, requires: &'a Value, at: &Path) -> Vec<Requirement> {
        let mut global = Vec::new();
        for need in self.read_requires(requires, at, None) {
            let need = match (need, self.library.default_requirement) {
                (Need::Bare { at, value }, Some(kind)) => self.read_default(kind, value, &at),
                (Need::Bare { at, .. }, None) => {
                    self.refuse("no-default-requirement", &at, "A blueprint has no default requirement.");
                    None
                }
                (need, _) => Some(need),
            };
            let Some(Need::Typed { kind, at, attributes, .. }) = need else { continue };
            let kind = self.library.requirement(kind);
            if kind.of_blueprint {
                let type_name = kind.name.clone();
                global.push(Requirement { at, type_name, attributes, fulfilled_by: Vec::new() });
            } else {
                let message = format!("{} is a requirement of components, not of the whole blueprint.", kind.name);
                self.refuse("wrong-place", &at, message);
            }
        }
        global
    }
}
