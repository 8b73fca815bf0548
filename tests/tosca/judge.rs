//! Compares what Kiln reads with a record.

use std::path::Path;

use kiln_package::{Limits, Package};
use kiln_topology::TypeFiles;
use kiln_topology::graph::Graph;
use kiln_topology::package::{Error, read_csar};
use kiln_topology::tosca::{self, Template};
use kiln_value::{Map, Value, text};

use crate::files::Folder;
use crate::{lowered, map_at};

/// The difference of a field: `None` if there is none.
type Verdict = Option<String>;

/// An error: its class in tosca-parser, and its text.
type Trouble = (&'static str, String);

/// All fields of the record.
pub(crate) fn judge(folder: &Path, record: &Value) -> Vec<(&'static str, Verdict)> {
    let path = record.str_at("path").unwrap_or_default();
    let accepted = record.get("parse").and_then(|parse| parse.get("ok")).is_some_and(Value::is_truthy);
    match (read(folder, path, record), accepted) {
        (Ok((root, template)), true) => {
            let verdict = record.get("model").and_then(|model| {
                let (mut model, mut found) = (model.clone(), template.graph.model());
                align(&mut model, &mut found, &template.graph);
                difference(&model, &found)
            });
            let mut verdicts = vec![("accepted", None), ("model", verdict)];
            verdicts.extend(lowered::judge(record, &root, &template));
            verdicts
        }
        (Ok(_), false) => vec![("refused", Some("is accepted".to_owned()))],
        (Err(troubles), true) => vec![("accepted", Some(format!("is refused: {}", listed(&troubles))))],
        (Err(troubles), false) => vec![("refused", compare_errors(record, &troubles))],
    }
}

/// The template and the file that it is from.
fn read(folder: &Path, path: &str, record: &Value) -> Result<(String, Template), Vec<Trouble>> {
    let given = map_at(record, "parameters");
    let refused = |refusals: Vec<kiln_topology::Refusal>| {
        refusals.into_iter().map(|refusal| (class(refusal.kind), refusal.message)).collect()
    };
    if record.str_at("kind") != Some("csar") {
        return tosca::read(&Folder::new(folder, path), path, &given)
            .map(|template| (path.to_owned(), template))
            .map_err(|(_, refusals)| refused(refusals));
    }
    let bytes = std::fs::read(folder.join(path)).map_err(|error| vec![("missing", error.to_string())])?;
    let of_package = |refusal: kiln_package::Refusal| {
        vec![("ValidationError", format!("\"{}\": {}", refusal.member.unwrap_or_default(), refusal.message))]
    };
    let package = Package::open(&bytes, &Limits::default()).map_err(of_package)?;
    read_csar(&package, &given, &TypeFiles::shipped().expect("Kiln's types"))
        .map(|template| (package.root.clone(), template))
        .map_err(|error| match error {
            Error::Package { refusal, .. } => of_package(refusal),
            Error::Document(_, refusals) => refused(refusals),
        })
}

/// Removes what only the implementation of tosca-parser explains.
///
/// It prints the names of relationship templates in lower case. For a relationship of a derived type it names the parent
/// that the type of the node demands, and leaves out relationships that are derived in more than one step.
fn align(expected: &mut Value, found: &mut Value, graph: &Graph) {
    if let Some(templates) = found.as_map_mut().and_then(|map| map.get_mut("relationship_templates")) {
        *templates = map_of(templates, str::to_lowercase);
    }
    for node in &graph.nodes {
        let related = |model: &mut Value| -> Map {
            let node =
                model.as_map_mut().and_then(|map| map.get_mut("node_templates")?.as_map_mut()?.get_mut(&node.name));
            node.and_then(|node| node.as_map_mut()?.shift_remove("related")?.as_map().cloned()).unwrap_or_default()
        };
        let (theirs, ours) = (related(expected), related(found));
        let explained = theirs.iter().all(|(target, kind)| {
            let ours = node.targets.iter().filter(|known| known.node == *target);
            ours.clone().any(|known| kind.as_str().is_some_and(|kind| known.is_a(kind)))
        });
        if !explained {
            for (model, related) in [(&mut *expected, theirs), (&mut *found, ours)] {
                let node =
                    model.as_map_mut().and_then(|map| map.get_mut("node_templates")?.as_map_mut()?.get_mut(&node.name));
                if let Some(node) = node.and_then(Value::as_map_mut) {
                    node.insert("related".to_owned(), related.into());
                }
            }
        }
    }
    let lists = (
        expected.as_map_mut().and_then(|map| map.get_mut("nested")),
        found.as_map_mut().and_then(|map| map.get_mut("nested")),
    );
    if let (Some(Value::List(theirs)), Some(Value::List(ours))) = lists {
        for ((theirs, ours), nested) in theirs.iter_mut().zip(ours).zip(&graph.nested) {
            align(theirs, ours, &nested.graph);
        }
    }
}

/// A map with other keys.
fn map_of(value: &Value, name: impl Fn(&str) -> String) -> Value {
    value.as_map().into_iter().flatten().map(|(key, value)| (name(key), value.clone())).collect()
}

/// The class of tosca-parser for a kind of refusal.
fn class(kind: &str) -> &'static str {
    match kind {
        "unknown-field" => "UnknownFieldError",
        "missing-field" => "MissingRequiredFieldError",
        "unknown-type" => "InvalidTypeError",
        "unknown-version" => "InvalidTemplateVersion",
        "bad-import" => "ImportError",
        "unreachable" => "URLException",
        "bad-value" => "ValueError",
        "invalid" => "ValidationError",
        "unknown-name" => "KeyError",
        "unknown-input" => "UnknownInputError",
        "wrong-shape" => "TypeMismatchError",
        "missing-input" => "MissingRequiredInputError",
        "missing-default" => "MissingDefaultValueError",
        "unknown-output" => "UnknownOutputError",
        "bad-member" => "InvalidGroupTargetException",
        "bad-schema" => "InvalidSchemaError",
        "bad-occurrences" => "InvalidPropertyValueError",
        _ => "of Kiln only",
    }
}

