//! What a service needs, checked from the host of the command.

mod cloud;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use kiln_config::Config;
use kiln_config::check::{self, Level};
use kiln_config::options::stacks;
use kiln_store::{SchemaState, SchemaVersions, SqlStore, Store as _};
use kiln_value::Chain;
use tokio::time::Instant;
use url::Url;

use crate::own_certificate::{CertificateFiles, OF_APIS};
use crate::{certificate, checks, database, encryption_key, runtime};

/// The time for each call.
const PATIENCE: Duration = Duration::from_secs(10);
/// A query of the database that takes longer is slow.
const SLOW_QUERY: Duration = Duration::from_millis(20);
/// Clocks that differ more are wrong; headers have whole seconds.
const SKEW: Duration = Duration::from_secs(5);
/// Tokens do not work with clocks that differ more.
const WORST_SKEW: Duration = Duration::from_mins(1);
/// Certificates that end within this time are reported.
const SOON: Duration = Duration::from_hours(30 * 24);

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// All is well.
    Ok,
    /// It works, but not as it should.
    Warning,
    /// It does not work.
    Failed,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        })
    }
}

/// A check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is checked.
    pub check: String,
    /// How it is.
    pub grade: Grade,
    /// What was found.
    pub details: String,
    /// What to do; empty if it is ok.
    pub hint: String,
}

/// The findings so far.
#[derive(Default)]
struct Report(Vec<Finding>);

impl Report {
    fn add(&mut self, check: impl Into<String>, grade: Grade, details: impl Into<String>, hint: &str) {
        let hint = if grade == Grade::Ok { String::new() } else { hint.to_owned() };
        self.0.push(Finding { check: check.into(), grade, details: details.into(), hint });
    }
}

/// Checks all.
pub async fn findings(config: &Config) -> Vec<Finding> {
    let mut report = Report::default();
    configuration(config, &mut report);
    own_certificates(config, &mut report);
    Box::pin(of_database(config, &mut report)).await;
    message_bus(config, &mut report).await;
    Box::pin(cloud::check(config, &mut report)).await;
    report.0
}

fn configuration(config: &Config, report: &mut Report) {
    let found = check::findings(config);
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let refused = runtime::check_options(config);
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let grade = match (refused.len(), errors + warnings) {
        (0, 0) => Grade::Ok,
        (0, _) => Grade::Warning,
        _ => Grade::Failed,
    };
    let details = match refused.first() {
        Some(error) => Chain(&**error).to_string(),
        None => format!("{} files, {errors} errors, {warnings} warnings", config.files().len()),
    };
    report.add("configuration", grade, details, "run 'kiln config check FILE'");
    if let Ok(Some(source)) = encryption_key::source(config) {
        // Whether it can be read, the database shows.
        return report.add("encryption key", Grade::Ok, source.to_string(), "");
    }
    let key = config.secret(&stacks::AUTH_ENCRYPTION_KEY).map(|key| key.expose().len());
    let (grade, details) = match key {
        Some(length @ (16 | 32)) => {
            let is_public = config.secret(&stacks::AUTH_ENCRYPTION_KEY).is_some_and(|key| database::is_public(&key));
            if is_public {
                (Grade::Failed, "Heat's default, which is public".to_owned())
            } else {
                grade_of_length(length)
            }
        }
        Some(length) => (Grade::Failed, format!("{length} characters")),
        None => (Grade::Failed, "not set".to_owned()),
    };
    report.add("encryption key", grade, details, "generate one of 32 characters: openssl rand -hex 16");
}

fn grade_of_length(length: usize) -> (Grade, String) {
    (if length == 32 { Grade::Ok } else { Grade::Warning }, format!("{length} characters"))
}

async fn of_database(config: &Config, report: &mut Report) {
    let store = match Box::pin(database::open_unchanged(config)).await {
        Ok(store) => store,
        Err(error) => {
            return report.add("database", Grade::Failed, Chain(&*error).to_string(), "check [database] connection");
        }
    };
    match Box::pin(latency(&store)).await {
        Err(error) => return report.add("database", Grade::Failed, error.to_string(), "check [database] connection"),
        Ok((time, skew)) => {
            let grade = if time > SLOW_QUERY { Grade::Warning } else { Grade::Ok };
            let hint = "every step of a stack waits for the database: move it nearer, or look for its load";
            report.add("database", grade, format!("a query takes {}", shown(time)), hint);
            clock("clock of the database", skew, report);
        }
    }
    if let Ok(Some(encryption)) = Box::pin(store.encryption()).await {
        report.add("encryption of connections", Grade::Ok, encryption, "");
    }
    if let Err(error) = Box::pin(checks::stacks_of_heat(config, &store)).await {
        report.add("stacks of Heat", Grade::Failed, Chain(&*error).to_string(), "give Kiln a database of its own");
    }
    let versions = Box::pin(store.schema_versions()).await;
    let is_newer = versions.as_ref().is_ok_and(|versions| versions.state() == SchemaState::TooNew);
    let (grade, details) = match versions.map(|versions| (versions.state(), versions)) {
        Ok((SchemaState::Missing, SchemaVersions { latest, .. })) => {
            (Grade::Warning, format!("no schema; this version uses {latest}"))
        }
        Ok((SchemaState::Older, SchemaVersions { done, latest, .. })) => {
            (Grade::Warning, format!("version {done}; this version uses {latest}"))
        }
        Ok((SchemaState::Current, SchemaVersions { done, .. })) => (Grade::Ok, format!("version {done}")),
        Ok((SchemaState::UsableNewer, SchemaVersions { done, .. })) => {
            (Grade::Ok, format!("version {done} of a newer Kiln, which this one can use"))
        }
        Ok((SchemaState::TooNew, SchemaVersions { done, latest, .. })) => {
            (Grade::Failed, format!("version {done} of a newer Kiln; this version supports {latest}"))
        }
        Err(error) => (Grade::Failed, error.to_string()),
    };
    let hint = if is_newer {
        "use the newer Kiln, or restore the backup from before its upgrade: there is no downgrade"
    } else {
        "run 'kiln manage db sync', or start a service of this version"
    };
    report.add("schema", grade, details, hint);
    if grade != Grade::Ok {
        return;
    }
    let (grade, details) = match checks::key(&store).await {
        Ok(()) => (Grade::Ok, "decrypts what is stored".to_owned()),
        Err(error) => (Grade::Failed, Chain(&*error).to_string()),
    };
    report.add("stored credentials", grade, details, "set the key of this database");
    let (grade, details) = match tokio::try_join!(store.engines(), store.now()) {
        Ok((engines, now)) => {
            let up = engines.iter().filter(|engine| engine.is_up(now)).count();
            (if up == 0 { Grade::Warning } else { Grade::Ok }, format!("{up} up, {} down", engines.len() - up))
        }
        Err(error) => (Grade::Failed, error.to_string()),
    };
    report.add("engines", grade, details, "start a service: without an engine, requests wait");
}

