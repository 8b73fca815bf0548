//! Finds all errors of a desired stack before anything is created (docs/heat-behaviour.md §4).

mod policy;

use std::collections::HashSet;

use indexmap::IndexSet;
use kiln_resource::properties::Judged;
use kiln_resource::translation::{Answers, Lookup};
use kiln_resource::{Facts, ResourceType, Siblings, properties, translation};
use kiln_template::Definition;
use kiln_template::constraint::CustomConstraints;
use kiln_value::{Class, Diagnostic, Map, NestedPlace, Path, Segment, Subject, Value};

use crate::ResourceTypes;
use crate::blueprint::{Blueprint, Nesting, Sources};
use crate::facade;
use crate::kind::Kind;
use crate::places::Places;
use crate::stack_scope::{Draft, References};

/// The context of a validation.
pub struct Rules<'a> {
    /// The resource types.
    pub catalog: &'a ResourceTypes,
    /// Evaluates custom constraints.
    pub custom: &'a dyn CustomConstraints,
    /// The results of looking up names in properties, as far as they are known.
    pub answers: &'a Answers,
    /// Returns the error of a type whose service the cloud lacks. The second argument is the type's name in the
    /// template.
    pub unavailable: &'a dyn Fn(&ResourceType, &str) -> Option<Diagnostic>,
    /// Whether missing parameter values are errors: yes for a create, no for a validate call.
    pub strict: bool,
    /// Whether values of properties are validated, by schema, driver and nested stack. Heat's validate call only checks
    /// the names of properties (docs/heat-behaviour.md §4), since parameters may have no values yet.
    pub values: bool,
    /// The maximum nesting depth of stacks (`max_nested_stack_depth`).
    pub max_depth: u32,
    /// Whether policies that Kiln does not implement yet are refused.
    pub unbuilt: bool,
}

/// The name of a group's template in paths.
const GROUP: &str = "nested_stack";

/// The known parts of properties, and the paths of the unknown parts.
pub type Drafted = (Map, Vec<Path>);

impl Blueprint {
    /// All errors, in Heat's order: the first one is the one that Heat returns.
    pub fn validate(&self, rules: &Rules<'_>) -> Vec<Diagnostic> {
        let mut found = self.parameters().validate(rules.custom, rules.strict);
        // An invalid parameter value would be reported again at every use.
        let parameters_fit = found.is_empty();
        found.extend(self.bound().template().parameter_groups().err());
        if let Ok(conditions) = self.bound().conditions() {
            found.extend(conditions.errors(self.bound()));
        }
        found.extend(self.duplicate_names());
        let draft = Draft::of(self);
        let references = References::new(self.bound(), self.planned());
        let siblings = self.siblings(&references);
        for definition in self.in_order() {
            found.extend(name_error(&definition.name).map(|error| error.at(self.place_of(&definition.name))));
            let mut errors = definition.errors(&draft);
            errors.retain(|error| !rules.values || !error.not_known_yet);
            if parameters_fit {
                errors = self.validate_resource(definition, (&draft, &siblings), rules, errors);
            }
            found.extend(errors);
        }
        found.extend(self.outputs().values().filter_map(|output| output.validate(&draft).err()));
        if rules.values && !rules.strict {
            found.retain(|error| !error.not_known_yet);
        }
        found
    }

    /// The error of the first resource whose type has no service in the cloud. In Heat it precedes all other errors.
    pub fn unavailable(&self, refusal: &dyn Fn(&ResourceType, &str) -> Option<Diagnostic>) -> Option<Diagnostic> {
        self.definitions().values().find_map(|definition| {
            let error = refusal(self.kind(&definition.name)?.resource_type(), &definition.resource_type)?;
            Some(error.at(self.place_of(&definition.name).key(self.bound().template().words().resource_type)))
        })
    }