fn listed(troubles: &[Trouble]) -> String {
    let lines: Vec<String> = troubles.iter().map(|(class, message)| format!("{class}: {message}")).collect();
    lines.join("\n")
}

/// Every expected error must be reported with its class and the names in its message. Kiln may report more: tosca-parser
/// ends early where its own code fails.
fn compare_errors(record: &Value, troubles: &[Trouble]) -> Verdict {
    let errors = record.get("parse").and_then(|parse| parse.get("errors")).and_then(Value::as_list).unwrap_or_default();
    let expected: Vec<(&str, &str)> = errors
        .iter()
        .map(|error| (error.str_at("class").unwrap_or_default(), error.str_at("message").unwrap_or_default()))
        .collect();
    let same = |(class, message): (&str, &str), (found, text): &Trouble| {
        class == *found && names(message).iter().all(|name| text.contains(name.as_str()))
    };
    let missing: Vec<String> = expected
        .iter()
        .filter(|error| !troubles.iter().any(|trouble| same(**error, trouble)))
        .map(|(class, message)| format!("missing {class}: {message}"))
        .collect();
    (!missing.is_empty()).then(|| format!("{}\nfound {}", missing.join("\n"), listed(troubles)))
}

/// The names in a message: the words in quotes, without what tosca-parser adds to them.
fn names(message: &str) -> Vec<String> {
    // The list of valid versions, and the hint to look into the specification.
    let message = message.split(" Valid versions are").next().unwrap_or(message);
    let message = message.split(" Expected").next().unwrap_or(message);
    // A quoted message with quotes in it.
    let inner = message.strip_prefix('"').and_then(|message| message.strip_suffix('"'));
    let message = inner.filter(|inner| inner.contains('"')).unwrap_or(message);
    let quoted = message.split('"').skip(1).step_by(2);
    let word = |c: char| !(c.is_alphanumeric() || "_.-:/".contains(c));
    let words = quoted.flat_map(|quoted| quoted.split(word));
    let is_archive = |word: &str| word.contains(".zip");
    words.filter(|word| !word.is_empty() && !is_archive(word) && *word != "in").map(str::to_owned).collect()
}

/// The first differences between two values.
pub(crate) fn difference(expected: &Value, found: &Value) -> Verdict {
    let mut lines = Vec::new();
    collect(expected, found, "", &mut lines);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn collect(expected: &Value, found: &Value, at: &str, lines: &mut Vec<String>) {
    if lines.len() >= 8 {
        return;
    }
    match (expected, found) {
        (Value::Map(a), Value::Map(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    Some(other) => collect(value, other, &format!("{at}.{key}"), lines),
                    None => lines.push(format!("{at}.{key} is missing: {}", text::json(value))),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                lines.push(format!("{at}.{key} is too much: {}", text::json(value)));
            }
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                collect(a, b, &format!("{at}[{i}]"), lines);
            }
        }
        (a, b) if a == b => {}
        (a, b) => lines.push(format!("{at}: expected {}, found {}", text::json(a), text::json(b))),
    }
}
