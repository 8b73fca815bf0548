//! The audit map: which words of a path are what, and how actions are called (`audit_map_file`).

use std::collections::BTreeMap;
use std::path::Path;

use kiln_ini::Ini;

/// A map that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is not an INI file.
    #[error("{0}")]
    Ini(#[from] kiln_ini::IniError),
}

/// What an audit map says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditMap {
    /// The type of the service in the catalog, for requests that name none of its URLs.
    pub(crate) service: Option<String>,
    /// A word of a path, and what stands behind it: `stacks`, `stack`.
    pub(crate) keywords: BTreeMap<String, String>,
    /// The end of a path (`actions`), or with its method (`actions/post`), and the action.
    pub(crate) actions: BTreeMap<String, String>,
    /// The type of a service in the catalog, and its type in CADF.
    pub(crate) services: BTreeMap<String, String>,
}

/// The words in the paths of the API: those of Heat, then those of Kiln.
const KEYWORDS: &[(&str, &str)] = &[
    ("stacks", "stack"),
    ("resources", "resource"),
    ("snapshots", "snapshot"),
    ("outputs", "output"),
    ("metadata", "server"),
    ("events", "event"),
    ("template_versions", "template_version"),
    ("resource_types", "resource_type"),
    ("software_configs", "software_config"),
    ("software_deployments", "software_deployment"),
    ("abandon", "None"),
    ("actions", "None"),
    ("build_info", "None"),
    ("detail", "None"),
    ("functions", "None"),
    ("preview", "None"),
    ("restore", "None"),
    ("services", "None"),
    ("signal", "None"),
    ("template", "None"),
    ("validate", "None"),
    ("guards", "guard"),
    ("operations", "operation"),
    ("orphans", "orphan"),
    ("plans", "plan"),
    ("revisions", "revision"),
    ("approve", "None"),
    ("drift", "None"),
    ("execute", "None"),
    ("forget", "None"),
    ("import", "None"),
    ("refactor", "None"),
    ("reject", "None"),
];

impl Default for AuditMap {
    /// The map without a file.
    fn default() -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self {
            service: Some("orchestration".to_owned()),
            keywords: KEYWORDS.iter().map(owned).collect(),
            actions: BTreeMap::new(),
            services: [("orchestration", "service/orchestration"), ("cloudformation", "service/orchestration")]
                .iter()
                .map(owned)
                .collect(),
        }
    }
}

impl AuditMap {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not an INI file.
    pub fn read(file: &Path) -> Result<Self, MapError> {
        Self::parse(&std::fs::read_to_string(file)?)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// It is not an INI file.
    pub fn parse(text: &str) -> Result<Self, MapError> {
        let mut ini = Ini::default();
        ini.read(text, 0)?;
        let section = |wanted: &str| {
            let options = ini.options().filter(|(section, ..)| *section == wanted);
            let value = |given: &[kiln_ini::Given]| given.last().map(|given| given.value.clone()).unwrap_or_default();
            // Python's configparser has names in small letters.
            options.map(|(_, key, given)| (key.to_lowercase(), value(given))).collect()
        };
        Ok(Self {
            service: ini.all("DEFAULT", "target_endpoint_type").last().map(|given| given.value.clone()),
            keywords: section("path_keywords"),
            actions: section("custom_actions"),
            services: section("service_endpoints"),
        })
    }

    /// The action of a request in the taxonomy of CADF.
    pub(crate) fn action(&self, method: &str, path: &str) -> String {
        let path = path.strip_suffix('/').unwrap_or(path);
        let end = bare(path.rsplit('/').next().unwrap_or_default());
        let own = self.actions.get(&format!("{end}/{}", method.to_lowercase())).or_else(|| self.actions.get(end));
        let is_keyword = self.keywords.contains_key(end);
        match (own, method) {
            (Some(action), _) => action,
            (None, "POST") if is_keyword => "create",
            (None, "POST" | "PUT" | "PATCH") => "update",
            (None, "GET") if is_keyword => "read/list",
            (None, "GET" | "HEAD") => "read",
            (None, "DELETE") => "delete",
            (None, _) => "unknown",
        }
        .to_owned()
    }

    /// The type of what a path names: `service/orchestration/stacks/stack`.
    pub(crate) fn target_type(&self, service: &str, path: &str) -> String {
        let mut target = service.to_owned();
        let mut before: Option<&str> = None;
        for word in path.split('/').map(bare) {
            if self.keywords.contains_key(word) {
                target = format!("{target}/{word}");
            } else if let Some(inside) = before.and_then(|before| self.keywords.get(before)) {
                target = format!("{target}/{inside}");
            }
            before = Some(word);
        }
        target
    }
}

/// A word of a path without `.json`.
fn bare(word: &str) -> &str {
    word.strip_suffix(".json").unwrap_or(word)
}
