//! Records of the reference, compared field by field, and the report of the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The numbers of records and the differing records of a field.
#[derive(Default)]
struct Tally {
    total: usize,
    differences: Vec<(String, String)>,
}

/// A run over the records of a folder.
pub struct Report {
    /// The folder with `answers.jsonl`.
    pub folder: PathBuf,
    /// Whether it is the folder of the project.
    is_own: bool,
    /// Only records whose ID contains one of these words; empty: all.
    words: Vec<String>,
    /// The differences to show per field.
    shown: usize,
    tallies: BTreeMap<&'static str, Tally>,
}

impl Report {
    /// A run with the words of the command line, over the folder that an environment variable names, or that of the
    /// project. `KILN_SHOW` is the number of differences to show per field (3).
    pub fn new(variable: &str, folder: &str) -> Self {
        let other = std::env::var_os(variable).map(PathBuf::from);
        Self {
            is_own: other.is_none(),
            folder: other.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(folder)),
            words: std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect(),
            shown: std::env::var("KILN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(3),
            tallies: BTreeMap::new(),
        }
    }

    /// The text of `answers.jsonl`.
    pub fn answers(&self) -> String {
        let answers = self.folder.join("answers.jsonl");
        std::fs::read_to_string(&answers).unwrap_or_else(|error| panic!("{}: {error}", answers.display()))
    }

    /// Whether a record is to be compared.
    pub fn wants(&self, id: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| id.contains(word.as_str()))
    }

    /// Adds a field of a record; `difference` is `None` if there is none.
    pub fn add(&mut self, field: &'static str, id: &str, difference: Option<String>) {
        let tally = self.tallies.entry(field).or_default();
        tally.total += 1;
        tally.differences.extend(difference.map(|difference| (id.to_owned(), difference)));
    }

    /// Prints the numbers and the differences that the exceptions (lines of a field and an ID) do not explain. The exit
    /// code is 1 if there are any, or if an exception is obsolete.
    pub fn end(self, exceptions: &str) -> ExitCode {
        let excepted: BTreeSet<(&str, &str)> = exceptions
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?, words.next()?))
            })
            .collect();
        let (mut passed, mut failed, mut unexplained) = (0, 0, 0);
        for (field, tally) in &self.tallies {
            let right = tally.total - tally.differences.len();
            passed += right;
            failed += tally.differences.len();
            println!("{field} {right} of {}", tally.total);
            let news = tally.differences.iter().filter(|(id, _)| !excepted.contains(&(*field, id.as_str())));
            for (i, (id, difference)) in news.enumerate() {
                unexplained += 1;
                if i < self.shown {
                    println!("    {id}\n        {}", difference.replace('\n', "\n        "));
                }
            }
        }
        // Obsolete exceptions must be removed.
        if self.words.is_empty() && self.is_own {
            for (field, id) in excepted {
                let differs =
                    self.tallies.get(field).is_some_and(|tally| tally.differences.iter().any(|(other, _)| other == id));
                if !differs {
                    println!("{field} {id} stands in exceptions.txt but does not differ");
                    unexplained += 1;
                }
            }
        }
        println!("{passed} passed, {failed} failed");
        ExitCode::from(u8::from(unexplained > 0))
    }
}
