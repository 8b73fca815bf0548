//! Upgrades of old templates to the latest version.

use std::fs;

use kiln_authoring::Page;
use kiln_authoring::upgrade::{NEWEST, upgrade};

fn upgraded(text: &str) -> (String, Vec<String>, usize) {
    let done = upgrade(&Page::read(text).unwrap()).unwrap();
    (done.text, done.notes.into_iter().map(|note| note.message).collect(), done.proof.bindings)
}

#[test]
fn upgraded_templates_match_the_expected_files() {
    let mut names: Vec<_> = fs::read_dir("tests/data/upgrade").unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let old: Vec<_> = names.iter().filter(|path| path.extension().is_some_and(|ending| ending == "old")).collect();
    assert!(old.len() >= 3, "{names:?}");
    for path in old {
        let (text, ..) = upgraded(&fs::read_to_string(path).unwrap());
        assert_eq!(text, fs::read_to_string(path.with_extension("new")).unwrap(), "{}", path.display());
        assert_eq!(Page::read(text.as_str()).unwrap().release(), NEWEST);
        let (again, ..) = upgraded(&text);
        assert_eq!(again, text, "{}", path.display());
    }
}

#[test]
fn every_branch_is_compared() {
    let (_, _, bindings) = upgraded(
        "heat_template_version: 2016-10-14
parameters:
  size: {type: string, default: small, constraints: [{allowed_values: [small, big]}]}
  name: {type: string}
conditions:
  is_web: {equals: [{get_param: name}, web]}
resources:
  value: {type: OS::Heat::Value, properties: {value: {if: [is_web, 1, 2]}}}
",
    );
    // The defaults, two sizes, and the one name in a comparison.
    assert_eq!(bindings, 4);
}

#[test]
fn features_without_a_successor_are_reported_with_their_position() {
    let page = Page::read(
        "HeatTemplateFormatVersion: '2012-12-12'
Resources:
  a:
    Type: OS::Heat::Value
    Properties:
      value: {'Fn::GetAZs': ''}
",
    )
    .unwrap();
    let obstacles = upgrade(&page).unwrap_err();
    assert_eq!(obstacles.len(), 1);
    assert_eq!(obstacles[0].path.to_string(), "Resources.a.Properties.value.Fn::GetAZs");
    assert_eq!(obstacles[0].span.start.line, 6);
}

#[test]
fn data_that_would_become_a_call_is_refused() {
    let page = Page::read(
        "heat_template_version: 2013-05-23
resources:
  a:
    type: OS::Heat::Value
    properties:
      value: {digest: [md5, x]}
",
    )
    .unwrap();
    let obstacles = upgrade(&page).unwrap_err();
    assert!(obstacles[0].message.contains("would become a call of digest"), "{obstacles:?}");
}

#[test]
fn a_template_that_would_resolve_differently_is_refused() {
    // Conditions have no effect before 2016-10-14: the resource would disappear.
    let text = "heat_template_version: 2013-05-23
resources:
  a:
    type: OS::Heat::Value
    properties:
      value: {get_attr: [b, show]}
  b: {type: OS::Heat::None, condition: {equals: [1, 2]}}
";
    let obstacles = upgrade(&Page::read(text).unwrap()).unwrap_err();
    assert!(obstacles[0].message.contains("would"), "{obstacles:?}");
}

/// Generated values are strings at first; if a part accepts only other values, those are tried.
#[test]
fn parts_that_accept_no_strings_are_compared_with_other_values() {
    for value in [
        "{repeat: {for_each: {x: {get_attr: [a, show]}}, template: {n: x}}}",
        "{list_concat: [{get_attr: [a, show]}, [1]]}",
        "{map_merge: [{get_attr: [a, show]}, {b: c}]}",
        "{map_replace: [{get_attr: [a, show]}, {keys: {b: c}}]}",
        "{str_split: [',', {get_attr: [a, show]}, 0]}",
        "{yaql: {expression: '$.data.m.keys()', data: {m: {get_attr: [a, show]}}}}",
        "{yaql: {expression: 'int($.data.m) + 1', data: {m: {get_param: port}}}}",
        "{get_param: [data, {get_param: key}]}",
    ] {
        let text = format!(
            "heat_template_version: 2018-03-02
parameters:
  port: {{type: string}}
  key: {{type: string, constraints: [{{allowed_pattern: '[a-c]{{20}}'}}, {{length: {{min: 20}}}}]}}
  data: {{type: json}}
  odd: {{type: number, constraints: [{{range: {{min: 4, max: 9}}}}]}}
resources:
  a: {{type: OS::Heat::Value, properties: {{value: {{get_param: odd}}}}}}
outputs:
  o: {{value: {value}}}
"
        );
        let page = Page::read(text.as_str()).unwrap();
        let done = upgrade(&page);
        assert!(done.is_ok(), "{value}: {done:?}");
    }
    let selected = "HeatTemplateFormatVersion: '2012-12-12'
Resources:
  A: {Type: OS::Heat::Value}
Outputs:
  o: {Value: {'Fn::Select': [port_id, {'Fn::GetAtt': [A, vip]}]}}
";
    let done = upgrade(&Page::read(selected).unwrap());
    assert!(done.is_ok(), "{done:?}");
}

#[test]
fn parts_that_accept_no_value_are_not_compared_where_only_the_version_changes() {
    let text = "heat_template_version: 2016-10-14
resources:
  a: {type: OS::Heat::Value, properties: {value: {str_split: [',', 1]}}}
  b: {type: OS::Heat::Value, properties: {value: 1}}
";
    let done = upgrade(&Page::read(text).unwrap()).unwrap();
    assert_eq!(done.text, text.replace("2016-10-14", NEWEST.name()));
    assert_eq!(done.notes.len(), 1, "{done:?}");
    assert!(done.notes[0].path.to_string().starts_with("resources.a"), "{done:?}");
    assert!(done.notes[0].message.starts_with("not compared: "), "{done:?}");
}
