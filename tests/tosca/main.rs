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
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_tests::Report;
use kiln_value::Value;

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
    let (next, folder) = (AtomicUsize::new(0), report.folder.clone());
    let judge = || {
        let mut judged = Vec::new();
        while let Some((id, record)) = records.get(next.fetch_add(1, Ordering::Relaxed)) {
            judged.push((id, judge::judge(&folder, record)));
        }
        judged
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut judged = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(judge)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    judged.sort_by_key(|(id, _)| *id);
    for (id, fields) in judged {
        for (field, difference) in fields {
            report.add(field, id, difference);
        }
    }
    report.end(include_str!("exceptions.txt"))
}

/// The map of a key; empty if it is missing.
fn map_at(value: &Value, key: &str) -> kiln_value::Map {
    value.get(key).and_then(Value::as_map).cloned().unwrap_or_default()
}
