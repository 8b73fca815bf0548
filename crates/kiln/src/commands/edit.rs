//! Reads files, and edits the text of a template: only the values that change are written anew.

use std::fmt::Display;
use std::path::Path;

use kiln_authoring::{Page, patch};
use kiln_template::has_call;
use kiln_value::Value;

use crate::failure::{Failure, Outcome};

/// A value for a property of a resource.
pub(crate) struct NewValue<'v> {
    pub(crate) resource: &'v str,
    pub(crate) property: &'v str,
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
pub(crate) fn with<'v>(page: &Page, values: impl IntoIterator<Item = NewValue<'v>>) -> Result<String, String> {
    let words = page.release().dialect().words();
    let mut template = page.value().clone();
    for NewValue { resource, property, value } in values {
        let given =
            page.value().get(words.resources).and_then(|all| all.get(resource)?.get(words.properties)?.get(property));
        if given.is_some_and(has_call) {
            return Err(format!("{resource}.{property} is computed by the template"));
        }
        let found = words.set_property(&mut template, resource, property, value);
        found.ok_or_else(|| format!("it has no resource {resource} whose properties can be changed"))?;
    }
    if template == *page.value() {
        return Ok(page.text.clone());
    }
    patch::patch(page, &template).ok_or_else(|| "it cannot be changed in place".to_owned())
}