    /// The definitions in an order of validation that Heat could use: each after its requirements. The rest of Heat's
    /// order is random.
    pub fn in_order(&self) -> Vec<&Definition> {
        let definitions = self.definitions();
        let mut order: IndexSet<&str> = IndexSet::with_capacity(definitions.len());
        // A name is added to the order when it is visited for the second time, after its requirements.
        let mut open: Vec<(&str, bool)> = definitions.keys().rev().map(|name| (name.as_str(), false)).collect();
        let mut seen = HashSet::new();
        while let Some((name, is_ready)) = open.pop() {
            if is_ready {
                order.insert(name);
            } else if seen.insert(name) {
                open.push((name, true));
                open.extend(self.requires(name).iter().rev().map(|required| (required.as_str(), false)));
            }
        }
        order.into_iter().filter_map(|name| definitions.get(name)).collect()
    }

    fn duplicate_names(&self) -> Option<Diagnostic> {
        let parameters = self.parameters().schemata();
        let doubles: Vec<&str> =
            self.bound().template().resource_names().filter(|name| parameters.contains_key(*name)).collect();
        if doubles.is_empty() {
            return None;
        }
        let list: Vec<String> = doubles.iter().map(|name| format!("'{name}'")).collect();
        let at = self.place_of(doubles[0]);
        Some(Diagnostic::invalid(format!("Duplicate names {{{}}}", list.join(", "))).at(at))
    }

    /// All errors of a resource, after those of its functions (`refused`).
    fn validate_resource(
        &self,
        definition: &Definition,
        (draft, siblings): (&Draft<'_>, &Siblings<'_>),
        rules: &Rules<'_>,
        refused: Vec<Diagnostic>,
    ) -> Vec<Diagnostic> {
        let mut found = refused;
        let Some(kind) = self.kind(&definition.name) else { return found };
        let at = self.place_of(&definition.name);
        let properties_at = at.key(self.bound().template().words().properties);
        // The properties of an external resource are unused, and only the cloud knows whether the object exists.
        if let Some(id) = &definition.external_id {
            match id.value(draft) {
                // An `if` without an else: it is not external.
                Ok(Value::Null) => {}
                id => {
                    let is_empty = rules.values && id.is_ok_and(|id| id.as_str() == Some(""));
                    found.extend(is_empty.then(|| self.no_external_id(definition, kind)));
                    return found;
                }
            }
        }
        if let Some(error) = unresolved_first(definition, kind, draft, &properties_at) {
            return vec![error];
        }
        found.extend(self.policy_errors(definition, kind, draft, rules));
        if !rules.values {
            found.extend(self.validate_shape(definition, draft, kind, &found));
            return found;
        }
        let (data, unknown, errors) = self.drafted(definition, draft);
        found.extend(news(&errors, &found, &properties_at));
        let resource_type = kind.resource_type();
        let given = data.clone();
        let data = match translation::apply(&resource_type.translation, data, rules.answers, &properties_at) {
            Ok(data) => data,
            Err(error) => {
                found.push(error);
                return found;
            }
        };
        let moved = translation::moved(&resource_type.translation, &given, &data);
        if resource_type.open_properties {
            return found;
        }
        // Parameters of nested stacks can be placeholders for unknown values, so Heat does not validate values in them.
        let unjudged = self.place.depth > 0 && !rules.strict;
        let (moved, unknown) = (Places::of(&moved), Places::of(&unknown));
        let judged = |path: &Path| match () {
            () if moved.contain(path) => Judged::Not,
            () if unjudged || unknown.contain(path) => Judged::ByKind,
            () => Judged::Wholly,
        };
        let wrong = properties::validate(&resource_type.properties, &data, &judged, rules.custom, &properties_at);
        found.extend(
            wrong.into_iter().filter_map(|error| if unjudged { unjudged_error(error, &at) } else { Some(error) }),
        );
        if found.is_empty() {
            found.extend(self.validate_kind(definition, kind, &data, siblings, rules));
        }
        if found.is_empty()
            && let Kind::Template(provider) = kind
        {
            let error = facade::error(definition, provider, self.sources(), rules.catalog);
            found.extend(error.map(|error| error.at(at)));
        }
        found
    }

    /// The error of an empty ID, which is no object's.
    fn no_external_id(&self, definition: &Definition, kind: &Kind) -> Diagnostic {
        let name = &kind.resource_type().name;
        let text = format!("Invalid external resource: Resource  ({name}) can not be found.");
        Diagnostic::invalid(text)
            .at(self.place_of(&definition.name).key("external_id"))
            .hint("external_id is empty: give the ID of an object, or use an if without an else to create one")
    }

