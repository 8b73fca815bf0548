//! Masks the values of hidden parameters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_resource::{Resource, StoredDefinition};
use kiln_template::parameter::{HIDDEN, Parameter, ParameterSchema};
use kiln_template::{Definition, Expr, Files, Scope, Template, environment, source};
use kiln_value::{Diagnostic, Map, Value, secret, text};

use crate::blueprint::Sources;
use crate::stack_scope::Draft;
use crate::{Blueprint, StackScope};

/// The sections of an environment that contain parameter values.
const SECTIONS: [&str; 2] = ["parameters", "parameter_defaults"];

macro_rules! doors {
    ($($(#[$about:meta])* $door:ident,)*) => {
        /// A way on which values of a stack leave it. To mask a value, its door must be named, and
        /// `crates/kiln/tests/kiln/hidden.rs` looks for planted values at each of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Door { $($(#[$about])* $door,)* }

        impl Door {
            /// All doors.
            pub const ALL: &[Self] = &[$(Self::$door,)*];

            /// What the door shows of hidden values.
            pub const fn shows(self) -> Shows {
                match self {
                    Self::Export => Shows::All,
                    Self::Archive | Self::Graph | Self::Report => Shows::NoValues,
                    _ => Shows::Masked,
                }
            }
        }
    };
}

/// What a door shows of hidden values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// A mask.
    Masked,
    /// The values, because something is made of them again.
    All,
    /// It shows names and counts: no values at all.
    NoValues,
}

doors! {
    /// The preview of a create, and the plan of a command made of it.
    CreatePreview,
    /// The preview of an update, and the plan of a command made of it.
    UpdatePreview,
    /// The document of a plan, and its text.
    Plan,
    /// A plan as Markdown.
    PlanMarkdown,
    /// A plan as a page.
    PlanPage,
    /// A change set of CloudFormation.
    ChangeSet,
    /// The comparison with the objects in the cloud.
    Drift,
    /// The comparison of objects with the template of their import.
    Import,
    /// What stands in the way of a refactoring.
    Refactor,
    /// The parameters of a stack.
    Parameters,
    /// The environment of a stack.
    Environment,
    /// The files of a stack.
    Files,
    /// A former template, environment or file of a stack.
    Revision,
    /// The response to a request that is refused.
    Error,
    /// The reason of a status: in the stack, its resources, its events, streams of events and the log.
    Reason,
    /// An event that is stored, streamed or sent to a sink.
    Event,
    /// The properties in an event that is read.
    EventProperties,
    /// The archive of purged stacks.
    Archive,
    /// The data of a stack, from which it can be adopted.
    Export,
    /// The log of a service.
    Log,
    /// The report of a service.
    Report,
    /// The drawing of a template.
    Graph,
    /// The language server.
    Editor,
    /// What a command prints of a valid template. The API answers like Heat, to the user who has sent the values.
    Validation,
}

/// Masks the values of hidden parameters in the answer to a validation, where they are marked with `NoEcho`.
pub fn mask_validated(_: Door, answer: &mut Value) {
    let mut names = BTreeSet::new();
    mask_marked(answer, "", &mut names);
    if names.is_empty() {
        return;
    }
    // Nested stacks may get what their parents make of hidden values.
    let nested = answer.as_map_mut().and_then(|answer| answer.get_mut("NestedParameters"));
    if let Some(nested) = nested {
        mask_given(nested);
    }
    let environment = answer.as_map_mut().and_then(|answer| answer.get_mut("Environment"));
    let Some(environment) = environment.and_then(Value::as_map_mut) else { return };
    for section in SECTIONS {
        let values = environment.get_mut(section).and_then(Value::as_map_mut);
        for (_, value) in values.into_iter().flatten().filter(|(name, _)| names.contains(*name)) {
            *value = HIDDEN.into();
        }
    }
}

/// Masks the values that nested stacks get.
fn mask_given(value: &mut Value) {
    let Some(map) = value.as_map_mut() else { return };
    for (key, inner) in map {
        if key == "Value" {
            *inner = HIDDEN.into();
        } else {
            mask_given(inner);
        }
    }
}

/// Masks the parameters in a value, which has this name, and notes their names.
fn mask_marked(value: &mut Value, name: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| mask_marked(item, name, names)),
        Value::Map(map) => {
            let is_hidden = map.get("NoEcho").is_some_and(|mark| mark.as_str() == Some("true") || *mark == true.into());
            if is_hidden {
                names.insert(name.to_owned());
            }
            for (key, inner) in map {
                if is_hidden && matches!(key.as_str(), "Default" | "Value") {
                    *inner = HIDDEN.into();
                } else {
                    mask_marked(inner, key, names);
                }
            }
        }
        _ => {}
    }
}

