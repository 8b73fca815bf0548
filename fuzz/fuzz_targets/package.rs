//! Any bytes are a package or are refused, within the limits.
#![no_main]

use kiln_package::Limits;
use kiln_topology::upload;
use kiln_value::Map;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    match upload::read(input, &Map::new(), false, &limits) {
        Ok(upload) => assert!(upload.files.values().all(|content| content.as_str().is_some())),
        Err(errors) => assert!(!errors.is_empty()),
    }
});
