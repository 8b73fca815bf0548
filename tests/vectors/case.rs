//! Vectors.

use kiln_value::Value;

/// An input and the result of the real service.
pub(crate) struct Case {
    /// A hash of kind and input.
    pub(crate) id: String,
    /// The part of the service; determines the format of input and result.
    pub(crate) kind: String,
    /// Group for reports.
    pub(crate) group: String,
    /// The input.
    pub(crate) input: Value,
    /// The result.
    pub(crate) expect: Value,
}

/// The outcome of a vector.
pub(crate) enum Outcome {
    /// The result is as expected.
    Passed,
    /// The result differs; contains the difference.
    Failed(String),
    /// Not supported yet.
    NotRun,
}

impl Case {
    /// Parses a line of the file.
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

    /// A part of the input; null if it is missing.
    pub(crate) fn input(&self, key: &str) -> &Value {
        self.input.get(key).unwrap_or(&Value::Null)
    }
}