/// What may contain values of hidden parameters.
pub trait Masked {
    /// Masks them.
    fn mask(&mut self, hidden: &HiddenValues);
}

/// Something with the values of hidden parameters in it. It cannot be printed or serialized: what leaves the service is
/// made of it by [`Guarded::shown`], and masked.
pub struct Guarded<T> {
    content: T,
    hidden: HiddenValues,
}

impl<T> Guarded<T> {
    /// Guards a content with these values in it.
    pub fn new(content: T, hidden: HiddenValues) -> Self {
        Self { content, hidden }
    }

    /// What a door shows of the content.
    pub fn shown<S: Masked>(&self, door: Door, show: impl FnOnce(&T) -> S) -> S {
        let mut shown = show(&self.content);
        self.hidden.mask(door, &mut shown);
        shown
    }

    /// The content, masked for a door.
    pub fn into_shown(mut self, door: Door) -> T
    where
        T: Masked,
    {
        self.hidden.mask(door, &mut self.content);
        self.content
    }

    /// Whether something is hidden at all.
    pub fn hides(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// The content, to add something to it.
    pub fn content_mut(&mut self) -> &mut T {
        &mut self.content
    }

    /// The content itself. Every use should be reviewed.
    pub fn expose(&self) -> &T {
        &self.content
    }
}

/// The hidden parameters of a stack's templates.
#[derive(Clone, Default)]
pub struct Hidden {
    /// By name; templates may declare one name differently.
    schemata: BTreeMap<String, Vec<ParameterSchema>>,
}

impl Hidden {
    /// The hidden parameters of a template and of all templates among the files. A name that is hidden in one template
    /// is hidden in all, because defaults in an environment apply to all templates.
    pub fn of(template: &Template, files: &Files) -> Self {
        let mut hidden = Self::of_own(template);
        for (name, text) in &files.0 {
            // Other files are not templates.
            let nested = source::parse(text, name, usize::MAX).ok();
            if let Some(nested) = nested.and_then(|document| Template::from_value(document.value).ok()) {
                hidden.extend(Self::of_own(&nested));
            }
        }
        hidden
    }

    /// The hidden parameters of a template alone.
    fn of_own(template: &Template) -> Self {
        let schemata = template.parameter_schemata().unwrap_or_default();
        Self { schemata: schemata.into_iter().filter(|(_, schema)| schema.hidden).map(|(n, s)| (n, vec![s])).collect() }
    }

    /// Adds the hidden parameters of other templates.
    pub fn extend(&mut self, other: Self) {
        for (name, schemata) in other.schemata {
            self.schemata.entry(name).or_default().extend(schemata);
        }
    }

    /// Whether a parameter is hidden.
    pub fn has(&self, name: &str) -> bool {
        self.schemata.contains_key(name)
    }

    /// Masks the values of hidden parameters in an environment; returns whether there were any.
    pub fn mask_environment(&self, _: Door, environment: &mut Value) -> bool {
        let Some(sections) = environment.as_map_mut() else { return false };
        let mut masked = false;
        for section in SECTIONS {
            if let Some(values) = sections.get_mut(section).and_then(Value::as_map_mut) {
                masked |= self.mask_values(values);
            }
        }
        masked
    }

    fn mask_values(&self, values: &mut Map) -> bool {
        let mut masked = false;
        for (name, value) in values.iter_mut() {
            if self.has(name) && !value.is_null() {
                *value = HIDDEN.into();
                masked = true;
            }
        }
        masked
    }

    /// Masks the values of hidden parameters in files: a file with such a value is converted to JSON, which is also
    /// YAML.
    pub fn mask_files(&self, door: Door, files: &mut Files) {
        if self.schemata.is_empty() {
            return;
        }
        for text in files.0.values_mut() {
            // Other files are not environments.
            let Ok(sections) = environment::parse(text) else { continue };
            let mut value = Value::Map(sections);
            if self.mask_environment(door, &mut value) {
                *text = text::json(&value);
            }
        }
    }

