//! Any text is a configuration file or is refused, and every option can be asked for.
#![no_main]

// The reader is a module of the binary, which has no library to depend on.
#[path = "../../crates/kiln/src/ini.rs"]
mod ini;

use ini::{DEFAULT, Ini};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut read = Ini::default();
    if let Err(error) = read.read(input) {
        assert!(!error.problem.is_empty());
        assert!((1..=input.lines().count()).contains(&error.line));
    }
    read.add(DEFAULT, "from-environment", "$from_environment".to_owned());
    for (group, key) in read.options() {
        assert!(!read.all(group, key).is_empty());
        assert!(read.get(group, key).is_some());
    }
});
