use std::fmt::Write as _;

use kiln_value::{Path, Position, text, value};

use super::*;

fn read(text: &str) -> String {
    match parse(text) {
        Ok(document) => text::repr(&document.value),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn refused(text: &str) -> String {
    parse(text).map(|document| document.value).unwrap_err().message
}

/// PyYAML finds them before what is wrong further on.
#[test]
fn duplicate_anchors_come_before_later_errors() {
    let message = refused("value: 1\n&two: &two = b\n- x\n");
    assert!(message.starts_with("found duplicate anchor 'two'; first occurrence\n"), "{message}");
    assert!(message.contains("line 2, column 1:") && message.contains("second occurrence"), "{message}");
}

#[test]
fn types_of_plain_scalars() {
    assert_eq!(
        read("[010, 0o10, 0x1F, 1_000, 0b11, 1e3, 1.0e+3, .5, -.5, 190:20:30.15, 1:30:45]"),
        "[8, '0o10', 31, 1000, 3, '1e3', 1000.0, 0.5, '-.5', 685230.15, 5445]"
    );
    assert_eq!(
        read("[~, yes, Off, y, .inf, -.INF, 2013-05-23, '5', ! '5', !!str 5, 0789, 1:60]"),
        "[None, True, False, 'y', inf, -inf, '2013-05-23', '5', 5, '5', '0789', '1:60']"
    );
}

#[test]
fn keys_merges_and_aliases() {
    assert_eq!(read("{1: a, true: b, null: c, 2.5: d}"), "{'1': 'a', 'true': 'b', 'null': 'c', '2.5': 'd'}");
    assert_eq!(
        read("b: &b {x: 1, y: 2}\nd: {y: 3, <<: *b, z: 4}"),
        "{'b': {'x': 1, 'y': 2}, 'd': {'x': 1, 'y': 3, 'z': 4}}"
    );
    assert_eq!(read("{<<: [{a: 1}, {a: 2, b: 3}]}"), "{'a': 1, 'b': 3}");
    assert_eq!(read("{a: 1, b: 2, a: 3}"), "{'a': 3, 'b': 2}");
    assert_eq!(
        read("t: !!set {a, b}\nb: !!binary aGVsbG8=\no: !!omap [a: 1]"),
        "{'t': ['a', 'b'], 'b': 'hello', 'o': [['a', 1]]}"
    );
    assert_eq!(read("!!set {~, 1, null, <<: {x: 1}, a}"), "['x', None, 1, 'a']");
}

#[test]
fn errors_show_their_line() {
    let shown = refused("a: 1\r\n\n\r\nb: [\u{2028}c: }");
    assert!(shown.contains("line 5, column 4:\n    c: }\n       ^"), "{shown}");
}

#[test]
fn block_scalars_at_the_end_of_the_text() {
    for (text, value) in [
        ("a: |\n  b", "'b'"),
        ("a: |\n  b\n", "'b\\n'"),
        ("a: |-\n  b", "'b'"),
        ("a: |+\n  b\n\n", "'b\\n\\n'"),
        ("a: |+\n  b\n  ", "'b\\n'"),
        ("a: |\n  b\n    ", "'b\\n  '"),
        ("a: |\n  b\n  ", "'b\\n'"),
        ("a: >\n  b\n  c", "'b c'"),
        ("a: |", "''"),
        ("a: |+", "''"),
        ("a: |\n  b\n# c", "'b\\n'"),
    ] {
        assert_eq!(read(text), format!("{{'a': {value}}}"), "{text:?}");
    }
}

#[test]
fn errors_have_pyyamls_messages() {
    assert_eq!(
        refused("d: *x\n"),
        "found undefined alias 'x'\n  in \"<unicode string>\", line 1, column 4:\n    d: *x\n       ^"
    );
    assert_eq!(
        refused("a: b: c\n"),
        "mapping values are not allowed here\n  in \"<unicode string>\", line 1, column 5:\n    a: b: c\n        ^"
    );
    for text in [
        "a: [1\n",
        "a: 1\n---\nb: 2\n",
        "? [a]\n: b",
        "a: !x b",
        "a: =",
        "a: \"\u{1}\"",
        "&a a: &a b",
        "&a [*a]",
        "!!int x",
    ] {
        refused(text);
    }
    assert_eq!(parse("!!int x").unwrap_err().kind, ErrorKind::Value);
    refused(&format!("a: 0x{}", "f".repeat(4000)));
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        _ = writeln!(bomb, "a{i}: &a{i} [{}]", vec![format!("*a{}", i - 1); 10].join(", "));
    }
    assert!(refused(&bomb).starts_with("aliases expand to too much data"));
    let mut merges = "a0: &a0 {x: 1}\n".to_owned();
    for i in 1..60 {
        _ = writeln!(merges, "a{i}: &a{i} {{<<: [*a{}, *a{}]}}", i - 1, i - 1);
    }
    assert!(refused(&merges).starts_with("aliases expand to too much data"));
}

#[test]
fn nesting_is_limited() {
    assert!(parse(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_ok());
    refused(&"[".repeat(100_000));
    refused(&"- ".repeat(100_000));
    let mut chain = "a0: &a0 [x]\n".to_owned();
    for i in 1..2000 {
        _ = writeln!(chain, "a{i}: &a{i} [*a{}]", i - 1);
    }
    refused(&chain);
}

#[test]
fn every_part_has_a_position() {
    let document = parse("a: 1\nb:\n  - é: true\n").unwrap();
    let at = |path: &Path| document.spans.find(&document.value, path);
    let item = at(&Path::root().key("b").index(0).key("é"));
    assert_eq!(item.value.start, Position { line: 3, column: 8 });
    assert_eq!(item.key.map(|key| key.start), Some(Position { line: 3, column: 5 }));
    assert_eq!(document.value, value!({"a": 1, "b": [{"é": true}]}));
}

#[test]
fn lines_may_end_in_cr_lf() {
    let wanted =
        "mapping values are not allowed here\n  in \"<unicode string>\", line 3, column 5:\n    b: c: d\n        ^";
    assert_eq!(refused("a: 1\r\n\r\nb: c: d\r\n"), wanted);
}

#[test]
fn a_comma_may_follow_a_tag() {
    let read = |text: &str| parse(text).unwrap().value;
    assert_eq!(read("[!!str, a]"), value!(["", "a"]));
    assert_eq!(
        read("{!!null, é: !<tag:yaml.org,2002:str>, b: !!str , c: 1}"),
        value!({"null": null, "é": "", "b": "", "c": 1})
    );
    assert_eq!(read("\u{feff}é: 'it''s!, x'\nb: [!!str, \"!a,\"] # !c,\nd: x !e, f\n"), {
        value!({"é": "it's!, x", "b": ["", "!a,"], "d": "x !e, f"})
    });
    refused("{!own,}");
    refused("{a: [!!str, b], c: \"\\q\"}");
    refused("[!!str, a \"\\ud83d\"");
    refused("a: !!str, b");
    refused("{s: '<'!x, y: []}");
    refused("{s: '!<'!x, y: []}");
    assert_eq!(refused("[!<a,b> c]").lines().next(), Some("could not determine a constructor for the tag 'a,b'"));
}

/// Positions, messages and the order of errors are those of PyYAML, not of libyaml.
#[test]
fn errors_are_those_of_pyyaml() {
    for (text, message) in [
        (
            "a: 1\n  b: 2\n",
            "mapping values are not allowed here\n  in \"<unicode string>\", line 2, column 4:\n      b: 2\n       ^",
        ),
        (
            "a:\n  - b\n c: d\n",
            "while parsing a block mapping\n  in \"<unicode string>\", line 1, column 1:\n    a:\n    ^\nexpected <block \
             end>, but found '<block mapping start>'\n  in \"<unicode string>\", line 3, column 2:\n     c: d\n     ^",
        ),
        (
            "a: b\n\tc: d\n",
            "while scanning for the next token\nfound character '\\t' that cannot start any token\n  in \"<unicode \
             string>\", line 2, column 1:\n    \tc: d\n    ^",
        ),
        (
            "a: [b",
            "while parsing a flow sequence\n  in \"<unicode string>\", line 1, column 4:\n    a: [b\n       ^\nexpected ',' \
             or ']', but got '<stream end>'\n  in \"<unicode string>\", line 1, column 6:\n    a: [b\n         ^",
        ),
        (
            "a: |x\n  b\n",
            "while scanning a block scalar\n  in \"<unicode string>\", line 1, column 4:\n    a: |x\n       ^\nexpected \
             chomping or indentation indicators, but found 'x'\n  in \"<unicode string>\", line 1, column 5:\n    a: \
             |x\n        ^",
        ),
    ] {
        assert_eq!(refused(text), message, "{text:?}");
    }
    // A line of more than 36 characters is truncated 32 characters before and after the mark.
    let wide = |before: usize, behind: usize| refused(&format!("{}: b: {}", "x".repeat(before), "y".repeat(behind)));
    assert_eq!(wide(32, 30).lines().nth(2), Some(format!("    {}: b: {}", "x".repeat(32), "y".repeat(30)).as_str()));
    let cut = format!("     ... {}: b: {} ... ", "x".repeat(29), "y".repeat(30));
    assert_eq!(wide(34, 36).lines().nth(2), Some(cut.as_str()));
}