    /// The values of the hidden parameters, in the forms in which messages may contain them, and their defaults.
    fn values(&self, sources: &Sources) -> Vec<String> {
        let environment = &sources.environment;
        let mut values = Vec::new();
        for (name, schemata) in &self.schemata {
            let given = [environment.parameters.get(name), environment.parameter_defaults.get(name)];
            let defaults = schemata.iter().map(|schema| schema.default.as_ref());
            for value in given.into_iter().chain(defaults).flatten() {
                collect(value, &mut values);
                // As functions see it: a text may be a list or a map.
                for schema in schemata {
                    let parameter = Parameter::new(name, schema.clone(), Some(value.clone()), None);
                    parameter.value().into_iter().for_each(|value| collect(value, &mut values));
                }
            }
        }
        values
    }
}

/// What is masked in responses.
#[derive(Clone, Default)]
pub struct HiddenValues {
    /// The values of hidden parameters, the longest first. They are masked within texts too.
    given: Vec<String>,
    /// What functions make of them. A property, an attribute or an output with such a value is masked as a whole: each
    /// resource may have its own, and to look for all of them within all values would take too long. Reasons and errors
    /// may quote them: there they are masked within the text.
    derived: Derived,
}

/// Texts by their length.
type Derived = BTreeMap<usize, BTreeSet<String>>;

impl HiddenValues {
    /// The values in these sources.
    pub fn of(sources: &[&Sources]) -> Self {
        let of_one = |sources: &&Sources| {
            let template = Template::from_value(Arc::clone(&sources.template)).ok()?;
            Some(Hidden::of(&template, &sources.files).values(sources))
        };
        Self::of_values(sources.iter().filter_map(of_one).flatten().collect())
    }

    /// Adds the values in the sources of a blueprint, and what functions make of hidden values as far as that is known
    /// before there is a stack. The blueprints of the stacks above come first: nested stacks get what they have made.
    pub fn add_blueprint(&mut self, blueprint: &Blueprint) {
        self.extend(Self::of(&[blueprint.sources()]));
        if !self.is_empty() {
            let draft = Draft::of(blueprint);
            for definition in blueprint.in_order() {
                let entries = definition.properties.entries().map(|entries| entries.map(|(_, entry)| entry).collect());
                for snippet in entries.unwrap_or_else(|| vec![definition.properties.clone()]) {
                    // An error in one property is no reason to show another.
                    if let Ok(value) = snippet.value(&draft) {
                        self.derive(&snippet, &draft, &value);
                    }
                }
            }
        }
    }

    fn of_values(given: Vec<String>) -> Self {
        Self { given: longest_first(given), derived: Derived::new() }
    }

    /// The values of the parameters that the templates of these sources declare, without those of nested stacks: this
    /// reads no files.
    pub fn of_own(sources: &[Sources]) -> Self {
        let of_one = |sources: &Sources| {
            let template = Template::from_value(Arc::clone(&sources.template)).ok()?;
            Some(Hidden::of_own(&template).values(sources))
        };
        Self::of_values(sources.iter().filter_map(of_one).flatten().collect())
    }

    /// Adds other values.
    pub fn extend(&mut self, other: Self) {
        let all = std::mem::take(&mut self.given).into_iter().chain(other.given).collect();
        self.given = longest_first(all);
        other.derived.into_values().flatten().for_each(|text| self.add_derived(text));
    }

    fn add_derived(&mut self, text: String) {
        self.derived.entry(text.len()).or_default().insert(text);
    }

    /// Adds what the functions of a snippet have made of hidden values; `value` is its value.
    pub fn derive(&mut self, snippet: &Expr, scope: &dyn Scope, value: &Value) {
        if !self.is_empty() {
            for text in snippet.derived(value, scope, &|text| self.has(text)) {
                self.add_derived(escaped(&text));
                self.add_derived(text);
            }
        }
    }

    /// Adds what the functions of a definition have made of hidden values: as it was resolved, and as it is stored.
    pub fn derive_definition(&mut self, definition: &Definition, scope: &dyn Scope, held: &StoredDefinition) {
        if !self.is_empty() {
            let given = Some(held.given()).filter(|given| **given != held.properties);
            let properties = given.into_iter().chain([&held.properties]).map(|values| (&definition.properties, values));
            for (snippet, values) in properties.chain([(&definition.metadata, &held.metadata)]) {
                self.derive(snippet, scope, &Value::Map(values.clone()));
            }
        }
    }

