//! Any text is a YAQL expression or is refused; it is evaluated within Heat's bounds.
#![no_main]

use std::sync::LazyLock;

use kiln_value::{Value, value};
use kiln_yaql::{Limits, parse};
use libfuzzer_sys::fuzz_target;

static DATA: LazyLock<Value> = LazyLock::new(
    || value!({"data": {"n": 7, "f": 2.5, "s": "text, a", "l": [3, 1, [2, null]], "d": {"a": {"b": true}}}}),
);

fuzz_target!(|input: &str| {
    let limits = Limits { steps: 20_000, ..Limits::default() };
    match parse(input).and_then(|expression| expression.evaluate(&DATA, &limits)) {
        Ok(value) => drop(kiln_value::text::repr(&value)),
        Err(error) => assert!(!error.class.is_empty()),
    }
});
