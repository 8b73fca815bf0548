//! Reads a blueprint: drafts of components are collected, typed, checked, and then become the model.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use kiln_template::hint::nearest;
use kiln_value::{Map, Path, Value};

use super::library::{ComponentTypeId, Library, RequirementTypeId};
use super::model::{Application, Component, Fulfilment, Requirement, TypeFrom};
use super::provider::Providers;
use crate::Refusal;
use crate::refusal::kind_of;

/// Searching for near names takes time: only the first errors have them.
const MOST_HINTS: usize = 20;

/// Number of a draft in the reader.
pub(super) type DraftId = usize;

/// A component while the blueprint is read.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states")]
pub(super) struct Draft<'a> {
    pub(super) at: Path,
    pub(super) id: Option<String>,
    pub(super) id_made: bool,
    pub(super) implied: bool,
    /// The type that the component says, and the word for it.
    pub(super) explicit: Option<(ComponentTypeId, String)>,
    /// The most derived type that a requirement on it asks for.
    pub(super) pointed: Option<ComponentTypeId>,
    /// The most derived owner of its requirements.
    pub(super) owned: Option<ComponentTypeId>,
    pub(super) tagged: Option<ComponentTypeId>,
    /// An error about its type has been found: no further ones are reported.
    pub(super) broken: bool,
    /// Whether the parts that depend on its type have been read.
    pub(super) opened: bool,
    pub(super) content: Option<String>,
    pub(super) tags: Vec<String>,
    /// Keys that are neither part of the language nor requirement types.
    pub(super) others: Vec<(&'a str, &'a Value)>,
    pub(super) attributes: Map,
    pub(super) specs: Vec<(String, DraftId)>,
    pub(super) needs: Vec<Need<'a>>,
}

/// A requirement while the blueprint is read.
#[derive(Debug)]
pub(super) enum Need<'a> {
    /// Its type is known.
    Typed { kind: RequirementTypeId, at: Path, attributes: Map, targets: Vec<Target> },
    /// A value of the default requirement of a type that is not known yet.
    Bare { at: Path, value: &'a Value },
    /// Refused.
    Refused,
}

/// Who fulfils a requirement, while the blueprint is read.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Name(String),
    Draft(DraftId),
    Url(String),
}