    /// The errors of a resource that are independent of values.
    fn validate_shape(
        &self,
        definition: &Definition,
        draft: &Draft<'_>,
        kind: &Kind,
        refused: &[Diagnostic],
    ) -> Vec<Diagnostic> {
        let words = self.bound().template().words();
        let at = self.place_of(&definition.name).key(words.properties);
        let mut found = Vec::new();
        let resource_type = kind.resource_type();
        if resource_type.open_properties {
            return found;
        }
        let names: Vec<String> = if let Some(entries) = definition.properties.entries() {
            entries.map(|(name, _)| name.to_owned()).collect()
        } else {
            let (data, _, errors) = self.drafted(definition, draft);
            found.extend(news(&errors, refused, &at));
            data.into_iter().map(|(name, _)| name).collect()
        };
        found.extend(properties::validate_names(&resource_type.properties, &names, &at));
        found
    }

    /// The errors found by the driver and, for a nested stack, in its template.
    fn validate_kind(
        &self,
        definition: &Definition,
        kind: &Kind,
        data: &Map,
        siblings: &Siblings<'_>,
        rules: &Rules<'_>,
    ) -> Vec<Diagnostic> {
        let at = &self.place_of(&definition.name);
        let facts = Facts {
            name: definition.name.clone(),
            resource_type: kind.resource_type().name.clone(),
            properties: properties::resolve(&kind.resource_type().properties, data).unwrap_or_default(),
            given: data.keys().cloned().collect(),
            ..Facts::default()
        };
        match kind {
            Kind::Type(entry) => {
                let among = |this| entry.driver.validate_among(this, siblings);
                let among = siblings.get(&definition.name).map_or(Ok(()), among);
                if let Err(error) = entry.driver.validate(&facts).and(among) {
                    return vec![self.in_our_words(error, at)];
                }
                let described = entry.driver.nested_stack();
                match described.and_then(|nested| nested.draft(&facts, &self.wanted_paths(&definition.name))) {
                    None => Vec::new(),
                    Some(Err(error)) => vec![error.at(at.clone())],
                    // Without a service, templates on the web are not read.
                    Some(Ok(nested)) if self.identity.is_none() && self.is_absent(nested.template_url.as_deref()) => {
                        Vec::new()
                    }
                    Some(Ok(nested)) => {
                        let sources = self.group_sources(definition, nested);
                        self.validate_nested(definition, GROUP, sources, at, rules)
                    }
                }
            }
            Kind::Template(provider) => {
                let sources = self.provider_sources(definition, provider, &facts.properties);
                self.validate_nested(definition, &provider.url, sources, at, rules)
            }
        }
    }

    fn is_absent(&self, url: Option<&str>) -> bool {
        url.is_some_and(|url| self.sources().files.get(url).is_none())
    }

    /// Converts an error of a driver, which uses the words of HOT in its paths, to the language of the template.
    fn in_our_words(&self, mut error: Diagnostic, at: &Path) -> Diagnostic {
        let words = self.bound().template().words();
        let place = match error.path.0.get(2..) {
            Some([Segment::Key(section), rest @ ..]) if section == "properties" => {
                let mut place = at.key(words.properties);
                place.0.extend(rest.iter().cloned());
                place
            }
            _ => at.clone(),
        };
        if !error.shown.is_empty() {
            error.shown = place.to_string();
        }
        error.at(place)
    }

