//! A plug-in of the tests in a folder, and resources of its type.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_plugin::{Plugins, Program};
use kiln_resource::{
    Access, Cloud, CloudRequest, CloudResponse, Context, Driver, Facts, Failure, Found, NoSoftware, Operation, Step,
};
use kiln_value::{Class, Map, Secret, Value};

/// The token of every call.
pub(crate) const TOKEN: &str = "gAAAA-the-token";

/// The token after that one was rejected.
pub(crate) const SECOND_TOKEN: &str = "gAAAA-the-second-token";

/// The cloud of the tests: only a token.
pub(crate) struct Tokens;

#[async_trait]
impl Cloud for Tokens {
    async fn call(&self, _: CloudRequest) -> Result<CloudResponse, Failure> {
        Err(Failure::other(Class::Unexpected, "a call"))
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Err(Failure::other(Class::Unexpected, "a search"))
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    /// A second token in place of the first.
    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        Ok(Access {
            auth_url: "http://keystone/v3".to_owned(),
            token: Secret::new(refused.map_or(TOKEN, |_| SECOND_TOKEN).to_owned()),
            project_id: Some("p1".to_owned()),
            user_id: "u1".to_owned(),
            region: None,
            catalog: Value::List(Vec::new()),
        })
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("p1".to_owned())
    }
}

/// A running plug-in.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) plugins: Plugins,
}

impl World {
    /// The plug-in of the tests with this limit for a call.
    pub(crate) async fn new(limit: Duration) -> Self {
        Self::of("odd.py", limit).await
    }

    /// A plug-in of the tests.
    pub(crate) async fn of(script: &str, limit: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plugins = kiln_plugin::start(vec![program(script, folder.path())], limit).await.expect("a plug-in");
        Self { folder, plugins }
    }

    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.plugins.types[0].driver)
    }

    /// A resource whose object does this.
    pub(crate) fn facts(name: &str, does: &str) -> Facts {
        Facts {
            name: name.to_owned(),
            attempt: kiln_resource::Attempt { token: format!("mark-of-{name}"), unmarked_since: None },
            properties: [("does".to_owned(), does.into())].into_iter().collect(),
            ..Facts::default()
        }
    }

    /// Starts an operation.
    pub(crate) async fn start(&self, facts: &Facts, operation: Operation) -> Result<Step, Failure> {
        self.driver().start(&context(facts), &operation).await
    }

    pub(crate) async fn find(&self, facts: &Facts) -> Result<Found, Failure> {
        self.driver().find(&context(facts)).await
    }

    pub(crate) async fn attributes(&self, facts: &Facts, names: &[&str]) -> Result<Map, Failure> {
        self.driver().attributes(&context(facts), names).await
    }

    /// The calls: method and process.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        let calls = text.lines().filter_map(|line| line.split_once(' '));
        calls.map(|(method, process)| (method.to_owned(), process.to_owned())).collect()
    }

    /// How many things there are.
    pub(crate) fn things(&self) -> usize {
        let entries = std::fs::read_dir(self.folder.path()).expect("a folder");
        entries
            .filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().starts_with("thing-"))
            .count()
    }
}

fn program(script: &str, folder: &Path) -> Program {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(script);
    Program::parse(&format!("/usr/bin/env python3 {} {}", script.display(), folder.display())).expect("a program")
}

pub(crate) fn context(facts: &Facts) -> Context<'_> {
    Context { cloud: &Tokens, software: &NoSoftware, facts, now: 0.0, seed: [0; 32], polls: 0 }
}
