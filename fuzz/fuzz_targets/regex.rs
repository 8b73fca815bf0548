//! Any first line is a pattern of Python's `re` or is refused; it is searched for in the rest.
#![no_main]

use kiln_value::Pattern;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (pattern, subject) = input.split_once('\n').unwrap_or((input, "Kiln 2024-01-01 aaa\nb"));
    let Ok(pattern) = Pattern::new(pattern) else { return };
    if let Ok(Some(end)) = pattern.match_end(subject) {
        assert!(subject.is_char_boundary(end));
        assert_eq!(pattern.matches_all(subject), end == subject.len());
    }
    // What is found at the start is found anywhere.
    let mut fuel = kiln_value::regex::MOST_STEPS;
    let anywhere = pattern.search(subject, 0, false, &mut fuel);
    if let (Ok(Some(_)), Ok(found)) = (pattern.match_end(subject), anywhere) {
        assert!(found.is_some());
    }
});
