//! The program of a plug-in: its path and arguments.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// A program that implements resource types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// The program of a command line: an absolute path and arguments, separated by white space.
    ///
    /// # Errors
    /// The path is not absolute, or not an executable file.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let path = PathBuf::from(words.next().unwrap_or_default());
        check(&path).map_err(|problem| format!("{}: {problem}", path.display()))?;
        Ok(Self { path, arguments: words.map(str::to_owned).collect() })
    }

    /// Starts a process, which is killed when the result is dropped. It has a process group of its own, so that an
    /// interrupt from a terminal does not end it before the calls of Kiln.
    pub(crate) fn spawn(&self) -> std::io::Result<Child> {
        Command::new(&self.path)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

fn check(path: &Path) -> Result<(), String> {
    if !path.is_absolute() {
        return Err("not an absolute path".to_owned());
    }
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err("not an executable file".to_owned());
    }
    Ok(())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused() {
        let program = Program::parse("/bin/sh  -c true").unwrap();
        assert_eq!(program.to_string(), "/bin/sh -c true");
        assert_eq!(Program::parse("sh").unwrap_err(), "sh: not an absolute path");
        assert_eq!(Program::parse("/tmp").unwrap_err(), "/tmp: not an executable file");
        assert!(Program::parse("/no/such/file").unwrap_err().starts_with("/no/such/file: No such file"));
    }
}
