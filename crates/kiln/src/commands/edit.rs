//! Reads files, and edits the text of a template: only the values that change are written anew.

use std::fmt::Display;
use std::path::Path;

use kiln_authoring::{Page, patch};
use kiln_template::has_call;
use kiln_template::property_place::{set_value_at, value_at};
use kiln_value::Value;

use crate::failure::{Failure, Outcome};

/// A value for a property in a template.
pub(crate) struct NewValue {
    /// The keys from the root of the template to the property.
    pub(crate) keys: Vec<String>,
    pub(crate) value: Value,
}

/// The template in a file.
pub(crate) fn read(file: &Path) -> Outcome<Page> {
    read_as(file, Page::read)
}

/// The value in a YAML or JSON file.
pub(crate) fn value(file: &Path) -> Outcome<Value> {
    read_as(file, |text| kiln_yaml::parse(&text).map(|document| document.value))
}

fn read_as<T, E: Display>(file: &Path, parse: impl FnOnce(String) -> Result<T, E>) -> Outcome<T> {
    let wrong = |why: &dyn Display| Failure::new(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    parse(text).map_err(|error| wrong(&error))
}

/// The text of a template with these values in it.
///
/// # Errors
/// Why it cannot be changed in place.
pub(crate) fn with(page: &Page, values: impl IntoIterator<Item = NewValue>) -> Result<String, String> {
    let mut template = page.value().clone();
    for NewValue { keys, value } in values {
        let place = keys.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(".");
        if value_at(page.value(), &keys).is_some_and(has_call) {
            return Err(format!("{place} is computed by the template"));
        }
        let missing =
            || format!("it has no resource {} whose properties can be changed", keys.get(1).map_or("", |name| name));
        set_value_at(&mut template, &keys, value).ok_or_else(missing)?;
    }
    if template == *page.value() {
        return Ok(page.text.clone());
    }
    patch::patch(page, &template).ok_or_else(|| "it cannot be changed in place".to_owned())
}