/// The message bus, if one is configured.
async fn message_bus(config: &Config, report: &mut Report) {
    const CHECK: &str = "message bus";
    let bus = match kiln_bus::of_config(config, "") {
        Ok(Some(bus)) => bus,
        Ok(None) => return,
        Err(error) => return report.add(CHECK, Grade::Failed, Chain(&*error).to_string(), "see transport_url"),
    };
    // It connects, and has nothing to send.
    let (grade, details) = match tokio::time::timeout(PATIENCE, bus.send(&[])).await {
        Ok(Ok(())) => (Grade::Ok, "takes notifications".to_owned()),
        Ok(Err(failure)) => (Grade::Failed, failure.message.clone()),
        Err(_) => (Grade::Failed, "timeout".to_owned()),
    };
    report.add(CHECK, grade, details, "check transport_url, its user and the network; notifications wait for an hour");
}

/// The median time of a query, and how far the clock of the database is ahead of this one, in seconds.
async fn latency(store: &SqlStore) -> Result<(Duration, f64), kiln_store::Error> {
    let mut times = Vec::new();
    let mut skew = 0.0;
    for _ in 0..5 {
        let start = Instant::now();
        let theirs = store.now().await?;
        times.push(start.elapsed());
        skew = theirs.duration_since(runtime::now()).as_secs_f64();
    }
    times.sort();
    Ok((times.get(2).copied().unwrap_or_default(), skew))
}

fn clock(check: &str, ahead: f64, report: &mut Report) {
    let grade = match ahead.abs() {
        seconds if seconds > WORST_SKEW.as_secs_f64() => Grade::Failed,
        seconds if seconds > SKEW.as_secs_f64() => Grade::Warning,
        _ => Grade::Ok,
    };
    report.add(check, grade, format!("{ahead:+.1} s from this host"), "set the clocks by NTP");
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The address without what depends on a project.
fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root
}

async fn certificates(addresses: &BTreeSet<Url>, report: &mut Report) {
    let servers: BTreeSet<Url> = addresses.iter().filter(|url| url.scheme() == "https").map(root).collect();
    if servers.is_empty() {
        return report.add("certificates", Grade::Ok, "no address uses https", "");
    }
    for server in servers {
        let check = format!("certificate {}", server.host_str().unwrap_or_default());
        let found = tokio::time::timeout(PATIENCE, certificate::expiry(&server)).await;
        let (grade, details) = match found {
            Ok(Ok(end)) => until(end, runtime::now()),
            Ok(Err(error)) => (Grade::Failed, Chain(&*error).to_string()),
            Err(_) => (Grade::Failed, "timeout".to_owned()),
        };
        report.add(check, grade, details, "renew the certificate");
    }
}

/// The certificates of the APIs themselves.
fn own_certificates(config: &Config, report: &mut Report) {
    for (certificate, key) in OF_APIS {
        let end = match CertificateFiles::of(config, certificate, key) {
            Ok(None) => continue,
            Ok(Some(files)) => files.read().and_then(|_| files.expiry()),
            Err(error) => Err(error),
        };
        let (grade, details) = match end {
            Ok(end) => until(end, runtime::now()),
            Err(error) => (Grade::Failed, Chain(&*error).to_string()),
        };
        report.add(format!("certificate [{}]", certificate.section()), grade, details, "renew the certificate");
    }
}

fn until(end: Timestamp, now: Timestamp) -> (Grade, String) {
    let left = end.duration_since(now);
    let grade = match Duration::try_from(left) {
        Err(_) => Grade::Failed,
        Ok(left) if left < SOON => Grade::Warning,
        Ok(_) => Grade::Ok,
    };
    (grade, format!("valid until {end} ({} days)", left.as_hours() / 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_certificates_are_graded() {
        let mut report = Report::default();
        for ahead in [0.5, -6.0, 61.0] {
            clock("c", ahead, &mut report);
        }
        let grades: Vec<Grade> = report.0.iter().map(|finding| finding.grade).collect();
        assert_eq!(grades, [Grade::Ok, Grade::Warning, Grade::Failed]);
        assert!(report.0[0].hint.is_empty() && !report.0[1].hint.is_empty());
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(until(at("2025-12-31T00:00:00Z"), now).0, Grade::Failed);
        assert_eq!(
            until(at("2026-01-20T00:00:00Z"), now),
            (Grade::Warning, "valid until 2026-01-20T00:00:00Z (19 days)".to_owned())
        );
        assert_eq!(until(at("2026-03-20T00:00:00Z"), now).0, Grade::Ok);
    }
}
