//! The requests of a client for a template.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_client::{Bundle, Source, address};
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Sources};
use kiln_template::Files;
use kiln_template::StackIdentity;
use kiln_template::environment::Environment;
use kiln_value::{Diagnostic, Map, Value, text, value};

use crate::Verdict;
use crate::difference::difference;
use crate::record::Record;

/// The name of the folder in the records.
const PREFIX: &str = "file:///corpus";

/// The folder of templates.
pub(crate) struct Corpus {
    folder: PathBuf,
    url: String,
}

impl Corpus {
    /// The corpus in a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), url: address::url_of(&folder.to_string_lossy()) }
    }

    /// A file's text.
    pub(crate) fn text(&self, path: &str) -> String {
        let file = self.folder.join(path);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    fn file(&self, path: &str) -> String {
        self.folder.join(path).to_string_lossy().into_owned()
    }

    /// The text with the folder name of the records.
    fn renamed(&self, text: &str) -> String {
        text.replace(&self.url, PREFIX)
    }
}

/// The body of a request.
pub(crate) struct GatheredRequest {
    /// The body as JSON.
    pub(crate) body: String,
    value: Value,
}

impl GatheredRequest {
    /// Reads the template with its environments and all files that they refer to; else returns the client's error.
    pub(crate) async fn gather(corpus: &Corpus, record: &Record) -> Result<Self, String> {
        let environments: Vec<String> = record.environments.iter().map(|path| corpus.file(path)).collect();
        let bundle = Bundle::read(&Source::files(), Some(&corpus.file(&record.path)), &environments).await;
        let mut bundle = bundle.map_err(|error| corpus.renamed(&error.to_string()))?;
        // The records were made with environments that the client merged, without sending their texts.
        bundle.files.retain(|url, _| !bundle.environment_files.contains(url));
        let body = value!({
            "template": (bundle.template.unwrap_or_default()),
            "environment": (bundle.environment),
            "files": (bundle.files),
        });
        let body = corpus.renamed(&text::json(&body));
        let value = kiln_yaml::json::parse(&body).map_err(|error| error.to_string())?;
        Ok(Self { body, value })
    }

    /// The blueprint of the request, with the parameter values of the record.
    pub(crate) fn blueprint(&self, record: &Record, catalog: &ResourceTypes) -> Result<Blueprint, Diagnostic> {
        let given = record.field("parameters").as_map().cloned().unwrap_or_default();
        let sources = self.sources(given)?;
        let identity = StackIdentity::new("tenant-1", "teststack", "11111111-2222-4333-8444-555555555555")?;
        Blueprint::build(sources, catalog, Some(identity), Nesting::default())
    }

    /// The template with its environment and files, and with these parameter values.
    pub(crate) fn sources(&self, given: Map) -> Result<Sources, Diagnostic> {
        let map = |value: Option<&Value>| value.and_then(Value::as_map).cloned().unwrap_or_default();
        let mut sections = map(self.value.get("environment"));
        let mut parameters = map(sections.get("parameters"));
        parameters.extend(given);
        sections.insert("parameters".to_owned(), parameters.into());
        let files = map(self.value.get("files")).into_iter();
        let files = files.map(|(name, text)| (name, text.as_str().unwrap_or_default().to_owned())).collect();
        Ok(Sources {
            template: Arc::new(self.value.get("template").cloned().unwrap_or_default()),
            environment: Arc::new(Environment::from_sections(&sections)?),
            files: Arc::new(Files(files)),
        })
    }

    fn files(&self) -> Value {
        let files = self.value.get("files").and_then(Value::as_map);
        let names: BTreeSet<&String> = files.into_iter().flat_map(Map::keys).collect();
        names.into_iter().collect()
    }
}

/// Checks `files` or `client_error`.
pub(crate) fn judge(record: &Record, request: &Result<GatheredRequest, String>) -> Vec<(&'static str, Verdict)> {
    match request {
        Ok(_) if record.has("client_error") => vec![("client_error", Some("it could be read".to_owned()))],
        Ok(request) => vec![("files", difference(record.field("files"), &request.files()))],
        // The class is that of the Python client.
        Err(message) => {
            let message = format!("CommandError: {message}");
            vec![("client_error", difference(record.field("client_error"), &message.into()))]
        }
    }
}
