//! Parsing and printing compared with Python, on generated input.
//!
//! Requires `python3` with PyYAML. Without them the tests are skipped, or fail if `CI` is `true`.

mod generate;
mod pattern;
mod peer;

use std::ops::Range;

use kiln_value::regex::MOST_STEPS;
use kiln_value::{Pattern, Value, number, text, value};
use peer::{Answer, Peer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Runs a property on generated inputs, with a Python process.
fn against_python<S: Strategy>(strategy: S, property: impl Fn(&mut Peer, S::Value) -> Result<(), TestCaseError>) {
    let Some(peer) = Peer::start() else { return };
    let peer = std::cell::RefCell::new(peer);
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |input| property(&mut peer.borrow_mut(), input));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Both must return the same result, or both must refuse the text.
fn same(ours: Result<String, String>, theirs: &Answer, input: &str) -> Result<(), TestCaseError> {
    match (ours, theirs) {
        (Ok(ours), Answer::Value(theirs)) => prop_assert_eq!(&ours, theirs, "{:?}", input),
        (Err(_), Answer::Error(_)) => {}
        (Ok(ours), Answer::Error(theirs)) => prop_assert!(false, "{input:?}: we read {ours}, Python says {theirs}"),
        (Err(ours), Answer::Value(theirs)) => prop_assert!(false, "{input:?}: we say {ours}, Python reads {theirs}"),
    }
    Ok(())
}

#[test]
fn yaml() {
    against_python(generate::yaml(), |python, input| {
        let ours = kiln_yaml::parse(&input).map(|document| text::repr(&document.value)).map_err(|e| e.message);
        let theirs = python.ask(&value!(["yaml", (input.as_str())]));
        same(ours, &theirs, &input)
    });
}

/// Refused texts result in PyYAML's message and position.
#[test]
fn yaml_errors() {
    against_python(generate::broken_yaml(), |python, input| {
        let theirs = match python.ask(&value!(["yaml", (input.as_str())])) {
            Answer::Error(error) => error,
            Answer::Value(_) => return Ok(()),
        };
        let Some((class, message)) = theirs.split_once(": ") else { return Ok(()) };
        if ["ScannerError", "ParserError", "ComposerError", "ReaderError"].contains(&class) {
            let ours = kiln_yaml::parse(&input).err().map(|error| error.message);
            prop_assert_eq!(ours.as_deref(), Some(message), "{:?}", input);
        }
        Ok(())
    });
}

#[test]
fn json() {
    against_python(generate::json(), |python, input| {
        let ours = kiln_yaml::json::parse(&input).map(|value| text::repr(&value)).map_err(|e| e.to_string());
        let theirs = python.ask(&value!(["json", (input.as_str())]));
        same(ours, &theirs, &input)
    });
}

#[test]
fn repr_and_dumps() {
    against_python(generate::value(), |python, input| {
        let written = text::json(&input);
        let back = kiln_yaml::json::parse(&written);
        prop_assert_eq!(back.as_ref().map(text::repr), Ok(text::repr(&input)));
        same(Ok(text::repr(&input)), &python.ask(&value!(["repr", (written.as_str())])), &written)?;
        same(Ok(written.clone()), &python.ask(&value!(["dumps", (written.as_str())])), &written)
    });
}

#[test]
fn numbers() {
    against_python(generate::number(), |python, input| {
        let int = number::parse_int(&input).map(|int| text::repr(&int)).ok_or_else(String::new);
        same(int, &python.ask(&value!(["int", (input.as_str())])), &input)?;
        let float = number::parse_float(&input).map(text::float).ok_or_else(String::new);
        same(float, &python.ask(&value!(["float", (input.as_str())])), &input)
    });
}

#[test]
fn regular_expressions() {
    against_python((pattern::pattern(), pattern::subject()), |python, (pattern, subject)| {
        let input = format!("{pattern:?} on {subject:?}");
        let theirs = python.ask(&value!(["match", (pattern.as_str()), (subject.as_str())]));
        let ours = Pattern::new(&pattern).and_then(|p| p.match_end(&subject)).map_err(|e| e.to_string());
        same(ours.map(|end| text::repr(&Value::from(end))), &theirs, &input)?;
        // Python searches for `(?a:\W)` as if it were `\W`.
        if pattern.contains("(?a:") {
            return Ok(());
        }
        let theirs = python.ask(&value!(["search", (pattern.as_str()), (subject.as_str())]));
        same(spans(&pattern, &subject).map(|spans| text::repr(&spans)), &theirs, &input)
    });
}

/// The byte ranges of the first match and its groups.
fn spans(pattern: &str, subject: &str) -> Result<Value, String> {
    let found = Pattern::new(pattern).and_then(|pattern| pattern.search(subject, 0, false, &mut MOST_STEPS.clone()));
    let span = |group: Option<Range<usize>>| group.map_or(Value::Null, |group| value!([(group.start), (group.end)]));
    let found = found.map_err(|e| e.to_string())?;
    Ok(found.map_or(Value::Null, |groups| Value::List(groups.into_iter().map(span).collect())))
}
