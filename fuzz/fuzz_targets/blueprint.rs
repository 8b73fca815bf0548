//! Any text is a blueprint and a CAMP plan or is refused; what is accepted is lowered or refused.
#![no_main]

use std::sync::LazyLock;

use kiln_topology::blueprint::{self, Library};
use kiln_topology::camp;
use kiln_topology::lower::lower;
use libfuzzer_sys::fuzz_target;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::shipped().expect("the types of Kiln"));

fuzz_target!(|input: &str| {
    for read in [blueprint::read, camp::read] {
        match read(input, &LIBRARY) {
            Ok(blueprint) => {
                assert!(blueprint.reading().as_map().is_some());
                if let Ok((graph, _)) = blueprint.graph() {
                    drop(lower(&graph, "heat.yaml"));
                }
            }
            Err((_, refusals)) => assert!(!refusals.is_empty()),
        }
    }
});