    fn validate_nested(
        &self,
        definition: &Definition,
        label: &str,
        sources: Result<Sources, Diagnostic>,
        at: &Path,
        rules: &Rules<'_>,
    ) -> Vec<Diagnostic> {
        let prefix = format!("{}.{}<{label}>", self.bound().template().words().resources, definition.name);
        let depth = self.place.depth + 1;
        let nested = if depth > rules.max_depth {
            let text = format!("Request limit exceeded: Recursion depth exceeds {}.", rules.max_depth);
            Err(Diagnostic::new(Class::RequestLimitExceeded, text))
        } else {
            // The names of the members in the nested stack are still unknown, so values are not validated.
            let place = Nesting { facade: Some(self.facade_of(definition)), depth };
            sources.and_then(|sources| Blueprint::build(sources, rules.catalog, self.identity.clone(), place))
        };
        let found = match nested {
            // Heat looks up the type of a group's members before it validates the group.
            Err(error) if label == GROUP && matches!(error.subject, Some(Subject::ResourceType(_))) => {
                return vec![error.at(at.clone())];
            }
            Err(error) => vec![error],
            Ok(nested) => match nested.unavailable(rules.unavailable) {
                Some(error) => vec![error],
                None => nested.validate(&Rules { strict: false, ..*rules }),
            },
        };
        let properties_at = at.key(self.bound().template().words().properties);
        let outer = |error: &Diagnostic| {
            let mut outer = below(error, &prefix, at);
            if label == GROUP {
                if let Some(place) = place_in_group(definition, &properties_at, &error.path) {
                    outer.path = place;
                }
            } else if outer.nested.is_none() {
                let (file, path, message) = (label.to_owned(), error.path.clone(), error.to_string());
                outer.nested = Some(NestedPlace { file, path, message });
            }
            outer
        };
        found.iter().map(outer).collect()
    }

    /// The path of a resource in the template.
    pub fn place_of(&self, name: &str) -> Path {
        let section = self.bound().template().words().resources;
        Path([section, name].map(|key| Segment::Key(key.to_owned())).into())
    }

    /// The known parts of properties, and the paths of the unknown parts.
    ///
    /// # Errors
    /// An error of a function, with the path below the properties.
    pub fn draft_properties(&self, definition: &Definition, draft: &Draft<'_>) -> Result<Drafted, Diagnostic> {
        let (data, unknown, errors) = self.drafted(definition, draft);
        errors.into_iter().next().map_or(Ok((data, unknown)), Err)
    }

    /// Like `draft_properties`, with the errors of all properties. Properties with errors are unknown.
    fn drafted(&self, definition: &Definition, draft: &Draft<'_>) -> (Map, Vec<Path>, Vec<Diagnostic>) {
        let Some(entries) = definition.properties.entries() else {
            return match definition.properties.partial(draft) {
                Ok(partial) => {
                    let map = partial.value.and_then(|value| value.as_map().cloned()).unwrap_or_default();
                    (map, partial.unknown, Vec::new())
                }
                Err(error) => (Map::new(), vec![Path::root()], vec![error.at(Path::root())]),
            };
        };
        let (mut data, mut unknown, mut errors) = (Map::new(), Vec::new(), Vec::new());
        for (name, expr) in entries {
            let at = Path::root().key(name);
            let partial = match expr.partial(draft) {
                Ok(partial) => partial,
                Err(error) => {
                    data.insert(name.to_owned(), Value::Null);
                    unknown.push(at.clone());
                    errors.push(error.at(at));
                    continue;
                }
            };
            if let Some(value) = partial.value {
                data.insert(name.to_owned(), value);
            }
            unknown.extend(partial.unknown.into_iter().map(|hole| {
                let mut path = at.clone();
                path.0.extend(hole.0);
                path
            }));
        }
        if let Some(kind) = self.kind(&definition.name) {
            properties::describe(&kind.resource_type().properties, &mut data, Some(&definition.description));
        }
        (data, unknown, errors)
    }

    /// The names in properties of this stack (without nested ones) to look up in the cloud.
    pub fn lookups(&self) -> Vec<Lookup> {
        let draft = Draft::of(self);
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for definition in self.definitions().values() {
            let Some(kind) = self.kind(&definition.name) else { continue };
            if kind.resource_type().translation.is_empty() {
                continue;
            }
            let Ok((data, unknown)) = self.draft_properties(definition, &draft) else { continue };
            let known: Map =
                data.into_iter().filter(|(name, _)| !unknown.contains(&Path::root().key(name.as_str()))).collect();
            for lookup in translation::lookups(&kind.resource_type().translation, &known).into_keys() {
                if seen.insert(lookup.clone()) {
                    found.push(lookup);
                }
            }
        }
        found
    }

