//! A Python child process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kiln_value::{Value, text};

/// A running Python process that answers requests one after the other.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Python's answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A string; for other values, the `repr`.
    Value(String),
    /// An exception.
    Error(String),
}

impl Peer {
    /// Starts Python; `None`, with a message, if Python or PyYAML is missing.
    pub(crate) fn start() -> Option<Self> {
        let has_yaml =
            Command::new("python3").args(["-c", "import yaml"]).output().is_ok_and(|run| run.status.success());
        if !has_yaml {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have python3 with PyYAML");
            eprintln!("SKIPPED: python3 with PyYAML is not here to compare with");
            return None;
        }
        let mut child = Command::new("python3")
            .args(["-c", include_str!("peer.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Some(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends `[operation, argument…]`.
    pub(crate) fn ask(&mut self, question: &Value) -> Answer {
        writeln!(self.input, "{}", text::json(question)).expect("Python reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("Python answers");
        let answer = kiln_yaml::json::parse(&line).expect("an answer is JSON");
        match (answer.get("value"), answer.str_at("error")) {
            (Some(Value::Str(value)), _) => Answer::Value(value.clone()),
            (Some(value), _) => Answer::Value(text::repr(value)),
            (None, error) => Answer::Error(error.unwrap_or_default().to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The child may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
