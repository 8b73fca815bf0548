//! Records of the corpus.

use kiln_value::Value;

/// A template with optional environments, and the results of the real service.
pub(crate) struct Record {
    /// The file, relative to the corpus folder.
    pub(crate) path: String,
    /// Its environments.
    pub(crate) environments: Vec<String>,
    fields: Value,
}

impl Record {
    /// Parses a line of the file.
    pub(crate) fn read(line: &str) -> Self {
        let fields = kiln_yaml::json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let environments = fields.get("environment_files").and_then(Value::as_list).unwrap_or_default();
        Self {
            path: fields.str_at("path").unwrap_or_default().to_owned(),
            environments: environments.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            fields,
        }
    }

    /// The path, with a suffix if there are environments.
    pub(crate) fn id(&self) -> String {
        if self.environments.is_empty() { self.path.clone() } else { format!("{}+env", self.path) }
    }

    /// Whether it is a template; otherwise it is an environment.
    pub(crate) fn is_template(&self) -> bool {
        self.fields.str_at("kind") == Some("template")
    }

    /// Whether the record has a field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some()
    }

    /// The value of a field; null if it is missing.
    pub(crate) fn field(&self, field: &str) -> &Value {
        self.fields.get(field).unwrap_or(&Value::Null)
    }

    /// Whether a field contains random names that differ each time.
    pub(crate) fn is_unstable(&self, field: &str) -> bool {
        let unstable = self.field("unstable").as_list().unwrap_or_default();
        unstable.iter().any(|name| name.as_str() == Some(field))
    }
}
