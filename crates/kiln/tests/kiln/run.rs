//! Runs `kiln` in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with a database, deleted at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kiln-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and creates its folders.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `kiln` without environment variables that may affect it.
    pub(crate) fn kiln(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command.env_clear().env("HOME", &self.0).env("TMPDIR", &self.0).env("KILN_DATABASE", self.0.join("stacks.db"));
        command
    }

    /// Runs `kiln` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.kiln(args).output().unwrap().into()
    }

    /// Runs `kiln --local`.
    pub(crate) fn local(&self, args: &[&str]) -> Ran {
        self.run(&[&["--local"], args].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// The output of a successful run.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self.out
    }

    /// The output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }
}