    /// Adds what the functions of a stack's template have made of hidden values.
    pub fn derive_stack<'a>(&mut self, scope: &StackScope, rows: impl Iterator<Item = &'a Resource>) {
        let mut held: BTreeMap<&str, Vec<&StoredDefinition>> = BTreeMap::new();
        for row in rows {
            held.entry(&row.name).or_default().extend(row.definition.as_deref());
        }
        for definition in scope.blueprint().in_order() {
            let held = held.remove(definition.name.as_str()).unwrap_or_default();
            for held in held {
                self.derive_definition(definition, scope, held);
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether a text contains or is one of them.
    fn has(&self, text: &str) -> bool {
        let contains = |value: &String| text.contains(value.as_str()) && secret::masked(text, value, HIDDEN) != text;
        self.is_derived(text) || self.given.iter().any(contains)
    }

    fn is_derived(&self, text: &str) -> bool {
        self.derived.get(&text.len()).is_some_and(|texts| texts.contains(text))
    }

    /// Masks them in what a door shows.
    pub fn mask(&self, door: Door, shown: &mut (impl Masked + ?Sized)) {
        if !self.is_empty() && door.shows() != Shows::All {
            shown.mask(self);
        }
    }
}

/// A text about a stack, which may quote hidden values.
impl Masked for String {
    fn mask(&mut self, hidden: &HiddenValues) {
        let derived = hidden.derived.range(..=self.len()).flat_map(|(_, texts)| texts);
        let mut all: Vec<&String> = hidden.given.iter().chain(derived).collect();
        // One may be a part of another: what a function has cut out of a value, for example.
        all.sort_by_key(|text| Reverse(text.len()));
        mask_within(self, all);
    }
}

impl Masked for Value {
    fn mask(&mut self, hidden: &HiddenValues) {
        match self {
            Self::Str(text) if hidden.is_derived(text) => HIDDEN.clone_into(text),
            Self::Str(text) => mask_within(text, &hidden.given),
            Self::List(items) => items.iter_mut().for_each(|item| item.mask(hidden)),
            Self::Map(map) => map.mask(hidden),
            Self::Null | Self::Bool(_) | Self::Unknown(_) => {}
            other => {
                let text = text::str(other);
                if hidden.is_derived(&text) || hidden.given.contains(&text) {
                    *other = HIDDEN.into();
                }
            }
        }
    }
}

impl Masked for Map {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.values_mut().for_each(|value| value.mask(hidden));
    }
}

impl Masked for Diagnostic {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.text.mask(hidden);
        self.hints.mask(hidden);
        if let Some(nested) = &mut self.nested {
            nested.message.mask(hidden);
        }
    }
}

impl<T: Masked> Masked for Option<T> {
    fn mask(&mut self, hidden: &HiddenValues) {
        if let Some(one) = self {
            one.mask(hidden);
        }
    }
}

impl<T: Masked> Masked for Vec<T> {
    fn mask(&mut self, hidden: &HiddenValues) {
        for one in self {
            one.mask(hidden);
        }
    }
}

/// One value may be a part of another, also of another stack's.
fn longest_first(mut values: Vec<String>) -> Vec<String> {
    values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    values.dedup();
    values
}

/// Masks hidden values in a text.
fn mask_within<'a>(text: &mut String, hidden: impl IntoIterator<Item = &'a String>) {
    for value in hidden {
        if text.contains(value.as_str()) {
            *text = secret::masked(text, value, HIDDEN);
        }
    }
}

/// The texts that represent a value and its items.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Unknown(_) => {}
        Value::List(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Map(map) => map.values().for_each(|item| collect(item, found)),
        Value::Str(text) => {
            found.extend([text.clone(), escaped(text)].into_iter().filter(|text| !text.is_empty()));
            // Lists are often written as one string.
            if text.contains(',') {
                found.extend(text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()));
            }
        }
        other => found.push(text::str(other)),
    }
}

/// A string as Python's `repr` and JSON print it, without the enclosing quotes.
fn escaped(text: &str) -> String {
    let shown = text::json(&Value::from(text));
    shown.trim_matches('"').to_owned()
}

/// Masks hidden values in the errors of a blueprint.
pub fn mask_errors_of(blueprint: &Blueprint, mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !errors.is_empty() {
        let mut hidden = HiddenValues::default();
        hidden.add_blueprint(blueprint);
        hidden.mask(Door::Error, &mut errors);
    }
    errors
}

/// Masks the values of hidden parameters in the errors of sources that are no blueprint.
pub fn mask_errors(sources: &Sources, mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !errors.is_empty() {
        HiddenValues::of(&[sources]).mask(Door::Error, &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_where_they_stand_by_themselves() {
        let given = ["swordfish", "marlin", "1"].map(str::to_owned).to_vec();
        let values = HiddenValues { given, derived: Derived::new() };
        let masked = |text: &str| {
            let mut text = text.to_owned();
            values.mask(Door::Reason, &mut text);
            text
        };
        assert_eq!(masked("\"marlin\" length (1) > 512, marlins"), "\"******\" length (******) > 512, marlins");
        assert_eq!(masked("marlinmarlin"), "marlinmarlin");
        // A long value is distinctive: it is masked within words too.
        assert_eq!(masked("aswordfishes"), "a******es");
    }

    #[test]
    fn a_part_that_a_function_has_cut_out_does_not_show_the_rest() {
        let mut hidden = HiddenValues::of_values(vec!["swordfish-marlin-2024".to_owned()]);
        hidden.add_derived("swordfish".to_owned());
        let mut reason = "bad value swordfish-marlin-2024, not swordfish".to_owned();
        hidden.mask(Door::Reason, &mut reason);
        assert_eq!(reason, "bad value ******, not ******");
    }
}
