//! Any bytes are a package or are refused, within the limits.
#![no_main]

use std::sync::{Arc, LazyLock};

use kiln_package::Limits;
use kiln_topology::{TypeFiles, upload};
use kiln_value::Map;
use libfuzzer_sys::fuzz_target;

static TYPES: LazyLock<Arc<TypeFiles>> = LazyLock::new(|| TypeFiles::shipped().expect("the types of Kiln"));

fuzz_target!(|input: &[u8]| {
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    match upload::read(input.to_vec(), &Map::new(), false, &limits, &TYPES) {
        Ok(upload) => assert!(upload.files.values().all(|content| content.as_str().is_some())),
        Err(errors) => assert!(!errors.is_empty()),
    }
});