/// The state of reading.
pub(super) struct Reader<'a> {
    pub(super) library: &'a Library,
    pub(super) refusals: Vec<Refusal>,
    pub(super) drafts: Vec<Draft<'a>>,
    /// Components of the blueprint, not those in place.
    pub(super) top: Vec<DraftId>,
    /// IDs that the document gives, before it is read.
    pub(super) declared: HashSet<&'a str>,
    pub(super) by_id: HashMap<String, DraftId>,
    /// Drafts whose type may have become known.
    pub(super) queue: VecDeque<DraftId>,
    /// Names that no component has so far, with the requirement.
    pub(super) unknown: Vec<(String, RequirementTypeId, Path)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(library: &'a Library) -> Self {
        Self {
            library,
            refusals: Vec::new(),
            drafts: Vec::new(),
            top: Vec::new(),
            declared: HashSet::new(),
            by_id: HashMap::new(),
            queue: VecDeque::new(),
            unknown: Vec::new(),
        }
    }

    pub(super) fn refuse(&mut self, kind: &'static str, at: &Path, message: impl Into<String>) {
        self.refusals.push(Refusal::new(kind, at, message));
    }

    /// Refuses a word that is none of the known ones.
    pub(super) fn refuse_word<'w>(
        &mut self,
        kind: &'static str,
        at: &Path,
        message: String,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) {
        let mut refusal = Refusal::new(kind, at, message);
        if self.refusals.len() < MOST_HINTS
            && let Some(near) = nearest(word, known)
        {
            refusal = refusal.hint(format!("did you mean {near}?"));
        }
        self.refusals.push(refusal);
    }

    pub(super) fn read(mut self, document: &'a Value) -> Result<Application, Vec<Refusal>> {
        let root = Path::root();
        let Some(sections) = document.as_map() else {
            self.refuse("bad-shape", &root, format!("A blueprint must be a map, but this is {}.", kind_of(document)));
            return Err(self.refusals);
        };
        for key in sections.keys() {
            if !matches!(key.as_str(), "name" | "components" | "requires") {
                let message = format!("A blueprint has no key {key}.");
                self.refuse_word("unknown-attribute", &root.key(key), message, key, ["name", "components", "requires"]);
            }
        }
        let name = match sections.get("name") {
            None | Some(Value::Null) => None,
            Some(Value::Str(name)) => Some(name.clone()),
            Some(other) => {
                let message = format!("The name of a blueprint must be a text, but this is {}.", kind_of(other));
                self.refuse("bad-shape", &root.key("name"), message);
                None
            }
        };
        match sections.get("components") {
            Some(components) => {
                self.declared = declared(components);
                self.read_components(components);
            }
            None => self.refuse("missing-components", &root, "A blueprint must have components."),
        }
        self.make_ids(false);
        let mut global = Vec::new();
        if let Some(requires) = sections.get("requires") {
            global = self.read_global(requires, &root.key("requires"));
        }
        self.infer_types();
        self.make_ids(true);
        self.check();
        self.finish(name, global)
    }

    fn read_components(&mut self, components: &'a Value) {
        let at = Path::root().key("components");
        match components {
            Value::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.read_top(None, item, &at.index(i));
                }
            }
            Value::Map(entries) => {
                for (id, entry) in entries {
                    self.read_top(Some(id), entry, &at.key(id));
                }
            }
            other => {
                let message = format!("The components must be a map or a list, but this is {}.", kind_of(other));
                self.refuse("bad-shape", &at, message);
            }
        }
    }

    fn read_top(&mut self, key: Option<&String>, body: &'a Value, at: &Path) {
        let Some(draft) = self.read_component(body, at, key.is_some()) else { return };
        self.top.push(draft);
        let own = self.drafts[draft].id.take();
        let id = match (key, own) {
            (Some(key), Some(own)) if *key != own => {
                let message = format!("The component {key} has the ID {own}.");
                self.refuse("id-conflict", &at.key("id"), message);
                key.clone()
            }
            (Some(key), _) => key.clone(),
            (None, Some(own)) => own,
            (None, None) => return,
        };
        if self.by_id.insert(id.clone(), draft).is_some() {
            self.refuse("duplicate-id", at, format!("Another component has the ID {id} too."));
        }
        self.drafts[draft].id = Some(id);
    }

    /// Makes missing IDs: of the name of the content, else of the type. `last` also makes those of inferred types.
    fn make_ids(&mut self, last: bool) {
        // The next number of a word, so that thousands of equal words take linear time.
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for draft in self.top.clone() {
            if self.drafts[draft].id.is_some() {
                continue;
            }
            let Some(word) = self.id_word(draft, last) else { continue };
            let number = numbers.entry(word.clone()).or_insert(1);
            let id = loop {
                let id = if *number == 1 { word.clone() } else { format!("{word}_{number}") };
                *number += 1;
                if !self.by_id.contains_key(&id) {
                    break id;
                }
            };
            self.by_id.insert(id.clone(), draft);
            self.drafts[draft].id = Some(id);
            self.drafts[draft].id_made = true;
        }
    }

    fn id_word(&self, draft: DraftId, last: bool) -> Option<String> {
        let of = &self.drafts[draft];
        if let Some(content) = &of.content {
            let file = content.trim_end_matches('/').rsplit('/').next().unwrap_or(content);
            return Some(file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect());
        }
        let name = match (&of.explicit, self.type_of(draft)) {
            (Some((_, word)), _) => word.as_str(),
            (None, Some(kind)) if last => &self.library.component(kind).name,
            _ => return None,
        };
        Some(name.rsplit(['.', ':']).next().unwrap_or(name).to_owned())
    }

    fn finish(mut self, name: Option<String>, global: Vec<Requirement>) -> Result<Application, Vec<Refusal>> {
        let providers = Providers::of(&global);
        let components = self.top.clone();
        let components: Vec<Component> =
            components.into_iter().filter_map(|draft| self.build(draft, &providers)).collect();
        if !self.refusals.is_empty() {
            return Err(self.refusals);
        }
        Ok(Application { name, requires: global, components, types: Arc::clone(&self.library.types) })
    }

    /// The component of a draft. The depth of components in place is limited by that of the document.
    fn build(&mut self, draft: DraftId, providers: &Providers) -> Option<Component> {
        let kind = self.type_of(draft)?;
        let mut of = std::mem::take(&mut self.drafts[draft]);
        let deploys = match providers.choose(self.library, kind) {
            Ok(name) => name.to_owned(),
            Err(why) => {
                self.refuse_provider(&of.at, kind, &why);
                String::new()
            }
        };
        let type_from = if of.explicit.is_some() {
            TypeFrom::Explicit
        } else if of.pointed.is_some() {
            TypeFrom::RequirementOnIt
        } else if of.owned.is_some() {
            TypeFrom::ItsRequirements
        } else {
            TypeFrom::Tags
        };
        let mut requires = Vec::new();
        for need in of.needs.drain(..) {
            let Need::Typed { kind, at, attributes, targets } = need else { continue };
            let fulfilled_by = self.build_targets(kind, &at, targets, providers);
            let type_name = self.library.requirement(kind).name.clone();
            requires.push(Requirement { at, type_name, attributes, fulfilled_by });
        }
        let specs = of.specs.drain(..);
        let specs = specs.filter_map(|(name, spec)| Some((name, self.build(spec, providers)?))).collect();
        Some(Component {
            at: of.at,
            id: of.id,
            id_made: of.id_made,
            implied: of.implied,
            type_name: self.library.component(kind).name.clone(),
            type_from,
            deploys,
            content: of.content,
            tags: of.tags,
            attributes: of.attributes,
            specs,
            requires,
        })
    }

    fn build_targets(
        &mut self,
        kind: RequirementTypeId,
        at: &Path,
        targets: Vec<Target>,
        providers: &Providers,
    ) -> Vec<Fulfilment> {
        let wanted = self.library.requirement(kind);
        if targets.is_empty()
            && let Some(by) = wanted.fulfilled_by
        {
            return match providers.choose(self.library, by) {
                Ok(name) => vec![Fulfilment::Platform(name.to_owned())],
                Err(why) => {
                    self.refuse_provider(at, by, &why);
                    Vec::new()
                }
            };
        }
        let built = targets.into_iter().filter_map(|target| match target {
            Target::Url(url) => Some(Fulfilment::Url(url)),
            Target::Name(id) => Some(Fulfilment::Component(id)),
            Target::Draft(draft) => self.build(draft, providers).map(|built| Fulfilment::InLine(Box::new(built))),
        });
        built.collect()
    }

    fn refuse_provider(&mut self, at: &Path, kind: ComponentTypeId, why: &[String]) {
        let name = &self.library.component(kind).name;
        let message = if why.is_empty() {
            format!("No concrete type of {name} is known.")
        } else {
            format!("No provider of {name} is left: {}.", why.join("; "))
        };
        self.refuse("no-provider", at, message);
    }

    /// The components that a component refers to, itself and by its components in place.
    pub(super) fn references(&self, draft: DraftId) -> Vec<DraftId> {
        let (mut found, mut inside) = (Vec::new(), vec![draft]);
        let mut seen = HashSet::new();
        while let Some(draft) = inside.pop() {
            let of = &self.drafts[draft];
            inside.extend(of.specs.iter().map(|(_, spec)| *spec));
            for need in &of.needs {
                let Need::Typed { targets, .. } = need else { continue };
                for target in targets {
                    match target {
                        Target::Draft(draft) => inside.push(*draft),
                        Target::Name(id) => found.extend(self.by_id.get(id).filter(|draft| seen.insert(**draft))),
                        Target::Url(_) => {}
                    }
                }
            }
        }
        found
    }
}

/// The IDs that a section of components gives.
fn declared(components: &Value) -> HashSet<&str> {
    match components {
        Value::Map(entries) => entries.keys().map(String::as_str).collect(),
        Value::List(items) => items.iter().filter_map(|item| item.str_at("id")).collect(),
        _ => HashSet::new(),
    }
}
