//! No expression causes a panic, an endless loop or a stack overflow.

use kiln_value::{Value, value};
use kiln_yaql::{Limits, parse};
use proptest::prelude::*;

fn run(expression: &str) -> Result<Value, kiln_yaql::Error> {
    let data = value!({"data": {"n": 7, "s": "text", "l": [3, 1, [2, null]], "d": {"a": {"b": true}}}});
    parse(expression)?.evaluate(&data, &Limits { steps: 100_000, ..Limits::default() })
}

/// Runs with three quarters of the stack size of the service's threads.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(3 << 19).spawn(run).expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn deep_expressions_are_refused() {
    on_small_stack(|| {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "", "]"),
            ("{a => ", "1", "}"),
            ("len(", "[]", ")"),
            ("not ", "1", ""),
            ("-", "1", ""),
            ("1 + ", "1", ""),
            ("let(1) -> ", "1", ""),
            ("[1].select(", "$", ")"),
            ("$.data.l.where(true).select(", "$", ")"),
            ("coalesce(null, ", "1", ")"),
            ("switch(true => ", "1", ")"),
            ("def(f, ", "1", ") -> f()"),
            ("a", "", ".a"),
            ("[1]", "", ".select($)"),
            ("[1]", "", "[0]"),
        ] {
            for depth in [50, 100, 140, 1000, 20_000] {
                _ = run(&format!("{}{middle}{}", open.repeat(depth), close.repeat(depth)));
            }
        }
    });
}

#[test]
fn recursion_is_limited() {
    on_small_stack(|| {
        for expression in [
            "def(f, f($)) -> f(1)",
            "def(f, [1].select(f($))) -> f(1)",
            "def(f, [1].select(f($)).toList()) -> f(1)",
            "def(f, {a => f($)}) -> f(1)",
            "def(f, coalesce(null, f($))) -> f(1)",
            "def(f, [2, 1].orderBy(f($)).toList()) -> f(1)",
            "def(f, regex(a).replaceBy(a, f($))) -> f(1)",
            "def(f, call(f, [1], {})) -> f(1)",
        ] {
            let error = run(expression).unwrap_err();
            assert_eq!(error.class, "RecursionError", "{expression}: {error}");
        }
    });
}

#[test]
fn endless_evaluations_are_stopped() {
    on_small_stack(|| {
        for expression in [
            "sequence().len()",
            "range(1000000000000).len()",
            "a.repeat().len()",
            "generate(0, true, [$]).len()",
            "generate(0, true, [$, $]).len()",
            "generate([1].select($), true, $.select($)).len()",
            "generate({a => 1}, true, {a => $}).len()",
            "generate([], true, [$, $]).limit(199).last()",
            "generateMany(1, [$, $]).len()",
            "[1, 2].cycle().len()",
            "sequence().where(false)",
            "sequence().where(false).any()",
            "range(200).select(range(200)).select($.select(range(200)).select($.len()).sum()).sum()",
            "pow(10, 100000000000)",
            "pow(pow(10, 2000), 2000)",
            "shiftBitsLeft(1, 99999999999999999999)",
            "\"x\" * 99999999999999999999",
            "[1] * 99999999999999999999",
            "(\"x\" * 9000).replace(\"\", \"y\" * 9000)",
            "(\"a\" * 9000) =~ \"(a|aa)+$b\"",
            "list([[1] * 1000] * 1000) * 1000",
            "[[[[[[1] * 1000] * 1000] * 1000] * 1000] * 1000]",
            "str([[[[[[1] * 1000] * 1000] * 1000] * 1000] * 1000])",
        ] {
            assert!(run(expression).is_err(), "{expression}");
        }
    });
}

#[test]
fn expensive_but_finite_evaluations_succeed() {
    assert_eq!(run("[[1]].cycle().limit(150).aggregate($1.concat($2)).count()"), Ok(150.into()));
    assert_eq!(run("range(150).aggregate([$1]).len()"), Ok(1.into()));
    assert!(run("range(12).select(range($).select(range($).sum(0)).sum(0)).sum()").is_ok());
}

/// Fragments that often form valid expressions.
const PIECES: [&str; 96] = [
    "$",
    "$.data",
    "$.data.l",
    "$.data.d",
    "$.data.s",
    "$1",
    "$2",
    "$x",
    "1",
    "-1",
    "0",
    "2.5",
    "99999999999999999999",
    "a",
    "\"\"",
    "'x'",
    "true",
    "false",
    "null",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ".",
    "?.",
    "->",
    "=>",
    " + ",
    " - ",
    " * ",
    " / ",
    " mod ",
    " = ",
    " != ",
    " < ",
    " >= ",
    " in ",
    " and ",
    " or ",
    "not ",
    " =~ ",
    "[]",
    "{}",
    "[1, 2]",
    "{a => 1}",
    "set(1)",
    "range(3)",
    "len(",
    "str(",
    "int(",
    "let(",
    "def(f, ",
    "f(",
    "list(",
    "dict(",
    "regex(",
    "datetime(",
    "timespan(",
    "switch(",
    "coalesce(",
    "max(",
    "round(",
    "pow(",
    ".select(",
    ".where(",
    ".orderBy(",
    ".thenBy(",
    ".groupBy(",
    ".toDict(",
    ".aggregate(",
    ".join(",
    ".zip(",
    ".first(",
    ".last(",
    ".insert(",
    ".delete(",
    ".replace(",
    ".split(",
    ".substring(",
    ".indexOf(",
    ".flatten()",
    ".keys()",
    ".values()",
    ".items()",
    ".len()",
    ".toSet()",
    ".reverse()",
    ".mergeWith(",
    ".searchAll(",
    ".replaceBy(",
    ".format(",
    ".year",
    ".slice(",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        _ = run(&text);
    }

    #[test]
    fn pieces_of_expressions_are_evaluated_or_refused(
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 1..14)
    ) {
        _ = run(&pieces.concat());
    }

    #[test]
    fn functions_accept_or_refuse_any_arguments(
        name in prop::sample::select(kiln_yaql::functions().collect::<Vec<_>>()),
        receiver in prop::sample::select(vec!["[1, 2]", "abc", "{a => 1}", "set(1)", "5", "datetime(0)", "regex(b)", "null", ""]),
        args in prop::collection::vec(
            prop::sample::select(vec![
                "1", "-3", "0", "b", "\"\"", "true", "null", "[1, a]", "{b => 2}", "$", "$ + 1", "$1 > $2", "set(b)",
                "range(4)", "timespan(1)", "regex(c)", "a => 1", "1.5", "-9223372036854775808", "99999999999999999999",
            ]),
            0..5,
        ),
    ) {
        let dot = if receiver.is_empty() { "" } else { "." };
        _ = run(&format!("{receiver}{dot}{name}({})", args.join(", ")));
    }
}
