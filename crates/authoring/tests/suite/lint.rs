//! Every rule with its own template: each line with an expected finding ends in `#! <part of the message>`.

use std::fs;

use kiln_authoring::Page;
use kiln_authoring::lint::{RULES, lint};

#[test]
fn every_rule_has_exactly_the_expected_findings() {
    let catalog = crate::bench::catalog();
    for rule in RULES {
        let text = fs::read_to_string(format!("tests/data/lint/{}.yaml", rule.name)).unwrap();
        let page = Page::read(text.as_str()).unwrap();
        let found = lint(&page, &catalog, |asked| asked.name == rule.name);
        let found: Vec<(u32, String)> = found.into_iter().map(|one| (one.span.start.line, one.message)).collect();
        let marks = (1u32..).zip(text.lines()).filter_map(|(line, text)| Some((line, text.split_once("#! ")?.1)));
        let expected: Vec<(u32, &str)> = marks.collect();
        assert!(!expected.is_empty(), "the template of {} expects nothing", rule.name);
        let agrees = found.len() == expected.len()
            && found.iter().zip(&expected).all(|((line, message), (at, part))| line == at && message.contains(part));
        assert!(agrees, "{}: found {found:#?}, expected {expected:#?}", rule.name);
    }
}

#[test]
fn every_rule_is_documented_in_its_order() {
    let text = fs::read_to_string("../../docs/linting.md").unwrap();
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(sections, rules);
    for rule in RULES {
        let head = format!("## {}\n\n{} ", rule.name, rule.severity);
        assert!(text.contains(&head), "the section of {} must begin with its severity", rule.name);
        let told = text.split(&head).nth(1).unwrap().lines().next().unwrap();
        assert_eq!(told.starts_with("· off"), !rule.default, "{}", rule.name);
    }
}

#[test]
fn findings_are_in_the_order_of_the_text() {
    let text = fs::read_to_string("tests/data/lint/plain-secret.yaml").unwrap();
    let page = Page::read(text).unwrap();
    let lines: Vec<u32> =
        lint(&page, &crate::bench::catalog(), |_| true).iter().map(|finding| finding.span.start.line).collect();
    assert!(lines.len() > 3 && lines.is_sorted(), "{lines:?}");
}
