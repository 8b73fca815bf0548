//! Generated texts from relevant fragments, so that many of them are valid.

use kiln_value::Value;
use proptest::prelude::*;
use proptest::sample::select;

fn of_pieces(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(select(pieces), 0..most).prop_map(|pieces| pieces.concat())
}

/// Texts that resemble YAML.
pub(crate) fn yaml() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "key",
        ": ",
        ":",
        "- ",
        "-",
        "\n",
        "\n",
        "\n  ",
        "\n    ",
        "\n  - ",
        "\n- ",
        "  ",
        " ",
        "\t",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        "|",
        ">",
        "|-",
        "|+",
        ">-",
        "|2",
        "'",
        "\"",
        "\\",
        "\\n",
        "\\x41",
        "#",
        " # c",
        "&a ",
        "*a",
        "<<: ",
        "<<",
        "? ",
        "?",
        "!!str ",
        "!!int ",
        "!!float ",
        "!!bool ",
        "!!null ",
        "!!set ",
        "!!seq ",
        "!!map ",
        "!x ",
        "! ",
        "~",
        "null",
        "yes",
        "No",
        "true",
        "0",
        "1",
        "-1",
        "+1",
        "017",
        "08",
        "0x1F",
        "0b11",
        "0o7",
        "1_0",
        "1.5",
        ".5",
        "1.",
        "1e3",
        "1.0e+3",
        ".inf",
        "-.inf",
        ".nan",
        "1:30",
        "1:30.5",
        "2001-01-01",
        "=",
        "---",
        "\n---\n",
        "\n...\n",
        "é",
        "\u{1f600}",
        "\u{a0}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "%",
        "@",
        "`",
        "a: 1\n",
        "b: [1, {c: d}]\n",
        "x: &x {y: 1}\n",
        "z: *x\n",
        "w: {<<: *x, y: 2}\n",
        "t: |\n  text\n",
        "f: >\n  one\n  two\n",
    ];
    of_pieces(PIECES, 14)
}

/// Templates with a few inserted or missing characters.
pub(crate) fn broken_yaml() -> impl Strategy<Value = String> {
    const WHOLE: &[&str] = &[
        "heat_template_version: 2021-04-16\ndescription: >\n  Some words\n  on two lines.\n\nparameters:\n  flavor:\n    \
         type: string\n    constraints:\n    - custom_constraint: nova.flavor\n      description: a flavor, \"quoted\"\n",
        "resources:\n  server:\n    type: OS::Nova::Server\n    properties:\n      networks: [{network: {get_param: \
         network}}, {port: 'it''s'}]\n      user_data: |\n        #!/bin/sh\n        echo done\n\n  # a comment\n  \
         other: {type: \"OS::Heat::Value\", properties: {value: 5}}\n",
        "outputs:\n  address:\n    value: {get_attr: [server, first_address]}\n  list:\n    value:\n    - one\n    - \
         two: &two {a: b}\n    - *two\n    - !!str 5\n",
        "%YAML 1.1\n---\na: \"\\x41\\u00e9\"\n? key\n: - value\n  - >-\n   folded\n...\n",
    ];
    const PIECES: &[&str] = &[
        "\t",
        " ",
        "  ",
        ":",
        ": ",
        "- ",
        "-",
        "\n",
        "\n  ",
        "\n    ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "|",
        ">",
        "|2",
        "|0",
        "|x",
        "'",
        "\"",
        "\\",
        "\\x",
        "\\q",
        "#",
        "&",
        "&a ",
        "*",
        "*a",
        "!",
        "!x ",
        "!a!b ",
        "!<",
        "!!str",
        "%",
        "@",
        "`",
        "?",
        "? ",
        "---",
        "...",
        "\n---\n",
        "\n...\n",
        "\n%YAML 2.0\n",
        "\n%TAG ! x\n",
        "=",
        "é",
        "\u{2028}",
        "\u{1}",
    ];
    let mutation = (any::<prop::sample::Index>(), 0..4_usize, select(PIECES));
    let mutations = proptest::collection::vec(mutation, 1..4);
    (select(WHOLE), any::<bool>(), mutations).prop_map(|(whole, is_ended, mutations)| {
        let mut chars: Vec<char> = whole.chars().collect();
        for (place, removed, piece) in mutations {
            let place = place.index(chars.len() + 1);
            let end = (place + removed).min(chars.len());
            // In half of the cases, characters are only removed.
            let added = if removed % 2 == 0 { piece } else { "" };
            chars.splice(place..end, added.chars());
        }
        let text: String = chars.into_iter().collect();
        if is_ended { text } else { text.trim_end().to_owned() }
    })
}

/// Texts that resemble JSON.
pub(crate) fn json() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\n",
        "\"a\"",
        "\"b\":",
        "\"\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"",
        "\\",
        "1",
        "-1",
        "0",
        "01",
        "1.5",
        "-0.0",
        "1e3",
        "1E+2",
        "1e",
        ".5",
        "true",
        "false",
        "null",
        "NaN",
        "Infinity",
        "-Infinity",
        "12345678901234567890",
        "{\"a\": 1}",
        "[1, 2]",
        "{\"a\":",
        "é",
        "\t",
        "\u{a0}",
        "\u{1}",
    ];
    of_pieces(PIECES, 8)
}

/// Values without NaN, which does not equal itself.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |f| !f.is_nan()).prop_map(Value::from),
        (-400_i32..400, 1_i32..1000).prop_map(|(e, m)| Value::from(f64::from(m) * 10_f64.powi(e))),
        assigned_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            proptest::collection::vec((assigned_text(), inner), 0..5).prop_map(Value::from_iter),
        ]
    })
}

/// Letters of scripts that have been in Unicode for long: newer ones are printable on one side only.
fn assigned_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![0_u32..0x250, 0x370_u32..0x590, 0x2000_u32..0x2070, 0x3000_u32..0x3100, 0x1f600_u32..0x1f640],
        0..8,
    )
    .prop_map(|codes| codes.into_iter().filter_map(char::from_u32).collect())
}

/// Texts that resemble numbers.
pub(crate) fn number() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "0",
        "1",
        "12",
        "9",
        "_",
        ".",
        "e",
        "E",
        "+",
        "-",
        " ",
        "\n",
        "\u{a0}",
        "\u{1c}",
        "inf",
        "nan",
        "Infinity",
        "x",
        "٣",
        "१",
        "٫",
        "½",
        "000",
        "99999999999999999999",
        "e400",
        "e-400",
    ];
    of_pieces(PIECES, 6)
}
