//! Which parameters have answers to the questions of a topology, kept among the files of the stack: so an update that keeps
//! the parameters of the stack knows which of them are answers, not values of the user.

use std::collections::BTreeSet;

use kiln_value::{Value, text};

/// The name of the entry among the files.
pub const FILE: &str = "kiln:answers";

/// The content of the entry, for the names of parameters. Values are not part of it: some are secrets.
pub fn to_file(names: &BTreeSet<String>) -> String {
    text::json(&names.iter().map(Value::from).collect())
}

/// The names of the parameters, from the content of the entry; none if it is another text.
pub fn of_file(entry: &str) -> BTreeSet<String> {
    let entry = kiln_yaml::json::parse(entry).unwrap_or_default();
    let names = entry.as_list().unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_the_entry() {
        let names = BTreeSet::from(["web_flavor".to_owned(), "web_image".to_owned()]);
        assert_eq!(of_file(&to_file(&names)), names);
        for other in ["", "{\"web_flavor\": 1}", "[1]"] {
            assert_eq!(of_file(other), BTreeSet::new());
        }
    }
}
