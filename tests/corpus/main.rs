//! Every template of the public heat-templates, and the results of the real service (format:
//! `../data/corpus/README.md`).
//!
//! `cargo test -p kiln-tests --test corpus -- [words]` runs the records whose path contains one of the words.
//! `KILN_CORPUS` selects another folder of the same format, `KILN_SHOW` the number of differences to show per field
//! (3). The exit code is 1 if a field differs and `exceptions.txt` does not explain it.

mod dependencies;
mod difference;
mod language;
mod record;
mod request;
mod resolved;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use record::Record;
use request::{Corpus, GatheredRequest};
use service::Service;

const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// The difference of a field: `None` if there is none.
type Verdict = Option<String>;

/// Numbers of records and differing records of a field.
#[derive(Default)]
struct Tally {
    total: usize,
    differences: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let shown = std::env::var("KILN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let other = std::env::var_os("KILN_CORPUS").map(PathBuf::from);
    let folder = other.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join("corpus"));
    let answers = folder.join("answers.jsonl");
    let answers = std::fs::read_to_string(&answers).unwrap_or_else(|error| panic!("{}: {error}", answers.display()));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tallies = runtime.block_on(run_all(&Corpus::new(&folder), &answers, &words));

    let excepted: BTreeSet<(&str, &str)> = EXCEPTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let (mut passed, mut failed, mut unexplained) = (0, 0, 0);
    for (field, tally) in &tallies {
        let right = tally.total - tally.differences.len();
        passed += right;
        failed += tally.differences.len();
        println!("{field} {right} of {}", tally.total);
        let news = tally.differences.iter().filter(|(id, _)| !excepted.contains(&(*field, id.as_str())));
        for (i, (id, difference)) in news.enumerate() {
            unexplained += 1;
            if i < shown {
                println!("    {id}\n        {}", difference.replace('\n', "\n        "));
            }
        }
    }
    // Obsolete exceptions must be removed.
    if words.is_empty() && other.is_none() {
        for (field, id) in excepted {
            let differs =
                tallies.get(field).is_some_and(|tally| tally.differences.iter().any(|(other, _)| other == id));
            if !differs {
                println!("{field} {id} stands in exceptions.txt but does not differ");
                unexplained += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(unexplained > 0))
}

async fn run_all(corpus: &Corpus, answers: &str, words: &[String]) -> BTreeMap<&'static str, Tally> {
    let service = Service::new().await;
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    for line in answers.lines().filter(|line| !line.trim().is_empty()) {
        let record = Record::read(line);
        let id = record.id();
        if !words.is_empty() && !words.iter().any(|word| id.contains(word.as_str())) {
            continue;
        }
        for (field, verdict) in judge(corpus, &service, &record).await {
            let tally = tallies.entry(field).or_default();
            tally.total += 1;
            tally.differences.extend(verdict.map(|difference| (id.clone(), difference)));
        }
    }
    tallies
}

/// All fields of the record, in the order of their dependencies.
async fn judge(corpus: &Corpus, service: &Service, record: &Record) -> Vec<(&'static str, Verdict)> {
    let text = corpus.text(&record.path);
    let mut verdicts = language::judge(record, &text);
    if !record.is_template() {
        return verdicts;
    }
    let request = GatheredRequest::gather(corpus, record).await;
    verdicts.extend(request::judge(record, &request));
    let Ok(request) = request else { return verdicts };
    verdicts.extend(service::judge(service, record, &request).await);
    match request.blueprint(record, service.catalog()) {
        Ok(blueprint) => {
            verdicts.extend(dependencies::judge(record, &blueprint));
            verdicts.extend(resolved::judge(record, &blueprint));
        }
        Err(error) => {
            let fields = ["requires", "dependencies", "needs", "looks_up", "resolved"].into_iter();
            let refused = || Some(format!("refused: {error:?}"));
            verdicts.extend(fields.filter(|field| record.has(field)).map(|field| (field, refused())));
        }
    }
    verdicts
}
