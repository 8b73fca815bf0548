//! Functions that are newer than the version of a template, which therefore are data.

use kiln_template::version::Dialect;
use kiln_template::{Arguments, FunctionInfo, Release, Template, all_functions, functions};
use kiln_value::{Diagnostic, Path, Value};

/// Values in properties and outputs that would be calls in a newer version.
pub(super) fn errors(template: &Template) -> Vec<Diagnostic> {
    let release = template.release();
    if release.dialect() != Dialect::Hot {
        return Vec::new();
    }
    let known = functions(release, true);
    let newer = all_functions().iter().filter(|function| function.data_never_looks_like_it);
    let newer: Vec<_> = newer.filter(|function| known.iter().all(|known| known.name != function.name)).collect();
    let words = template.words();
    let mut errors = Vec::new();
    for (section, field) in [(words.resources, words.properties), (words.outputs, words.value)] {
        for (name, entry) in template.as_value().get(section).and_then(Value::as_map).into_iter().flatten() {
            let at = Path::root().key(section).key(name.as_str()).key(field);
            entry.get(field).into_iter().for_each(|value| search(value, &at, &newer, release, &mut errors));
        }
    }
    errors
}

fn search(value: &Value, at: &Path, newer: &[&FunctionInfo], release: Release, errors: &mut Vec<Diagnostic>) {
    match value {
        Value::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| search(item, &at.index(i), newer, release, errors));
        }
        Value::Map(map) => {
            let only = map.first().filter(|_| map.len() == 1);
            let call = only.and_then(|(key, argument)| {
                let function = newer.iter().find(|function| function.name == key)?;
                let fits = match function.arguments {
                    Arguments::One(_) => true,
                    Arguments::List(_) => argument.as_list().is_some(),
                    // The others may be left out.
                    Arguments::Map(keys) => keys.iter().take(2).all(|key| argument.get(key).is_some()),
                };
                fits.then_some(function.name)
            });
            if let Some(name) = call {
                errors.push(error(name, release, at.key(name)));
            }
            map.iter().for_each(|(key, inner)| search(inner, &at.key(key), newer, release, errors));
        }
        _ => {}
    }
}

fn error(name: &str, release: Release, at: Path) -> Diagnostic {
    let text = format!("\"{name}\" is data in version {}, which has no such function", release.name());
    let has = |release: &Release| functions(*release, false).iter().any(|function| function.name == name);
    let first = Release::ALL.into_iter().filter(|release| release.dialect() == Dialect::Hot).find(has);
    let error = Diagnostic::invalid(text).at(at);
    match first {
        Some(first) => error.hint(format!("it is a function from heat_template_version {} on", first.name())),
        None => error,
    }
}
