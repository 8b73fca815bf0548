//! Texts of local templates.

use std::io::Read as _;

use kiln_console::output::print;
use kiln_server::whole_file;

use crate::failure::{Failure, Outcome};

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
