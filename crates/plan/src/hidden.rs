//! Masks the values of hidden parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_template::parameter::{HIDDEN, Parameter, ParameterSchema};
use kiln_template::{Files, Template, environment, source};
use kiln_value::{Diagnostic, Map, Value, secret, text};

use crate::blueprint::Sources;

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
        }
    };
}

doors! {
    /// The preview of a create, and the plan of a command made of it.
    CreatePreview,
    /// The preview of an update, and the plan of a command made of it.
    UpdatePreview,
    /// A change set of CloudFormation.
    ChangeSet,
    /// The comparison with the objects in the cloud.
    Drift,
    /// The parameters of a stack.
    Parameters,
    /// The environment of a stack.
    Environment,
    /// The files of a stack.
    Files,
    /// The response to a request that is refused.
    Error,
    /// The reason of a status: in the stack, its resources, its events, streams of events and the log.
    Reason,
    /// An event that is stored, streamed or sent to a sink.
    Event,
    /// The properties in an event that is read.
    EventProperties,
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

/// Values of hidden parameters that are masked in responses.
#[derive(Clone, Default)]
pub struct HiddenValues(Vec<String>);

impl HiddenValues {
    /// The values in these sources.
    pub fn of(sources: &[&Sources]) -> Self {
        let of_one = |sources: &&Sources| {
            let template = Template::from_value(Arc::clone(&sources.template)).ok()?;
            Some(Hidden::of(&template, &sources.files).values(sources))
        };
        Self::longest_first(sources.iter().filter_map(of_one).flatten().collect())
    }

    /// One value may be a part of another, also of another stack's.
    fn longest_first(mut values: Vec<String>) -> Self {
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self(values)
    }

    /// The values of the parameters that the templates of these sources declare, without those of nested stacks: this
    /// reads no files.
    pub fn of_own(sources: &[Sources]) -> Self {
        let of_one = |sources: &Sources| {
            let template = Template::from_value(Arc::clone(&sources.template)).ok()?;
            Some(Hidden::of_own(&template).values(sources))
        };
        Self::longest_first(sources.iter().filter_map(of_one).flatten().collect())
    }

    /// Adds other values.
    pub fn extend(&mut self, other: Self) {
        let all = std::mem::take(&mut self.0).into_iter().chain(other.0).collect();
        *self = Self::longest_first(all);
    }

    /// Masks them in what a door shows.
    pub fn mask(&self, _: Door, shown: &mut (impl Masked + ?Sized)) {
        if !self.0.is_empty() {
            shown.mask(self);
        }
    }
}

impl Masked for String {
    fn mask(&mut self, hidden: &HiddenValues) {
        for value in &hidden.0 {
            if self.contains(value.as_str()) {
                *self = secret::masked(self, value, HIDDEN);
            }
        }
    }
}

impl Masked for Value {
    fn mask(&mut self, hidden: &HiddenValues) {
        match self {
            Self::Str(text) => text.mask(hidden),
            Self::List(items) => items.iter_mut().for_each(|item| item.mask(hidden)),
            Self::Map(map) => map.mask(hidden),
            Self::Null | Self::Bool(_) | Self::Unknown(_) => {}
            other => {
                if hidden.0.contains(&text::str(other)) {
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
        self.message.mask(hidden);
        self.hints.mask(hidden);
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

/// Masks the values of hidden parameters in errors.
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
        let values = HiddenValues(["swordfish", "marlin", "1"].map(str::to_owned).to_vec());
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
}