    /// The attributes (name and path) of a resource that the template reads.
    pub fn wanted_paths(&self, name: &str) -> Vec<Vec<Value>> {
        self.wanted_at_all(name)
            .iter()
            .filter_map(|wanted| match wanted {
                kiln_template::Wanted::One { name, path } => Some(std::iter::once(name).chain(path).cloned().collect()),
                kiln_template::Wanted::All => None,
            })
            .collect()
    }
}

/// An error of a nested stack as shown for the root: `<error>: resources.n<nested.yaml>.resources.m: <text>`.
fn below(error: &Diagnostic, prefix: &str, at: &Path) -> Diagnostic {
    let outer = match &error.class {
        Class::StackValidationFailed => {
            let shown = if error.shown.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", error.shown) };
            Diagnostic::invalid(error.text.as_str()).because(error.cause.clone()).showing(shown)
        }
        class => Diagnostic::invalid(error.to_string()).because(class.to_string()).showing(prefix),
    };
    let mut outer = outer.at(at.clone());
    // The position in the nested template is more precise than the resource that uses it.
    outer.file.clone_from(&error.file);
    outer.nested.clone_from(&error.nested);
    outer.hints.clone_from(&error.hints);
    // A parameter of the nested template gets its value from the resource.
    outer.subject =
        error.subject.clone().filter(|subject| matches!(subject, Subject::ResourceType(_) | Subject::Name(_)));
    outer
}

/// The place in a group's definition of its members that an error of a member is about. `path` is in the template of the
/// group, whose resources are the members.
fn place_in_group(definition: &Definition, properties_at: &Path, path: &Path) -> Option<Path> {
    let [_, _, inner @ ..] = path.0.as_slice() else { return None };
    let member = ["resource_def", "resource"].into_iter().find(|key| definition.properties.entry(key).is_some())?;
    let mut place = properties_at.key(member);
    place.0.extend(inner.iter().cloned());
    Some(place)
}

/// An error of a property in a stack without validation of values. As in Heat, missing properties are no errors yet,
/// and an unreadable value is an error of the resource.
fn unjudged_error(error: Diagnostic, at: &Path) -> Option<Diagnostic> {
    match error.subject {
        Some(Subject::UnknownProperty(_) | Subject::UnbuiltProperty(_)) => Some(error),
        Some(Subject::MissingProperty(_)) => None,
        _ => Some(error.because("ValueError").showing(at)),
    }
}

/// Heat stores names in a column of 255 characters and fails for longer ones.
fn name_error(name: &str) -> Option<Diagnostic> {
    let text = if name.contains('/') {
        "Resource name may not contain \"/\""
    } else if name.chars().nth(255).is_some() {
        "Resource name may not be longer than 255 characters"
    } else {
        return None;
    };
    Some(Diagnostic::invalid(text))
}

/// The error of a property that Heat resolves before all others.
fn unresolved_first(definition: &Definition, kind: &Kind, draft: &Draft<'_>, at: &Path) -> Option<Diagnostic> {
    let first = kind.entry()?.driver.resolved_first();
    let mut entries = definition.properties.entries()?.filter(|(name, _)| first.contains(name));
    entries.find_map(|(name, expr)| {
        let error = expr.resolve(draft).err().filter(|error| !error.not_known_yet)?;
        Some(Diagnostic::new(Class::ValueError, error.to_string()).at(at.key(name)))
    })
}

/// The errors of properties, with their paths below `at`, without those at or below the path of a known error.
fn news(errors: &[Diagnostic], known: &[Diagnostic], at: &Path) -> Vec<Diagnostic> {
    let errors = errors.iter().map(|error| property_error(at, error));
    errors.filter(|error| !known.iter().any(|known| known.path.0.starts_with(&error.path.0))).collect()
}

/// The path of `error` is relative to the properties.
fn property_error(at: &Path, error: &Diagnostic) -> Diagnostic {
    let mut path = at.clone();
    path.0.extend(error.path.0.iter().cloned());
    let mut outer = Diagnostic::of_property(&path, error.to_string());
    outer.subject = error.subject.clone().filter(|subject| matches!(subject, Subject::Name(_)));
    outer
}
