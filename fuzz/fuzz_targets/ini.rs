//! Any text is a configuration file or is refused, and every option can be asked for.
#![no_main]

use kiln_ini::{DEFAULT, Ini};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut read = Ini::default();
    if let Err(error) = read.read(input, 0) {
        assert!(!error.problem.is_empty());
        assert!((1..=input.lines().count()).contains(&error.line));
    }
    read.add(DEFAULT, "from-environment", "$from_environment".to_owned());
    for (group, key, values) in read.options() {
        let last = values.last().expect("an option has a value");
        assert_eq!(read.all(group, key).last(), Some(last));
        let _ = read.replaced(group, last);
    }
    read.set(DEFAULT, "from_environment", None);
    assert!(read.all(DEFAULT, "from_environment").is_empty());
});
