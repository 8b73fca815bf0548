//! Service templates and CSARs, and what tosca-parser and heat-translator say of them (format: `../data/tosca/README.md`).
//!
//! `cargo test -p kiln-tests --test tosca -- [words]` runs the records whose path contains one of the words.
//! `KILN_TOSCA` selects another folder of the same format, `KILN_SHOW` the number of differences to show per field (3).
//! The exit code is 1 if a field differs and `exceptions.txt` does not explain it.

mod files;
mod judge;
mod lowered;
mod validation;

use std::collections::BTreeMap;
use std::process::ExitCode;

use kiln_tests::Report;
use kiln_value::{Value, steps};

fn main() -> ExitCode {
    let mut report = Report::new("KILN_TOSCA", "tosca");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut records = Vec::new();
    for line in report.answers().lines().filter(|line| !line.trim().is_empty()) {
        let record = kiln_yaml::json::parse(line).expect("a line of JSON");
        let path = record.str_at("path").expect("a path").to_owned();
        // A template has one record for each set of parameters.
        let count = seen.entry(path.clone()).or_insert(0);
        *count += 1;
        let id = if *count == 1 { path } else { format!("{path}#{count}") };
        if report.wants(&id) {
            records.push((id, record));
        }
    }
    let folder = report.folder.clone();
    // Documents stay far below the steps of a request.
    let judge = |(id, record): &(String, Value)| {
        let judged = steps::within(steps::MOST / 10, || judge::judge(&folder, record));
        (id.clone(), judged.unwrap_or_else(|error| vec![("steps", Some(error.to_string()))]))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let judged: Vec<_> = std::thread::scope(|scope| {
        let parts = records.chunks(records.len().div_ceil(threads).max(1));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| part.iter().map(judge).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    for (id, fields) in judged {
        for (field, difference) in fields {
            report.add(field, &id, difference);
        }
    }
    report.end(include_str!("exceptions.txt"))
}

/// The map of a key; empty if it is missing.
fn map_at(value: &Value, key: &str) -> kiln_value::Map {
    value.get(key).and_then(Value::as_map).cloned().unwrap_or_default()
}
