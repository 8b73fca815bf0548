//! A running `kiln` process and its log.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A process, killed at the end of the test.
pub(crate) struct Running {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// Starts a command; its standard error is the log.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { child, log, reader: Some(reader) }
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([&format!("-{name}"), &self.pid()]).status().unwrap().success());
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a text in the log and returns what follows it in its line.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let log = self.log();
            if let Some((_, rest)) = log.split_once(text) {
                return rest.lines().next().unwrap_or_default().to_owned();
            }
            assert!(Instant::now() < end, "{text:?} is not in the log:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The URL of the API, as soon as it is served.
    #[track_caller]
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.wait_for("serving address=").split(' ').next().unwrap_or_default())
    }

    /// Stops the process; its exit code and its whole log.
    pub(crate) fn stop(self) -> (i32, String) {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end of the process; its exit code and its whole log.
    pub(crate) fn wait(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.take().unwrap().join().unwrap();
        (code, self.log())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
