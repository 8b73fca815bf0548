//! Masks the values of hidden parameters.

use std::collections::BTreeSet;

use kiln_template::parameter::HIDDEN;
use kiln_template::{Files, Template, environment, source};
use kiln_value::{Diagnostic, Map, Value, text};

use crate::blueprint::Sources;

/// The sections of an environment that contain parameter values.
const SECTIONS: [&str; 2] = ["parameters", "parameter_defaults"];

/// The hidden parameters of a stack's templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    names: BTreeSet<String>,
}

impl Hidden {
    /// The hidden parameters of a template and of all templates among the files. A name that is hidden in one template
    /// is hidden in all, because defaults in an environment apply to all templates.
    pub fn of(template: &Template, files: &Files) -> Self {
        let mut names = hidden(template);
        for (name, text) in &files.0 {
            // Other files are not templates.
            let nested = source::parse(text, name, usize::MAX).ok();
            let nested = nested.and_then(|document| Template::from_value(document.value).ok());
            names.extend(nested.iter().flat_map(hidden));
        }
        Self { names }
    }

    /// The hidden parameters of a template alone.
    fn of_own(template: &Template) -> Self {
        Self { names: hidden(template) }
    }

    /// Adds the hidden parameters of other templates.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
    }

    /// Whether a parameter is hidden.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Masks the values of hidden parameters in an environment; returns whether there were any.
    pub fn mask_environment(&self, environment: &mut Value) -> bool {
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
    pub fn mask_files(&self, files: &mut Files) {
        if self.names.is_empty() {
            return;
        }
        for text in files.0.values_mut() {
            // Other files are not environments.
            let Ok(sections) = environment::parse(text) else { continue };
            let mut value = Value::Map(sections);
            if self.mask_environment(&mut value) {
                *text = text::json(&value);
            }
        }
    }

    /// The values of the hidden parameters, in the forms in which messages may contain them.
    fn values(&self, sources: &Sources) -> Vec<String> {
        let environment = &sources.environment;
        let given = [&environment.parameters, &environment.parameter_defaults];
        let given = given.into_iter().flatten().filter(|(name, _)| self.has(name)).map(|(_, value)| value);
        let mut values = Vec::new();
        for value in given {
            collect(value, &mut values);
        }
        // Longer values first: one value may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        values
    }
}

/// The hidden parameters that a template declares.
fn hidden(template: &Template) -> BTreeSet<String> {
    let schemata = template.parameter_schemata().unwrap_or_default();
    schemata.into_iter().filter(|(_, schema)| schema.hidden).map(|(name, _)| name).collect()
}

/// Values of hidden parameters that are masked in responses.
#[derive(Clone, Default)]
pub struct HiddenValues(Vec<String>);

impl HiddenValues {
    /// The values in these sources.
    pub fn of(sources: &[&Sources]) -> Self {
        let of_one = |sources: &&Sources| {
            let template = Template::from_value(std::sync::Arc::clone(&sources.template)).ok()?;
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
            let template = Template::from_value(std::sync::Arc::clone(&sources.template)).ok()?;
            Some(Hidden::of_own(&template).values(sources))
        };
        Self::longest_first(sources.iter().filter_map(of_one).flatten().collect())
    }

    /// Adds other values.
    pub fn extend(&mut self, other: Self) {
        let all = std::mem::take(&mut self.0).into_iter().chain(other.0).collect();
        *self = Self::longest_first(all);
    }

    /// Masks them in a text.
    pub fn mask_text(&self, text: &mut String) {
        if !self.0.is_empty() {
            *text = masked(text, &self.0);
        }
    }

    /// Masks them in a value.
    pub fn mask(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
            Value::Str(text) => self.mask_text(text),
            Value::List(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Map(map) => map.values_mut().for_each(|item| self.mask(item)),
            Value::Null | Value::Bool(_) => {}
            other => {
                if self.0.contains(&text::str(other)) {
                    *other = HIDDEN.into();
                }
            }
        }
    }
}

/// The texts that represent a value and its items.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
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
    if errors.is_empty() {
        return errors;
    }
    let Ok(template) = Template::from_value(std::sync::Arc::clone(&sources.template)) else { return errors };
    let values = Hidden::of(&template, &sources.files).values(sources);
    for error in &mut errors {
        error.message = masked(&error.message, &values);
        for hint in &mut error.hints {
            *hint = masked(hint, &values);
        }
    }
    errors
}

/// Masks the values wherever they occur as whole words.
fn masked(text: &str, values: &[String]) -> String {
    let mut text = text.to_owned();
    for value in values {
        text = without(&text, value);
    }
    text
}

/// Masks a value. A value that starts or ends within a word is not masked: a secret `1` is not in `512`.
fn without(text: &str, value: &str) -> String {
    let in_word = |side: Option<char>, edge: Option<char>| {
        side.is_some_and(char::is_alphanumeric) && edge.is_some_and(char::is_alphanumeric)
    };
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(value) {
        let left = before.chars().next_back().or_else(|| shown.chars().next_back());
        shown.push_str(before);
        let inside = in_word(left, value.chars().next()) || in_word(after.chars().next(), value.chars().next_back());
        shown.push_str(if inside { value } else { HIDDEN });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_where_they_stand_by_themselves() {
        let values = ["swordfish".to_owned(), "1".to_owned()];
        assert_eq!(
            masked("\"swordfish\" length (1) > 512, swordfishes", &values),
            "\"******\" length (******) > 512, swordfishes"
        );
        assert_eq!(masked("swordfishswordfish", &values), "swordfishswordfish");
    }
}
