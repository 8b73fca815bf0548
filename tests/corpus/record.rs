//! One record.

use kiln_value::Value;

/// A template, perhaps with an environment, and what the real service made of it.
pub(crate) struct Record {
    /// The file, below the corpus' folder.
    pub(crate) path: String,
    /// The environments given with it.
    pub(crate) environments: Vec<String>,
    fields: Value,
}

impl Record {
    /// Reads a line of the file.
    pub(crate) fn read(line: &str) -> Self {
        let fields = kiln_yaml::json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let environments = fields.get("environment_files").and_then(Value::as_list).unwrap_or_default();
        Self {
            path: fields.str_at("path").unwrap_or_default().to_owned(),
            environments: environments.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            fields,
        }
    }

    /// The path, and whether environments come with it.
    pub(crate) fn id(&self) -> String {
        if self.environments.is_empty() { self.path.clone() } else { format!("{}+env", self.path) }
    }

    /// Whether it is a template; else an environment.
    pub(crate) fn is_template(&self) -> bool {
        self.fields.str_at("kind") == Some("template")
    }

    /// Whether the service said anything of a field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some()
    }

    /// What the service said; null if nothing.
    pub(crate) fn field(&self, field: &str) -> &Value {
        self.fields.get(field).unwrap_or(&Value::Null)
    }

    /// Whether a field holds random names, other ones each time.
    pub(crate) fn is_unstable(&self, field: &str) -> bool {
        let unstable = self.field("unstable").as_list().unwrap_or_default();
        unstable.iter().any(|name| name.as_str() == Some(field))
    }
}
