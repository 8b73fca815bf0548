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
use kiln_value::Value;

fn main() -> ExitCode {
    let mut report = Report::new("KILN_TOSCA", "tosca");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in report.answers().lines().filter(|line| !line.trim().is_empty()) {
        let record = kiln_yaml::json::parse(line).expect("a line of JSON");
        let path = record.str_at("path").expect("a path").to_owned();
        // A template has one record for each set of parameters.
        let count = seen.entry(path.clone()).or_insert(0);
        *count += 1;
        let id = if *count == 1 { path } else { format!("{path}#{count}") };
        if !report.wants(&id) {
            continue;
        }
        for (field, difference) in judge::judge(&report.folder, &record) {
            report.add(field, &id, difference);
        }
    }
    report.end(include_str!("exceptions.txt"))
}

/// The map of a key; empty if it is missing.
fn map_at(value: &Value, key: &str) -> kiln_value::Map {
    value.get(key).and_then(Value::as_map).cloned().unwrap_or_default()
}
