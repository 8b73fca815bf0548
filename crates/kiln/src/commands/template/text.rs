//! Texts of local templates.

use std::io::Read as _;

use kiln_console::output::print;
use kiln_server::whole_file;

use crate::failure::{Failure, Outcome};

/// Does something with each template. The failure of one of several is printed, and does not stop the others; `failed` says
/// what such templates are.
pub(super) async fn each<T>(
    names: impl IntoIterator<Item = &String>,
    failed: &str,
    mut work: impl AsyncFnMut(&str) -> Outcome<T>,
) -> (Vec<T>, Outcome) {
    let (mut done, mut failures, mut all) = (Vec::new(), Vec::new(), 0_usize);
    for name in names {
        all += 1;
        match work(name).await {
            Ok(result) => done.push(result),
            Err(failure) => failures.push(failure),
        }
    }
    let outcome = match (failures.pop(), all) {
        (None, _) => Ok(()),
        (Some(failure), 1) => Err(failure),
        (Some(last), all) => {
            failures.push(last);
            for failure in &failures {
                failure.report();
            }
            Err(Failure::new(format!("{} of {all} templates {failed}", failures.len())))
        }
    };
    (done, outcome)
}

/// A text with its name.
pub(super) struct Text {
    /// Its path, as specified by the user.
    pub(super) name: String,
    /// Its content.
    pub(super) content: String,
}

impl Text {
    /// Reads a file, or standard input for `-`.
    pub(super) fn read(name: &str) -> Outcome<Self> {
        let mut content = String::new();
        let read = match name {
            "-" => std::io::stdin().read_to_string(&mut content).map(drop),
            path => std::fs::read_to_string(path).map(|text| content = text),
        };
        read.map_err(|error| Failure::new(format!("{name}: {error}")))?;
        let name = if name == "-" { "<stdin>" } else { name };
        Ok(Self { name: name.to_owned(), content })
    }

    /// Writes a file, or prints the text if it came from standard input.
    pub(super) fn write(&self, content: &str) -> Outcome {
        if self.name == "<stdin>" {
            return Ok(print(content)?);
        }
        whole_file::replace(self.name.as_ref(), content.as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", self.name)))
    }
}
