//! Lifecycle plug-ins that are programs: each run is a process, which reads a JSON document from its standard input.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use kiln_engine::LifecyclePlugin;
use kiln_value::{Value, text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use kiln_config::Config;
use kiln_config::options::kiln;

/// Maximum number of processes at the same time.
const PROCESSES: usize = 8;
/// How much of an error text is kept.
const ERROR_TEXT: u64 = 1_000;

/// A program.
struct Program {
    path: PathBuf,
    name: String,
    limit: Duration,
    processes: Arc<Semaphore>,
}

/// The configured plug-ins, in their order: `[kiln] lifecycle_plugins` and `lifecycle_timeout`.
pub fn of_config(config: &Config) -> Result<Vec<Arc<dyn LifecyclePlugin>>> {
    let limit = config.seconds(&kiln::LIFECYCLE_TIMEOUT)?;
    let processes = Arc::new(Semaphore::new(PROCESSES));
    let programs = config.list(&kiln::LIFECYCLE_PLUGINS);
    let plugin = |path: &String| -> Result<Arc<dyn LifecyclePlugin>> {
        let program = Program::new(Path::new(path), limit, Arc::clone(&processes));
        Ok(Arc::new(program.with_context(|| format!("[kiln] lifecycle_plugins: {path}"))?))
    };
    programs.iter().map(plugin).collect()
}

impl Program {
    fn new(path: &Path, limit: Duration, processes: Arc<Semaphore>) -> Result<Self> {
        if !path.is_absolute() {
            bail!("not an absolute path");
        }
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            bail!("not an executable file");
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { path: path.to_owned(), name, limit, processes })
    }

    /// Runs the program. If this future is dropped, the process is killed.
    async fn process(&self, document: &Value) -> Result<(), String> {
        let mut child = Command::new(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let write = async {
            if let Some(mut input) = input {
                // A program need not read its input.
                let _ = input.write_all(text::json(document).as_bytes()).await;
            }
        };
        let errors = child.stderr.take();
        let ((), told) = tokio::join!(write, first_part(errors));
        let status = child.wait().await.map_err(|error| error.to_string())?;
        match told.trim() {
            _ if status.success() => Ok(()),
            "" => Err(status.to_string()),
            told => Err(told.to_owned()),
        }
    }
}

/// The first part of a text; the rest is read too, so that the writer does not block.
async fn first_part(source: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut source) = source else { return String::new() };
    let mut first = Vec::new();
    let _ = (&mut source).take(ERROR_TEXT).read_to_end(&mut first).await;
    let _ = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&first).into_owned()
}

#[async_trait]
impl LifecyclePlugin for Program {
    fn name(&self) -> &str {
        &self.name
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    async fn run(&self, document: &Value) -> Result<(), String> {
        let _permit = self.processes.acquire().await.map_err(|error| error.to_string())?;
        match tokio::time::timeout(self.limit, self.process(document)).await {
            Ok(done) => done,
            Err(_) => Err(format!("no result after {} seconds", self.limit.as_secs_f64())),
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn run(path: &Path, limit: Duration) -> Result<(), String> {
        let program = Program::new(path, limit, Arc::new(Semaphore::new(1))).unwrap();
        program.run(&value!({"phase": "before", "text": ("x".repeat(200_000))})).await
    }

    #[tokio::test]
    async fn programs_read_the_document_and_tell_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let minute = Duration::from_mins(1);
        let out = folder.path().join("out");
        let reads = script(folder.path(), "reads", &format!("cat > {}", out.display()));
        assert_eq!(run(&reads, minute).await, Ok(()));
        assert!(std::fs::read_to_string(&out).unwrap().starts_with("{\"phase\": \"before\""));
        // It need not read its input, and may say more than anybody wants to know.
        let refuses = script(folder.path(), "refuses", "echo no room >&2; exit 3");
        assert_eq!(run(&refuses, minute).await, Err("no room".to_owned()));
        let talks = script(folder.path(), "talks", "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1");
        assert_eq!(run(&talks, minute).await.unwrap_err().len(), 1_000);
        let silent = script(folder.path(), "silent", "exit 4");
        assert_eq!(run(&silent, minute).await, Err("exit status: 4".to_owned()));
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let hangs = script(folder.path(), "hangs", &format!("echo $$ > {}\nexec sleep 1000", pid.display()));
        let told = run(&hangs, Duration::from_millis(500)).await;
        assert_eq!(told, Err("no result after 0.5 seconds".to_owned()));
        let pid = std::fs::read_to_string(&pid).unwrap();
        let process = PathBuf::from(format!("/proc/{}/cmdline", pid.trim()));
        for _ in 0..100 {
            if std::fs::read_to_string(&process).unwrap_or_default().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it is still running");
    }

    #[test]
    fn what_cannot_be_run_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let count = |paths: &str| {
            let options = [("kiln", "lifecycle_plugins", paths.to_owned())];
            of_config(&Config::of_options(&options)).map(|plugins| plugins.len()).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(count(""), Ok(0));
        let good = script(folder.path(), "good", "");
        assert_eq!(count(&format!("{0}, {0}", good.display())), Ok(2));
        for path in ["relative", "/no/such/file", folder.path().to_str().unwrap(), plain.to_str().unwrap()] {
            assert!(count(path).unwrap_err().contains(path), "{path}");
        }
    }
}
