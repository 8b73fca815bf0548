//! A `kiln` process that a test starts, freezes and kills.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that ends with the test.
pub(crate) struct Process {
    child: Child,
    role: &'static str,
    config: PathBuf,
    variables: Vec<(String, String)>,
}

impl Process {
    /// Starts `kiln ROLE` with more environment variables; its log is appended to a file in the folder of the
    /// configuration.
    pub(crate) fn start(role: &'static str, config: &Path, log: &str, variables: Vec<(String, String)>) -> Self {
        let log = config.with_file_name(log);
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let child = Command::new(env!("CARGO_BIN_EXE_kiln"))
            .args([role, "--config-file"])
            .arg(config)
            .envs(variables.iter().cloned())
            .env("RUST_LOG", std::env::var("KILN_TEST_LOG").unwrap_or_else(|_| "info".to_owned()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("kiln starts");
        Self { child, role, config: config.to_owned(), variables }
    }

    /// Starts another one as a replacement.
    pub(crate) fn start_again(&mut self, log: &str) {
        *self = Self::start(self.role, &self.config, log, std::mem::take(&mut self.variables));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: nothing is completed or released.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// SIGSTOP: it is paused.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// SIGCONT: it continues.
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    /// SIGTERM: it stops cleanly within a time limit.
    pub(crate) async fn stop(&mut self, within: Duration) -> ExitStatus {
        self.signal("TERM");
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            assert!(start.elapsed() < within, "kiln {} does not end", self.role);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_some()
    }

    /// The time of processors that it has used.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its state");
        let fields = stat.rsplit_once(") ").expect("fields").1.split(' ');
        // utime and stime, in hundredths of a second.
        let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum::<u64>();
        Duration::from_millis(10 * ticks)
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(sent.success(), "SIG{name} to kiln {}", self.role);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
