//! Any text is YAML and JSON or is refused; what was read is read again from its JSON.
#![no_main]

use kiln_value::text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    match kiln_yaml::parse(input) {
        Ok(document) => {
            let written = text::json(&document.value);
            let again = kiln_yaml::json::parse(&written).expect("what was written is JSON");
            assert_eq!(text::repr(&again), text::repr(&document.value));
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
    if let Ok((value, spans)) = kiln_yaml::json::parse_with_spans(input) {
        drop(spans);
        assert_eq!(text::repr(&value), text::repr(&kiln_yaml::json::parse(input).expect("read before")));
    }
});
