//! Service templates and CSARs, and what tosca-parser and heat-translator say of them (format: `../data/tosca/README.md`).
//!
//! `cargo test -p kiln-tests --test tosca -- [words]` runs the records whose path contains one of the words.
//! `KILN_TOSCA` selects another folder of the same format, `KILN_SHOW` the number of differences to show per field (3).
//! The exit code is 1 if a field differs and `exceptions.txt` does not explain it.

mod files;
mod judge;
mod lowered;
mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kiln_value::Value;

const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// Numbers of records and differing records of a field.
#[derive(Default)]
struct Tally {
    total: usize,
    differences: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let shown = std::env::var("KILN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let other = std::env::var_os("KILN_TOSCA").map(PathBuf::from);
    let folder = other.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join("tosca"));
    let answers = folder.join("answers.jsonl");
    let answers = std::fs::read_to_string(&answers).unwrap_or_else(|error| panic!("{}: {error}", answers.display()));

    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in answers.lines().filter(|line| !line.trim().is_empty()) {
        let record = kiln_yaml::json::parse(line).expect("a line of JSON");
        let path = record.str_at("path").expect("a path").to_owned();
        // A template has one record for each set of parameters.
        let count = seen.entry(path.clone()).or_insert(0);
        *count += 1;
        let id = if *count == 1 { path } else { format!("{path}#{count}") };
        if !words.is_empty() && !words.iter().any(|word| id.contains(word.as_str())) {
            continue;
        }
        for (field, difference) in judge::judge(&folder, &record) {
            let tally = tallies.entry(field).or_default();
            tally.total += 1;
            tally.differences.extend(difference.map(|difference| (id.clone(), difference)));
        }
    }

    let excepted: BTreeSet<(&str, &str)> = EXCEPTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let (mut passed, mut failed, mut unexplained) = (0, 0, 0);
    for (field, tally) in &tallies {
        let right = tally.total - tally.differences.len();
        passed += right;
        failed += tally.differences.len();
        println!("{field} {right} of {}", tally.total);
        let news = tally.differences.iter().filter(|(id, _)| !excepted.contains(&(*field, id.as_str())));
        for (i, (id, difference)) in news.enumerate() {
            unexplained += 1;
            if i < shown {
                println!("    {id}\n        {}", difference.replace('\n', "\n        "));
            }
        }
    }
    // Obsolete exceptions must be removed.
    if words.is_empty() && other.is_none() {
        for (field, id) in excepted {
            let differs =
                tallies.get(field).is_some_and(|tally| tally.differences.iter().any(|(other, _)| other == id));
            if !differs {
                println!("{field} {id} stands in exceptions.txt but does not differ");
                unexplained += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(unexplained > 0))
}

/// The map of a key; empty if it is missing.
fn map_at(value: &Value, key: &str) -> kiln_value::Map {
    value.get(key).and_then(Value::as_map).cloned().unwrap_or_default()
}
