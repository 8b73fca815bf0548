//! `kiln manage doctor`: what a service needs, checked from here.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueEnum};
use http::{HeaderMap, Method};
use jiff::Timestamp;
use kiln_cloud::{CloudError, Connector, Credentials, HttpRequest, Interface, Token, Transport};
use kiln_store::{SchemaState, SchemaVersions, SqlStore, Store as _};
use kiln_value::{Value, value};
use url::Url;

use crate::cli::ConfigArgs;
use crate::config::check::{Level, findings};
use crate::config::options::stacks;
use crate::config::{Account, Config};
use crate::failure::{Failure, Outcome};
use crate::output::{json_text, print};
use crate::own_certificate::{CertificateFiles, OF_APIS};
use crate::{certificate, checks, clients, database, runtime};

/// The time for each call.
const PATIENCE: Duration = Duration::from_secs(10);
/// A query of the database that takes longer is slow.
const SLOW_QUERY: Duration = Duration::from_millis(20);
/// A call of a service that takes longer is slow.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// Clocks that differ more are wrong; headers have whole seconds.
const SKEW: Duration = Duration::from_secs(5);
/// Tokens do not work with clocks that differ more.
const WORST_SKEW: Duration = Duration::from_mins(1);
/// Certificates that end within this time are reported.
const SOON: Duration = Duration::from_hours(30 * 24);
/// The services that nearly every template uses.
const USUAL_SERVICES: [&str; 3] = ["compute", "network", "image"];

/// `manage doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Checks the configuration, the encryption key, the database and its clock, the engines, Keystone and its
clock, the service user, the trustee, the domain of stack users, the catalog, the own certificates and
those of all addresses, and what is slow. Changes nothing. Prints one line per check, and a hint if it is not ok.
Exits with 1 if a check failed.

Examples:
  kiln manage doctor --config-file kiln.conf
  kiln manage doctor --config-file kiln.conf -f json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: DoctorFormat,
}

/// The forms of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoctorFormat {
    /// One line each.
    Text,
    /// A list of objects.
    Json,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    Ok,
    Warning,
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

