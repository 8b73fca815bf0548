//! The text files in `tests/data`: expressions and the results of the reference implementation.
//!
//! The first line of a file is the data as JSON. An expression starts at the beginning of a line; it is followed by `=
//! JSON` for its value, or `! Class` or `! Class: message` for its error. `KILN_YAQL_CASES` selects another folder.

use std::path::{Path, PathBuf};

use kiln_value::{Value, text};
use kiln_yaql::{Limits, parse};

/// Parses JSON with unlimited integers.
fn read(json: &str) -> Value {
    kiln_yaml::json::parse(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn outcome(expression: &str, data: &Value) -> String {
    match parse(expression).and_then(|parsed| parsed.evaluate(data, &Limits::default())) {
        Ok(value) => format!("= {}", text::json(&value)),
        Err(error) => format!("! {}: {}", error.class, error.message.replace('\n', "\\n")),
    }
}

/// Whether a result matches the file; JSON is compared by value, but `1` is not `1.0`.
fn agrees(expected: &str, got: &str) -> bool {
    let value = |line: &str| line.strip_prefix("= ").map(read);
    match (value(expected), value(got)) {
        (Some(expected), Some(got)) => expected == got && text::json_sorted(&expected) == text::json_sorted(&got),
        (None, None) => expected == got || got.split(": ").next() == Some(expected),
        _ => false,
    }
}

fn check(path: &Path, problems: &mut Vec<String>) -> usize {
    let file = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {}", path.display()));
    let mut lines = file.lines();
    let data = read(lines.next().unwrap_or_default());
    let mut count = 0;
    while let (Some(expression), Some(expected)) = (lines.next(), lines.next()) {
        let got = outcome(expression, &data);
        count += 1;
        if !agrees(expected.trim_start(), &got) {
            let name = path.file_name().unwrap_or_default().display();
            let expected = expected.trim_start();
            problems.push(format!("{name}: {expression}\n    expected {expected}\n    got      {got}"));
        }
    }
    count
}

#[test]
fn results_match_the_files() {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = std::env::var_os("KILN_YAQL_CASES").map_or_else(own, PathBuf::from);
    let (mut count, mut problems) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            count += check(&path, &mut problems);
        }
    }
    assert!(count > 100, "only {count} expressions found");
    assert!(problems.is_empty(), "{} of {count} fail:\n{}", problems.len(), problems.join("\n"));
}
