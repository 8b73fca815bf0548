//! Properties of the text itself: validity, version, types and functions.

use std::collections::BTreeSet;

use kiln_template::{Template, environment, functions, source};
use kiln_value::{Map, Value, value};

use crate::Verdict;
use crate::difference::{difference, error};
use crate::record::Record;

/// Checks `parse`, `version`, `resource_types` and `functions`.
pub(crate) fn judge(record: &Record, text: &str) -> Vec<(&'static str, Verdict)> {
    if !record.is_template() {
        let parsed = environment::parse(text).map(|sections| {
            let names: BTreeSet<&String> = sections.keys().collect();
            value!({"ok": true, "sections": (names.into_iter().collect::<Value>())})
        });
        let parsed = parsed.unwrap_or_else(|problem| error(&problem));
        return vec![("parse", difference(record.field("parse"), &parsed))];
    }
    let document = source::parse(text, source::ROOT, source::MAX_TEMPLATE_SIZE);
    let parsed = document.as_ref().map_or_else(error, |_| value!({"ok": true}));
    let mut verdicts = vec![("parse", difference(record.field("parse"), &parsed))];
    let Ok(document) = document else { return verdicts };
    let template = match Template::from_value(document.value) {
        Ok(template) => template,
        Err(problem) => {
            verdicts.push(("version", difference(record.field("version_error"), &error(&problem))));
            return verdicts;
        }
    };
    let (key, version) = template.version().pair();
    verdicts.push(("version", difference(record.field("version"), &[key, version].into_iter().collect())));
    verdicts.push(("resource_types", difference(record.field("resource_types"), &types(&template))));
    verdicts.push(("functions", difference(record.field("functions"), &calls(&template))));
    verdicts
}

/// Number of occurrences of each type.
fn types(template: &Template) -> Value {
    let words = template.words();
    let resources = template.as_value().get(words.resources).and_then(Value::as_map);
    let mut counts = Map::new();
    for resource in resources.into_iter().flat_map(Map::values) {
        count(&mut counts, resource.str_at(words.resource_type));
    }
    counts.into()
}

/// Number of calls of each function.
fn calls(template: &Template) -> Value {
    let names: BTreeSet<&str> = functions(template.release(), true).into_iter().map(|info| info.name).collect();
    let mut counts = Map::new();
    let mut waiting = vec![template.as_value()];
    while let Some(value) = waiting.pop() {
        match value {
            Value::List(items) => waiting.extend(items),
            Value::Map(entries) => {
                if let (1, Some(name)) = (entries.len(), entries.keys().next()) {
                    count(&mut counts, names.get(name.as_str()).copied());
                }
                waiting.extend(entries.values());
            }
            _ => {}
        }
    }
    counts.into()
}

fn count(counts: &mut Map, name: Option<&str>) {
    let Some(name) = name else { return };
    let so_far = counts.get(name).and_then(Value::as_i64).unwrap_or_default();
    counts.insert(name.to_owned(), Value::Int(so_far + 1));
}
