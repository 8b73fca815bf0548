//! Runs `kiln` in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kiln_testcloud::Testcloud;

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

    /// Writes the configuration of a service on a free port, with `more` options of `[DEFAULT]` and sections; its path.
    pub(crate) fn configured(&self, cloud: &Testcloud, more: &str) -> String {
        let heat = cloud.users().heat;
        let text = format!(
            "[database]\nconnection = sqlite://{}/kiln.db?mode=rwc\n[heat_api]\nbind_host = 127.0.0.1\nbind_port = 0\n\
             [keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n[DEFAULT]\n\
             auth_encryption_key = 0123456789abcdef0123456789abcdef\n{more}",
            self.0.display(),
            cloud.auth_url(),
            heat.user,
            heat.password,
            heat.project,
        );
        self.write("kiln.conf", &text).display().to_string()
    }

    /// A command of the demo user of the cloud, for the service at a URL.
    pub(crate) fn client(&self, cloud: &Testcloud, url: &str, args: &[&str]) -> Command {
        let demo = cloud.users().demo;
        let mut command = self.kiln(args);
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
        command.env("OS_PROJECT_NAME", demo.project);
        command.env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", format!("{url}/v1/%(project_id)s"));
        command
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

/// All files below a folder with this extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
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
