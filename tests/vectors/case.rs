//! One vector.

use kiln_value::Value;

/// An input and what the real service made of it.
pub(crate) struct Case {
    /// A hash of kind and input.
    pub(crate) id: String,
    /// Which part of the service; decides the shape of the rest.
    pub(crate) kind: String,
    /// For reports.
    pub(crate) group: String,
    /// What the part was given.
    pub(crate) input: Value,
    /// What it made of it.
    pub(crate) expect: Value,
}

/// How a case went.
pub(crate) enum Outcome {
    /// As expected.
    Passed,
    /// Otherwise; what differs.
    Failed(String),
    /// There is nothing yet to run it.
    NotRun,
}

impl Case {
    /// Reads a line of the file.
    pub(crate) fn read(line: &str) -> Self {
        let mut line = kiln_yaml::json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut take = |key: &str| {
            let entry = line.as_map_mut().and_then(|map| map.get_mut(key));
            entry.map(std::mem::take).unwrap_or_default()
        };
        let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            id: text(take("id")),
            kind: text(take("kind")),
            group: text(take("group")),
            input: take("input"),
            expect: take("expect"),
        }
    }

    /// A part of the input; null if there is none.
    pub(crate) fn input(&self, key: &str) -> &Value {
        self.input.get(key).unwrap_or(&Value::Null)
    }
}
