//! Every template of the public heat-templates, and the results of the real service (format:
//! `../data/corpus/README.md`).
//!
//! `cargo test -p kiln-tests --test corpus -- [words]` runs the records whose path contains one of the words.
//! `KILN_CORPUS` selects another folder of the same format, `KILN_SHOW` the number of differences to show per field
//! (3). The exit code is 1 if a field differs and `exceptions.txt` does not explain it.

mod dependencies;
mod difference;
mod language;
mod offline;
mod record;
mod request;
mod resolved;
mod service;
mod stored;

use std::process::ExitCode;

use kiln_tests::Report;
use record::Record;
use request::{Corpus, GatheredRequest};
use service::Service;

/// The difference of a field: `None` if there is none.
type Verdict = Option<String>;

fn main() -> ExitCode {
    let mut report = Report::new("KILN_CORPUS", "corpus");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run_all(&mut report));
    report.end(include_str!("exceptions.txt"))
}

async fn run_all(report: &mut Report) {
    let corpus = Corpus::new(&report.folder);
    let service = Service::new().await;
    for line in report.answers().lines().filter(|line| !line.trim().is_empty()) {
        let record = Record::read(line);
        let id = record.id();
        if !report.wants(&id) {
            continue;
        }
        for (field, verdict) in judge(&corpus, &service, &record).await {
            report.add(field, &id, verdict);
        }
    }
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
    verdicts.extend(offline::judge(record, &request, service.catalog()));
    match request.blueprint(record, service.catalog()) {
        Ok(blueprint) => {
            verdicts.extend(dependencies::judge(record, &blueprint));
            verdicts.extend(resolved::judge(record, &blueprint));
            verdicts.extend(stored::judge(&blueprint));
        }
        Err(error) => {
            let fields = ["requires", "dependencies", "needs", "looks_up", "resolved"].into_iter();
            let refused = || Some(format!("refused: {error:?}"));
            verdicts.extend(fields.filter(|field| record.has(field)).map(|field| (field, refused())));
        }
    }
    verdicts
}
