//! Runs the vectors: inputs and results of the real service (format: `data/README.md`).
//!
//! `cargo test -p kiln-tests --test vectors -- [words]` runs the vectors whose `kind/group` or ID contains one of the
//! words. `KILN_VECTORS` selects another file, `KILN_SHOW` the number of failures to show per group (5). The exit code
//! is 1 if a vector fails and `exceptions.txt` does not explain it.

mod case;
mod constraint;
mod custom_constraint;
mod environment_merge;
mod environment_parse;
mod expectation;
mod gate;
mod group_template;
mod identifier;
mod lifecycle;
mod misc;
mod parameters;
mod properties;
mod registry;
mod resolve;
mod schema;
mod schema_to_template;
mod signals;
mod stack;
mod structured_config;
mod template;
mod template_class;
mod template_parse;
mod update_diff;
mod validate_parameter;

use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::process::ExitCode;

use case::{Case, Outcome};
use kiln_value::steps;

const EMBEDDED: &str = include_str!("../data/vectors.jsonl");
const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// The runner of a kind; `None` for kinds that require an engine.
fn runner(kind: &str) -> Option<fn(&Case) -> Outcome> {
    Some(match kind {
        "constraint" => constraint::run,
        "custom_constraint" => custom_constraint::run,
        "environment_merge" => environment_merge::run,
        "environment_parse" => environment_parse::run,
        "group_template" => group_template::run,
        "identifier" => identifier::run,
        "lifecycle" => lifecycle::run,
        "misc" => misc::run,
        "parameters" => parameters::run,
        "properties" => properties::run,
        "registry" => registry::run,
        "resolve" => resolve::run,
        "schema_to_template" => schema_to_template::run,
        "structured_config" => structured_config::run,
        "template" => template::run,
        "template_class" => template_class::run,
        "template_parse" => template_parse::run,
        "update_diff" => update_diff::run,
        "validate_parameter" => validate_parameter::run,
        "wait_handle_signals" => signals::run,
        _ => return None,
    })
}

/// The numbers of a group and the failures to show.
#[derive(Default)]
struct Tally {
    total: usize,
    passed: usize,
    not_run: usize,
    failures: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let shown = std::env::var("KILN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let other = std::env::var("KILN_VECTORS");
    let text = match &other {
        Ok(file) => std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}")),
        Err(_) => EMBEDDED.to_owned(),
    };
    let excepted: BTreeSet<&str> = EXCEPTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();

    // A panic is a failure of its vector; only its message is shown.
    panic::set_hook(Box::new(|_| {}));
    let tallies = run_all(&text, &words);
    drop(panic::take_hook());

    let (mut passed, mut failed, mut skipped, mut unexplained) = (0, 0, 0, 0);
    for ((kind, group), tally) in &tallies {
        passed += tally.passed;
        failed += tally.failures.len();
        skipped += tally.not_run;
        if tally.not_run == tally.total {
            println!("{kind} {group} not run ({})", tally.total);
            continue;
        }
        println!("{kind} {group} {} of {}", tally.passed, tally.total);
        for (i, (id, diff)) in tally.failures.iter().enumerate() {
            let explained = excepted.contains(id.as_str());
            unexplained += usize::from(!explained);
            if i < shown && !explained {
                println!("    {id} {}", diff.replace('\n', "\n        "));
            }
        }
    }
    if skipped > 0 {
        println!("{skipped} not run");
    }
    let failures = || tallies.values().flat_map(|tally| &tally.failures);
    // Obsolete exceptions must be removed.
    let stale = excepted.iter().filter(|id| !failures().any(|(failed, _)| failed == *id));
    if words.is_empty() && other.is_err() {
        for id in stale {
            println!("{id} stands in exceptions.txt but does not fail");
            unexplained += 1;
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(unexplained > 0))
}

/// Templates stay far below the steps of a request.
fn within_steps(run: fn(&Case) -> Outcome, case: &Case) -> Outcome {
    steps::within(steps::MOST / 10, || run(case)).unwrap_or_else(|error| Outcome::Failed(error.to_string()))
}

fn run_all(text: &str, words: &[String]) -> BTreeMap<(String, String), Tally> {
    let mut tallies: BTreeMap<(String, String), Tally> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case = Case::read(line);
        let place = format!("{}/{} {}", case.kind, case.group, case.id);
        if !words.is_empty() && !words.iter().any(|word| place.contains(word.as_str())) {
            continue;
        }
        let outcome = match runner(&case.kind) {
            None => Outcome::NotRun,
            Some(run) => panic::catch_unwind(|| within_steps(run, &case)).unwrap_or_else(|cause| {
                let text = cause.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
                Outcome::Failed(format!("panicked: {}", text.unwrap_or_default()))
            }),
        };
        let tally = tallies.entry((case.kind, case.group)).or_default();
        tally.total += 1;
        match outcome {
            Outcome::Passed => tally.passed += 1,
            Outcome::NotRun => tally.not_run += 1,
            Outcome::Failed(diff) => tally.failures.push((case.id, diff)),
        }
    }
    tallies
}
