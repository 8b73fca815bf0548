//! Any text is a service template or is refused; what is accepted is lowered or refused.
#![no_main]

use std::collections::HashMap;

use kiln_topology::lower::lower;
use kiln_topology::tosca;
use kiln_value::Map;
use libfuzzer_sys::fuzz_target;

/// Divides the template and the file `other.yaml`, which it may import.
const NEXT_FILE: &str = "\n=====\n";

fuzz_target!(|input: &str| {
    let (template, other) = input.split_once(NEXT_FILE).unwrap_or((input, ""));
    let files = HashMap::from([
        ("t.yaml".to_owned(), template.to_owned()),
        ("other.yaml".to_owned(), other.to_owned()),
    ]);
    match tosca::read(&files, "t.yaml", &Map::new()) {
        Ok(template) => {
            assert!(template.graph.model().as_map().is_some());
            drop(lower(&template.graph, "t.yaml"));
        }
        Err((_, refusals)) => assert!(!refusals.is_empty()),
    }
});