/// A check: what, how it is, details, and what to do.
struct Finding {
    check: String,
    grade: Grade,
    details: String,
    hint: String,
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

impl DoctorArgs {
    pub(super) async fn run(self) -> Outcome {
        let config = Config::load(&self.config)?;
        let mut report = Report::default();
        configuration(&config, &mut report);
        own_certificates(&config, &mut report);
        Box::pin(of_database(&config, &mut report)).await;
        Box::pin(of_cloud(&config, &mut report)).await;
        print(&match self.format {
            DoctorFormat::Text => report.0.iter().map(ToString::to_string).collect(),
            DoctorFormat::Json => {
                let list: Vec<Value> = report.0.iter().map(Finding::value).collect();
                format!("{}\n", json_text(&Value::from(list)))
            }
        })?;
        match report.0.iter().filter(|finding| finding.grade == Grade::Failed).count() {
            0 => Ok(()),
            1 => Err(Failure::new("a check failed")),
            failed => Err(Failure::new(format!("{failed} checks failed"))),
        }
    }
}

impl Finding {
    fn value(&self) -> Value {
        value!({
            "check": (self.check.as_str()), "result": (self.grade.to_string()), "details": (self.details.as_str()),
            "hint": (self.hint.as_str()),
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<7} {:<26} {}", self.grade, self.check, self.details)?;
        if self.hint.is_empty() { Ok(()) } else { writeln!(f, "{:<34} hint: {}", "", self.hint) }
    }
}

fn configuration(config: &Config, report: &mut Report) {
    let found = findings(config);
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let refused = runtime::check_options(config);
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let grade = match (refused.len(), errors + warnings) {
        (0, 0) => Grade::Ok,
        (0, _) => Grade::Warning,
        _ => Grade::Failed,
    };
    let details = match refused.first() {
        Some(error) => format!("{error:#}"),
        None => format!("{} files, {errors} errors, {warnings} warnings", config.files().len()),
    };
    report.add("configuration", grade, details, "run 'kiln config check FILE'");
    let key = config.secret(&stacks::AUTH_ENCRYPTION_KEY).map(|key| key.expose().len());
    let (grade, details) = match key {
        Some(length @ (16 | 24 | 32)) => {
            let is_public = config.secret(&stacks::AUTH_ENCRYPTION_KEY).is_some_and(|key| database::is_public(&key));
            if is_public {
                (Grade::Failed, "Heat's default, which is public".to_owned())
            } else {
                grade_of_length(length)
            }
        }
        Some(length) => (Grade::Warning, format!("{length} characters")),
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
            return report.add("database", Grade::Failed, format!("{error:#}"), "check [database] connection");
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
    if let Err(error) = Box::pin(checks::stacks_of_heat(&store)).await {
        report.add("stacks of Heat", Grade::Failed, format!("{error:#}"), "give Kiln a database of its own");
    }
    let versions = Box::pin(store.schema_versions()).await;
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
    report.add("schema", grade, details, "run 'kiln manage db sync', or start a service of this version");
    if grade != Grade::Ok {
        return;
    }
    let (grade, details) = match checks::key(&store).await {
        Ok(()) => (Grade::Ok, "decrypts what is stored".to_owned()),
        Err(error) => (Grade::Failed, format!("{error:#}")),
    };
    report.add("stored credentials", grade, details, "set the key of this database");
    let (grade, details) = match tokio::try_join!(store.engines(), store.now()) {
        Ok((engines, now)) => {
            let up = engines.iter().filter(|engine| kiln_web::is_up(engine, now)).count();
            (if up == 0 { Grade::Warning } else { Grade::Ok }, format!("{up} up, {} down", engines.len() - up))
        }
        Err(error) => (Grade::Failed, error.to_string()),
    };
    report.add("engines", grade, details, "start a service: without an engine, requests wait");
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

async fn of_cloud(config: &Config, report: &mut Report) {
    let prepared = || -> Result<_> {
        let service = config.account("keystone_authtoken")?;
        Ok((clients::connector(config, &service)?, clients::transport(config, &service)?, service))
    };
    let (connector, transport, service) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return report.add("Keystone", Grade::Failed, format!("{error:#}"), "see [keystone_authtoken]"),
    };
    let keystone = connector.options().auth_url.clone();
    let Some(date) = answer("Keystone", &keystone, &*transport, report).await else { return };
    if let Some(date) = date {
        clock("clock of Keystone", date.duration_since(runtime::now()).as_secs_f64(), report);
    }
    let mut addresses = BTreeSet::from([keystone]);
    let own =
        user("service user", runtime::credentials(&service, "keystone_authtoken", true), &connector, report).await;
    trustee(config, &service, &connector, report).await;
    domain(config, &service, &connector, report).await;
    if let Some(token) = own {
        catalog(&token, &connector, &*transport, &mut addresses, report).await;
    }
    certificates(&addresses, report).await;
}

/// Whether a service answers, with its clock if it tells it. `None`: it does not.
async fn answer(check: &str, url: &Url, transport: &dyn Transport, report: &mut Report) -> Option<Option<Timestamp>> {
    let request =
        HttpRequest { method: Method::GET, url: url.clone(), headers: HeaderMap::new(), body: None, timeout: PATIENCE };
    let start = Instant::now();
    match transport.send(request).await {
        Ok(response) => {
            let time = start.elapsed();
            let grade = match response.status.as_u16() {
                500.. => Grade::Failed,
                _ if time > SLOW_CALL => Grade::Warning,
                _ => Grade::Ok,
            };
            let hint = if response.status.is_server_error() { "see the log of the service" } else { "it is slow" };
            report.add(check, grade, format!("{url} answers {} in {}", response.status.as_u16(), shown(time)), hint);
            let date = response.header("date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
            Some(date.map(|date| date.timestamp()))
        }
        Err(error) => {
            report.add(
                check,
                Grade::Failed,
                format!("{url}: {error}"),
                "check the address, the network and certificates",
            );
            None
        }
    }
}

/// The token of a user, if Keystone gives one.
async fn user(
    check: &str,
    credentials: Result<Credentials>,
    connector: &Connector,
    report: &mut Report,
) -> Option<std::sync::Arc<Token>> {
    const HINT: &str = "check user name, password, project and domains";
    let credentials = match credentials {
        Ok(credentials) => credentials,
        Err(error) => {
            report.add(check, Grade::Failed, format!("{error:#}"), HINT);
            return None;
        }
    };
    match connector.session(credentials).token().await {
        Ok(token) => {
            let roles: Vec<&str> = token.info.roles.iter().map(|role| role.name.as_str()).collect();
            let roles = if roles.is_empty() { String::new() } else { format!(", roles {}", roles.join(", ")) };
            report.add(check, Grade::Ok, format!("token given{roles}"), "");
            Some(token)
        }
        Err(error) => {
            let cause = match error {
                CloudError::NoToken { cause, .. } => *cause,
                error => error,
            };
            report.add(check, Grade::Failed, cause.to_string(), HINT);
            None
        }
    }
}

async fn trustee(config: &Config, service: &Account, connector: &Connector, report: &mut Report) {
    match config.account("trustee") {
        Ok(account) if account.has_user() => {
            user("trustee", runtime::credentials(&account, "trustee", false), connector, report).await;
        }
        Ok(_) => {
            let name = service.username.as_deref().unwrap_or_default();
            report.add("trustee", Grade::Ok, format!("the service user {name}"), "");
        }
        Err(error) => report.add("trustee", Grade::Failed, format!("{error:#}"), "see [trustee]"),
    }
}

async fn domain(config: &Config, service: &Account, connector: &Connector, report: &mut Report) {
    const CHECK: &str = "domain of stack users";
    match runtime::signalling(config, service) {
        Ok(signalling) => match signalling.domain_admin {
            Some(admin) => drop(user(CHECK, Ok(admin), connector, report).await),
            None => report.add(
                CHECK,
                Grade::Warning,
                "not set: wait conditions and software deployments by CFN signals fail",
                "run 'kiln manage setup-domain'",
            ),
        },
        Err(error) => report.add(CHECK, Grade::Failed, format!("{error:#}"), "see [DEFAULT] stack_user_domain_id"),
    }
}

async fn catalog(
    token: &Token,
    connector: &Connector,
    transport: &dyn Transport,
    addresses: &mut BTreeSet<Url>,
    report: &mut Report,
) {
    let (catalog, options) = (&token.info.catalog, connector.options());
    let region = options.region.as_deref();
    let own = catalog.endpoint("orchestration", Interface::Public, region);
    let (grade, details) = match own {
        Some(url) => (Grade::Ok, url.to_owned()),
        None => (Grade::Warning, "the catalog has no service orchestration".to_owned()),
    };
    let hint = "register it with the URL http://HOST:8004/v1/%(tenant_id)s, also its type cloudformation";
    report.add("own endpoint", grade, details, hint);
    for service in USUAL_SERVICES {
        let check = format!("service {service}");
        let interface = options.interfaces.get(service).copied().unwrap_or(options.interface);
        let Some(url) = catalog.endpoint(service, interface, region) else {
            let hint = "check region_name_for_services and [clients] endpoint_type; resources of the service fail";
            report.add(check, Grade::Warning, "not in the catalog", hint);
            continue;
        };
        match Url::parse(url) {
            Ok(url) => {
                answer(&check, &root(&url), transport, report).await;
                addresses.insert(url);
            }
            Err(error) => report.add(check, Grade::Failed, format!("{url}: {error}"), "correct the catalog"),
        }
    }
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
            Ok(Err(error)) => (Grade::Failed, format!("{error:#}")),
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
            Err(error) => (Grade::Failed, format!("{error:#}")),
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
        assert_eq!(report.0[1].to_string().lines().count(), 2);
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
