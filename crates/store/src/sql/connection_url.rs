//! The URL of a database: its parameters mean what they mean to PyMySQL, mysqlclient and psycopg.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sea_orm::sqlx;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use url::{Url, form_urlencoded};

use super::default_file::DefaultFile;
use super::tls::{Mode, Roots, Tls};

/// What a parameter does, and a text about it for operators.
enum Meaning {
    /// It is read here.
    Read(fn(&mut Given, &str) -> Result<(), String>, &'static str),
    /// The driver understands it.
    Driver(&'static str),
    /// It cannot have an effect: why.
    NoEffect(&'static str),
    /// It is not supported: what to do instead.
    Refused(&'static str),
}

use Meaning::{Driver, NoEffect, Read, Refused};

const NOTICED: &str = "Kiln tests connections that were idle, and closes one when the database does nothing for it";
const NO_CIPHERS: &str = "TLS 1.2 and 1.3 are used with their AEAD ciphers only; restrict ciphers on the server";
const NO_PASSPHRASE: &str = "keys with a passphrase are not supported; use one without";
const CONNECT_TIMEOUT: &str = "seconds that a connection may take; 30. With several hosts, each has at most one second";
const OWN_CERTIFICATE: &str = "own certificate and its key";

/// The parameters of MySQL and MariaDB.
const MYSQL: &[(&str, Meaning)] = &[
    (
        "ssl_ca",
        Read(
            |given, text| path(&mut given.ca, text),
            "file with certificates of authorities: encrypted, certificate and host name are verified. Without any `ssl_` parameter, \
             connections are not encrypted",
        ),
    ),
    ("ssl_capath", Read(|given, text| path(&mut given.capath, text), "the same, for all files of a folder")),
    ("ssl_cert", Read(|given, text| path(&mut given.cert, text), OWN_CERTIFICATE)),
    ("ssl_key", Read(|given, text| path(&mut given.key, text), OWN_CERTIFICATE)),
    (
        "ssl_verify_cert",
        Read(
            |given, text| set(&mut given.verify_cert, flag(text)),
            "true: the certificate is verified, the host name only with `ssl_verify_identity`; without `ssl_ca`, by the authorities \
             of the system. false: encrypted without a check",
        ),
    ),
    (
        "ssl_verify_identity",
        Read(|given, text| set(&mut given.verify_identity, flag(text)), "whether the host name is verified too"),
    ),
    (
        "ssl_check_hostname",
        Read(|given, text| set(&mut given.check_host, flag(text)), "whether the host name is verified too"),
    ),
    (
        "ssl_mode",
        Read(
            |given, text| set(&mut given.mode, Mode::of_mysql(text)),
            "instead of the former three: DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY",
        ),
    ),
    ("ssl_disabled", Read(|given, text| set(&mut given.disabled, flag(text)), "true: not encrypted")),
    ("unix_socket", Read(|given, text| path(&mut given.socket, text), "connect to this socket")),
    (
        "read_default_file",
        Read(
            |given, text| path(&mut given.default_file, text),
            "an option file (`my.cnf`), for what the URL lacks: user, password, host, port, database, socket, ssl-ca, ssl-capath, \
             ssl-cert, ssl-key",
        ),
    ),
    (
        "read_default_group",
        Read(|given, text| set(&mut given.default_group, Ok(text.to_owned())), "the group in this file; client"),
    ),
    ("charset", Read(|_, text| unicode(text), "utf8, utf8mb3 or utf8mb4: connections always use utf8mb4")),
    ("connect_timeout", Read(|given, text| set(&mut given.connect_timeout, seconds(text)), CONNECT_TIMEOUT)),
    ("read_timeout", NoEffect(NOTICED)),
    ("write_timeout", NoEffect(NOTICED)),
    ("use_unicode", NoEffect("texts are always Unicode")),
    ("binary_prefix", NoEffect("Kiln stores no binary data")),
    ("local_infile", NoEffect("Kiln loads no files into the database")),
    ("autocommit", NoEffect("Kiln begins and ends transactions itself")),
    ("ssl_cipher", Refused(NO_CIPHERS)),
    ("ssl_key_password", Refused(NO_PASSPHRASE)),
    ("ssl", Refused("write ssl_mode=REQUIRED, or ssl_ca=FILE")),
    ("sslmode", Refused("MySQL and MariaDB have ssl_mode")),
    ("bind_address", Refused("the system chooses the local address; remove it")),
];

/// The parameters of PostgreSQL.
const POSTGRES: &[(&str, Meaning)] = &[
    (
        "sslmode",
        Read(
            |given, text| set(&mut given.mode, Mode::of_postgres(text)),
            "disable, allow, prefer (the default), require, verify-ca, verify-full. The environment variables PGSSLMODE, \
             PGSSLROOTCERT, PGSSLCERT and PGSSLKEY count as with libpq",
        ),
    ),
    (
        "sslrootcert",
        Read(
            |given, text| path(&mut given.ca, text),
            "file with certificates of authorities, by default `~/.postgresql/root.crt`; system: the certificates of the system, with \
             verify-full. With it, require means verify-ca",
        ),
    ),
    ("sslcert", Read(|given, text| path(&mut given.cert, text), OWN_CERTIFICATE)),
    ("sslkey", Read(|given, text| path(&mut given.key, text), OWN_CERTIFICATE)),
    (
        "host",
        Read(
            |given, text| hosts(&mut given.hosts, text),
            "hosts, separated by commas or each in a parameter of its own, with or without a port (`host=a:5432&host=b:5432`), \
             as in the URL; they are tried in this order. A host with a slash is the folder of a socket",
        ),
    ),
    ("hostaddr", Read(|given, text| hosts(&mut given.addresses, text), "addresses, instead of the hosts")),
    ("port", Read(|given, text| ports(&mut given.ports, text), "one port, or as many as there are hosts; 5432")),
    (
        "target_session_attrs",
        Read(
            |given, text| set(&mut given.must_write, must_write(text)),
            "any, or read-write (primary): a server that only reads is not used, and the next host is tried",
        ),
    ),
    ("dbname", Driver("the database")),
    ("user", Driver("the user")),
    ("password", Driver("the password")),
    ("application_name", Driver("the name of the sessions in pg_stat_activity")),
    ("options", Driver("settings of the sessions, as in libpq")),
    ("client_encoding", Read(|_, text| unicode(text), "utf8: connections always use it")),
    ("connect_timeout", Read(|given, text| set(&mut given.connect_timeout, seconds(text)), CONNECT_TIMEOUT)),
    ("keepalives", NoEffect(NOTICED)),
    ("keepalives_idle", NoEffect(NOTICED)),
    ("keepalives_interval", NoEffect(NOTICED)),
    ("keepalives_count", NoEffect(NOTICED)),
    ("tcp_user_timeout", NoEffect(NOTICED)),
    ("sslpassword", Refused(NO_PASSPHRASE)),
    ("sslcrl", Refused("lists of revoked certificates are not supported")),
    ("ssl_ca", Refused("PostgreSQL has sslrootcert")),
    ("ssl_mode", Refused("PostgreSQL has sslmode")),
];

/// A parameter of the URL of a database, for the manual.
#[derive(Clone, Copy, Debug)]
pub struct UrlParameter {
    /// `MySQL and MariaDB` or `PostgreSQL`.
    pub database: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Whether it is honoured, has no effect, or is refused.
    pub what: &'static str,
    /// What it does, why it has no effect, or what to do instead.
    pub about: &'static str,
}

/// All parameters of URLs that Kiln knows, in the order of the manual.
pub fn url_parameters() -> impl Iterator<Item = UrlParameter> {
    let of = |database, table: &'static [(&'static str, Meaning)]| {
        table.iter().map(move |(name, meaning)| {
            let (what, about) = match meaning {
                Read(_, about) | Driver(about) => ("honoured", *about),
                NoEffect(why) => ("no effect", *why),
                Refused(hint) => ("refused", *hint),
            };
            UrlParameter { database, name, what, about }
        })
    };
    of("MySQL and MariaDB", MYSQL).chain(of("PostgreSQL", POSTGRES))
}

/// What the parameters say.
#[derive(Default)]
struct Given {
    ca: Option<PathBuf>,
    capath: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    mode: Option<Mode>,
    disabled: Option<bool>,
    check_host: Option<bool>,
    verify_cert: Option<bool>,
    verify_identity: Option<bool>,
    socket: Option<PathBuf>,
    default_file: Option<PathBuf>,
    default_group: Option<String>,
    connect_timeout: Option<Duration>,
    must_write: Option<bool>,
    hosts: Vec<Host>,
    addresses: Vec<Host>,
    ports: Vec<u16>,
}

/// Where a server of PostgreSQL is. `None`: as the rest of the URL says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Host {
    name: Option<String>,
    port: Option<u16>,
}

impl Host {
    /// `db`, `db:5432`, `[::1]:5432`, `::1` or `/run/postgresql`.
    fn parse(text: &str) -> Result<Self, String> {
        let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':')),
            None if text.matches(':').count() == 1 => text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b))),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("a host is empty".to_owned());
        }
        Ok(Self { name: Some(name.to_owned()), port: port.map(port_of).transpose()? })
    }
}

fn hosts(list: &mut Vec<Host>, text: &str) -> Result<(), String> {
    for host in text.split(',') {
        list.push(Host::parse(host)?);
    }
    Ok(())
}

fn port_of(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("{text:?} is not a port"))
}

fn ports(list: &mut Vec<u16>, text: &str) -> Result<(), String> {
    for port in text.split(',') {
        list.push(port_of(port)?);
    }
    Ok(())
}

fn set<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *place = Some(value?);
    Ok(())
}

fn path(place: &mut Option<PathBuf>, text: &str) -> Result<(), String> {
    *place = Some(in_home(text)?);
    Ok(())
}

/// A path; `~/` is the home directory.
fn in_home(text: &str) -> Result<PathBuf, String> {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        _ if text.is_empty() => Err("it has no value".to_owned()),
        (Some(rest), Some(home)) => Ok(home.join(rest)),
        _ => Ok(PathBuf::from(text)),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "required" => Ok(true),
        "0" | "false" | "no" | "off" | "none" => Ok(false),
        _ => Err(format!("{text:?} is not true or false")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("{text:?} is not a number of seconds from 1 to 86400")),
    }
}

/// Connections always use UTF-8, with all characters.
fn unicode(text: &str) -> Result<(), String> {
    match text.to_lowercase().as_str() {
        "utf8" | "utf-8" | "utf8mb3" | "utf8mb4" => Ok(()),
        _ => Err(format!("Kiln uses UTF-8, not {text:?}")),
    }
}

fn must_write(text: &str) -> Result<bool, String> {
    match text {
        "any" => Ok(false),
        "read-write" | "primary" => Ok(true),
        _ => Err(format!("Kiln writes: use read-write or any, not {text:?}")),
    }
}

/// How long a connection may take if there is another host to try: who waits for it must not wait for all of them.
const HOST_LIMIT: Duration = Duration::from_secs(1);

/// What is demanded of a connection, besides encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demands {
    /// The time limit for opening it, for each host.
    pub(super) connect_timeout: Option<Duration>,
    /// Whether a server that only reads is refused.
    pub(super) must_write: bool,
}

impl Demands {
    /// Opens a connection within the limit.
    pub(super) async fn within<T>(self, open: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
        match self.connect_timeout {
            None => open.await,
            Some(limit) => {
                let timed_out = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
                tokio::time::timeout(limit, open).await.map_err(timed_out)?
            }
        }
    }
}

/// A URL that was read.
#[derive(Clone, Debug)]
pub(super) struct ConnectionUrl {
    /// The URL for the Rust driver: its scheme, and only the parameters that the driver reads.
    pub(super) native: String,
    /// Encryption.
    pub(super) tls: Tls,
    /// What else is demanded of a connection.
    pub(super) demands: Demands,
    /// The parameters that were accepted and have no effect, and why.
    pub(super) without_effect: Vec<(&'static str, &'static str)>,
    /// For PostgreSQL, in the order in which they are tried.
    hosts: Vec<Host>,
    socket: Option<PathBuf>,
    login: DefaultFile,
}

impl ConnectionUrl {
    /// Reads a URL and the files that it names. `variable` reads environment variables: libpq has some for TLS.
    /// Errors name the parameter and never show a password.
    pub(super) fn parse(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let (native, query) = native(url);
        let mut read = Self {
            native,
            tls: Tls::none(),
            demands: Demands::default(),
            without_effect: Vec::new(),
            hosts: Vec::new(),
            socket: None,
            login: DefaultFile::default(),
        };
        let table = match read.native.split_once(':').map(|(scheme, _)| scheme) {
            Some("mysql") => MYSQL,
            Some("postgres") => POSTGRES,
            // The parameters of SQLite are those of its own URLs: the driver refuses unknown ones.
            Some("sqlite") => {
                read.add_query(query.into_iter());
                return Ok(read);
            }
            _ => return Err("not a database that Kiln supports: use postgresql://, mysql:// or sqlite://".to_owned()),
        };
        let mut given = Given::default();
        let mut driver = Vec::new();
        for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = form_urlencoded::parse(pair.as_bytes()).next() else { continue };
            // The Rust driver for MySQL writes `ssl-mode`.
            let name = name.replace('-', "_");
            match table.iter().find(|(known, _)| *known == name) {
                Some((_, Read(read, _))) => {
                    read(&mut given, &value).map_err(|why| format!("parameter {name}: {why}"))?;
                }
                Some((_, Driver(_))) => driver.push(pair),
                Some((known, NoEffect(why))) => read.without_effect.push((known, why)),
                Some((_, Refused(hint))) => return Err(format!("parameter {name} is not supported: {hint}")),
                None => {
                    let known = table.iter().filter(|(_, meaning)| !matches!(meaning, Refused(_)));
                    let known: Vec<&str> = known.map(|(name, _)| *name).collect();
                    return Err(format!("parameter {name} is unknown; the known ones are {}", known.join(", ")));
                }
            }
        }
        read.take_hosts(&given)?;
        read.add_query(driver.into_iter());
        let limit = given.connect_timeout;
        let connect_timeout =
            if read.hosts.len() > 1 { limit.or(Some(HOST_LIMIT)).min(Some(HOST_LIMIT)) } else { limit };
        read.demands = Demands { connect_timeout, must_write: given.must_write.unwrap_or(false) };
        if read.native.starts_with("mysql:") {
            read.login = given.default_values()?;
            read.socket = given.socket.take();
            read.tls = given.mysql_tls()?;
        } else {
            read.tls = given.postgres_tls(variable)?;
        }
        Ok(read)
    }

    /// Several hosts: those of the parameters, or those between `@` and the path. The driver gets a URL with one.
    fn take_hosts(&mut self, given: &Given) -> Result<(), String> {
        let start = self.native.find("//").map_or(0, |at| at + 2);
        let end = self.native[start..].find('/').map_or(self.native.len(), |at| start + at);
        let start = self.native[start..end].rfind('@').map_or(start, |at| start + at + 1);
        let list = self.native[start..end].to_owned();
        let (first, is_list) = list.split_once(',').map_or((list.as_str(), false), |(first, _)| (first, true));
        if self.native.starts_with("mysql:") {
            return if is_list {
                Err("several hosts are not supported with MySQL and MariaDB: put a proxy in front of them".to_owned())
            } else {
                Ok(())
            };
        }
        self.hosts = match (given.addresses.as_slice(), given.hosts.as_slice()) {
            ([], []) if is_list => list.split(',').map(Host::parse).collect::<Result<_, _>>()?,
            ([], []) => vec![Host::default()],
            ([], hosts) => hosts.to_vec(),
            (addresses, _) => addresses.to_vec(),
        };
        // A URL with a user must have a host.
        let first =
            if first.is_empty() && self.hosts.iter().all(|host| host.name.is_some()) { "localhost" } else { first };
        self.native.replace_range(start..end, first);
        match given.ports.as_slice() {
            [] => {}
            [port] => self.hosts.iter_mut().for_each(|host| host.port = host.port.or(Some(*port))),
            ports if ports.len() == self.hosts.len() => {
                self.hosts.iter_mut().zip(ports).for_each(|(host, port)| host.port = Some(*port));
            }
            ports => {
                return Err(format!("parameter port: {} ports for {} hosts", ports.len(), self.hosts.len()));
            }
        }
        Ok(())
    }

    fn add_query<'a>(&mut self, pairs: impl Iterator<Item = &'a str>) {
        for (index, pair) in pairs.enumerate() {
            self.native.push(if index == 0 { '?' } else { '&' });
            self.native.push_str(pair);
        }
    }

    /// The options of a MySQL or MariaDB connection. What the URL does not say is read from the default file.
    pub(super) fn mysql(&self, mut options: MySqlConnectOptions, mode: Mode) -> MySqlConnectOptions {
        let given = Url::parse(&self.native).ok();
        let lacks = |has: fn(&Url) -> bool| !given.as_ref().is_some_and(has);
        if let Some(user) = self.login.user.as_ref().filter(|_| lacks(|url| !url.username().is_empty())) {
            options = options.username(user);
        }
        if let Some(password) = self.login.password.as_ref().filter(|_| lacks(|url| url.password().is_some())) {
            options = options.password(password.expose());
        }
        if let Some(host) =
            self.login.host.as_ref().filter(|_| lacks(|url| url.host_str().is_some_and(|h| !h.is_empty())))
        {
            options = options.host(host);
        }
        if let Some(port) = self.login.port.filter(|_| lacks(|url| url.port().is_some())) {
            options = options.port(port);
        }
        if let Some(database) = self.login.database.as_ref().filter(|_| lacks(|url| url.path().len() > 1)) {
            options = options.database(database);
        }
        if let Some(socket) = &self.socket {
            options = options.socket(socket);
        }
        self.tls.mysql(options, mode)
    }

    /// The options of a PostgreSQL connection to each host.
    pub(super) fn postgres(&self, options: &PgConnectOptions, mode: Mode) -> Vec<PgConnectOptions> {
        let to = |host: &Host| {
            let options = match &host.name {
                None => options.clone(),
                Some(folder) if folder.starts_with('/') => options.clone().socket(folder),
                Some(name) => options.clone().host(name),
            };
            let options = match host.port {
                None => options,
                Some(port) => options.port(port),
            };
            self.tls.postgres(options, mode)
        };
        self.hosts.iter().map(to).collect()
    }
}

/// The URL with a scheme of the Rust drivers and without parameters, and the parameters.
fn native(url: &str) -> (String, Option<&str>) {
    let Some((scheme, rest)) = url.split_once(':') else { return (url.to_owned(), None) };
    let scheme = match scheme.split('+').next().unwrap_or(scheme) {
        "postgresql" => "postgres",
        "mariadb" => "mysql",
        scheme => scheme,
    };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    (format!("{scheme}:{place}"), query)
}

impl Given {
    /// Adds what `read_default_file` says and the URL does not.
    fn default_values(&mut self) -> Result<DefaultFile, String> {
        let Some(file) = &self.default_file else {
            return match &self.default_group {
                Some(_) => Err("parameter read_default_group needs read_default_file".to_owned()),
                None => Ok(DefaultFile::default()),
            };
        };
        let group = self.default_group.as_deref().unwrap_or("client");
        let mut read = DefaultFile::read(file, group).map_err(|why| format!("parameter read_default_file: {why}"))?;
        for (own, other) in [
            (&mut self.ca, &mut read.ssl_ca),
            (&mut self.capath, &mut read.ssl_capath),
            (&mut self.cert, &mut read.ssl_cert),
            (&mut self.key, &mut read.ssl_key),
            (&mut self.socket, &mut read.socket),
        ] {
            *own = own.take().or(other.take());
        }
        Ok(read)
    }

    /// As PyMySQL: an authority alone also checks the host, `ssl_verify_cert` only the certificate, and any other
    /// parameter encrypts without a check. `ssl_mode` is that of mysqlclient.
    fn mysql_tls(&self) -> Result<Tls, String> {
        let checks = [self.check_host, self.verify_cert, self.verify_identity];
        let has_authority = self.ca.is_some() || self.capath.is_some();
        let mode = match self.mode {
            _ if self.disabled == Some(true) => Mode::Disable,
            Some(_) if checks.iter().any(Option::is_some) => {
                return Err("parameter ssl_mode says what is checked: remove ssl_check_hostname, ssl_verify_cert and \
                            ssl_verify_identity"
                    .to_owned());
            }
            Some(mode) => mode,
            None => {
                let host = self.check_host.or(self.verify_identity);
                let host = host.unwrap_or(has_authority && self.verify_cert.is_none());
                match (host, self.verify_cert.unwrap_or(has_authority || host)) {
                    (true, true) => Mode::VerifyFull,
                    (true, false) => {
                        return Err(
                            "parameter ssl_verify_cert: the host name cannot be checked without the certificate"
                                .to_owned(),
                        );
                    }
                    (false, true) => Mode::VerifyCa,
                    (false, false) if has_authority || self.cert.is_some() || self.key.is_some() => Mode::Require,
                    (false, false) if checks.iter().any(Option::is_some) => Mode::Require,
                    (false, false) => Mode::Disable,
                }
            }
        };
        let roots = match (mode.verifies(), &self.ca, &self.capath) {
            (false, ..) => Roots::None,
            (true, Some(file), None) => Roots::of_file("ssl_ca", file)?,
            (true, file, Some(folder)) => Roots::of_folder("ssl_capath", folder, file.as_deref())?,
            (true, None, None) => Roots::of_system()?,
        };
        Tls::new(mode, roots, ("ssl_cert", self.cert.clone()), ("ssl_key", self.key.clone()))
    }

    /// As libpq.
    fn postgres_tls(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Tls, String> {
        let named = |name: &str| variable(name).filter(|text| !text.is_empty());
        let root = self.ca.clone().or_else(|| named("PGSSLROOTCERT").map(PathBuf::from));
        let is_system = root.as_deref() == Some(Path::new("system"));
        let mode = match (self.mode, named("PGSSLMODE")) {
            (Some(mode), _) => mode,
            (None, Some(text)) => Mode::of_postgres(&text).map_err(|why| format!("PGSSLMODE: {why}"))?,
            (None, None) if is_system => Mode::VerifyFull,
            (None, None) => Mode::Prefer,
        };
        if is_system && mode != Mode::VerifyFull {
            return Err("parameter sslmode: sslrootcert=system needs verify-full".to_owned());
        }
        let mode = if mode == Mode::Require && root.is_some() { Mode::VerifyCa } else { mode };
        let usual = || in_home("~/.postgresql/root.crt").ok().filter(|file| file.exists());
        let roots = match (mode.verifies(), root.or_else(usual)) {
            (false, _) => Roots::None,
            (true, _) if is_system => Roots::of_system()?,
            (true, Some(file)) => Roots::of_file("sslrootcert", &file)?,
            (true, None) => {
                return Err(
                    "parameter sslmode: to verify the server, set sslrootcert=FILE, or sslrootcert=system for the \
                            authorities of the system"
                        .to_owned(),
                );
            }
        };
        let cert = self.cert.clone().or_else(|| named("PGSSLCERT").map(PathBuf::from));
        let key = self.key.clone().or_else(|| named("PGSSLKEY").map(PathBuf::from));
        Tls::new(mode, roots, ("sslcert", cert), ("sslkey", key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<ConnectionUrl, String> {
        ConnectionUrl::parse(url, |_| None)
    }

    #[test]
    fn urls_of_heat_are_understood() {
        for (given, native) in [
            ("mysql+pymysql://heat:pw@db/heat?charset=utf8", "mysql://heat:pw@db/heat"),
            ("mysql+pymysql://h:p@db/heat?charset=utf8&ssl-mode=DISABLED", "mysql://h:p@db/heat"),
            ("mariadb+pymysql://h@db/heat", "mysql://h@db/heat"),
            ("postgresql+psycopg2://h:a+b@db:5432/heat", "postgres://h:a+b@db:5432/heat"),
            (
                "postgres://h@db/heat?application_name=a%20b&sslmode=require&port=1",
                "postgres://h@db/heat?application_name=a%20b",
            ),
            ("sqlite:///var/lib/kiln.db?mode=rwc", "sqlite:///var/lib/kiln.db?mode=rwc"),
            ("sqlite::memory:", "sqlite::memory:"),
        ] {
            assert_eq!(parsed(given).unwrap().native, native);
        }
    }

    /// Every parameter, with what it leads to or why it is refused.
    #[test]
    fn every_parameter_is_honoured_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca", "-----BEGIN CERTIFICATE-----");
        write("key", "-----BEGIN PRIVATE KEY-----");
        write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----");
        write("empty", "");
        write("my.cnf", "[client]\nuser=other\n# x\n[kiln]\nuser = u\nssl-ca=DIR/ca\n".replace("DIR", &place).as_str());
        let modes = [
            ("", "Disable"),
            ("ssl_ca=DIR/ca", "VerifyFull"),
            ("ssl_capath=DIR", "VerifyFull"),
            ("ssl_ca=DIR/ca&ssl_verify_cert=true", "VerifyCa"),
            ("ssl_ca=DIR/ca&ssl_verify_cert=true&ssl_verify_identity=1", "VerifyFull"),
            ("ssl_ca=DIR/ca&ssl_verify_cert=false", "Require"),
            ("ssl_ca=DIR/ca&ssl_check_hostname=false", "VerifyCa"),
            ("ssl_ca=DIR/ca&ssl_mode=REQUIRED", "Require"),
            ("ssl_ca=DIR/ca&ssl_disabled=true", "Disable"),
            ("ssl_cert=DIR/ca&ssl_key=DIR/key", "Require"),
            ("ssl_mode=preferred", "Prefer"),
            ("ssl_mode=VERIFY_CA&ssl_ca=DIR/ca", "VerifyCa"),
            ("read_default_file=DIR/my.cnf", "Disable"),
            ("read_default_file=DIR/my.cnf&read_default_group=kiln", "VerifyFull"),
            ("use_unicode=0&binary_prefix=1&local_infile=1&autocommit=1&charset=UTF8MB4&connect_timeout=3", "Disable"),
            ("unix_socket=/run/db", "Disable"),
            ("P", "Prefer"),
            ("Psslmode=disable", "Disable"),
            ("Psslmode=allow", "Allow"),
            ("Psslmode=require", "Require"),
            ("Psslmode=require&sslrootcert=DIR/ca", "VerifyCa"),
            ("Psslmode=verify-full&sslrootcert=DIR/ca&sslcert=DIR/ca&sslkey=DIR/key", "VerifyFull"),
            ("Pclient_encoding=utf8&target_session_attrs=any&connect_timeout=3", "Prefer"),
        ];
        let url = |query: &str| match query.strip_prefix('P') {
            Some(query) => format!("postgresql://u@h/d?{}", query.replace("DIR", &place)),
            None => format!("mysql+pymysql://h/d?{}", query.replace("DIR", &place)),
        };
        for (query, mode) in modes {
            assert_eq!(parsed(&url(query)).map(|url| format!("{:?}", url.tls.mode)), Ok(mode.to_owned()), "{query}");
        }
        let refused = [
            ("ssl_ca=DIR/none", "parameter ssl_ca: DIR/none: "),
            ("ssl_ca=DIR/empty", "parameter ssl_ca: DIR/empty has no certificate"),
            ("ssl_cert=DIR/ca&ssl_key=DIR/locked", "parameter ssl_key: DIR/locked has a passphrase"),
            ("ssl_cert=DIR/ca", "parameter ssl_key: DIR/ca has no private key"),
            ("ssl_key=DIR/key", "parameter ssl_key needs ssl_cert"),
            ("ssl_check_hostname=perhaps", "parameter ssl_check_hostname: "),
            ("ssl_verify_cert=0&ssl_check_hostname=1", "parameter ssl_verify_cert: "),
            ("ssl_mode=VERIFY_CA&ssl_verify_cert=1", "parameter ssl_mode says what is checked"),
            ("ssl_mode=on", "parameter ssl_mode: \"on\" is not "),
            ("read_default_group=kiln", "parameter read_default_group needs read_default_file"),
            ("read_default_file=DIR/none", "parameter read_default_file: DIR/none: "),
            ("charset=latin1", "parameter charset: Kiln uses UTF-8"),
            ("connect_timeout=0", "parameter connect_timeout: "),
            ("sslmode=require", "parameter sslmode is not supported: MySQL and MariaDB have ssl_mode"),
            ("nonsense=1", "parameter nonsense is unknown"),
            ("Psslmode=verify-ca&sslrootcert=DIR/none", "parameter sslrootcert: "),
            ("Psslmode=require&sslrootcert=system", "parameter sslmode: sslrootcert=system needs verify-full"),
            ("Ptarget_session_attrs=standby", "parameter target_session_attrs: Kiln writes"),
            ("Psslmode=REQUIRE", "parameter sslmode: "),
            ("Pssl_ca=DIR/ca", "parameter ssl_ca is not supported: PostgreSQL has sslrootcert"),
        ];
        for (query, why) in refused {
            let error = parsed(&url(query)).unwrap_err().replace(&place, "DIR");
            assert!(error.starts_with(why), "{query}: {error}");
        }
        for (table, start) in [(MYSQL, ""), (POSTGRES, "P")] {
            for (name, _) in table.iter().filter(|(_, meaning)| matches!(meaning, Refused(_))) {
                let error = parsed(&url(&format!("{start}{name}=1"))).unwrap_err();
                assert!(error.starts_with(&format!("parameter {name} is not supported: ")), "{error}");
            }
        }
        let read = parsed(&url("autocommit=1&local-infile=1&connect_timeout=3")).unwrap();
        let names: Vec<&str> = read.without_effect.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["autocommit", "local_infile"]);
        assert_eq!(read.demands.connect_timeout, Some(Duration::from_secs(3)));
        let read = parsed(&url("Pkeepalives=1&keepalives_idle=5&tcp_user_timeout=9")).unwrap();
        assert_eq!(read.without_effect.len(), 3);
        assert!(parsed(&url("Ptarget_session_attrs=read-write")).unwrap().demands.must_write);
    }

    #[test]
    fn the_environment_of_libpq_counts() {
        let mode = |url: &str, variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            ConnectionUrl::parse(url, find).map(|url| url.tls.mode)
        };
        assert_eq!(mode("postgresql://h/d", &[("PGSSLMODE", "require")]), Ok(Mode::Require));
        assert_eq!(mode("postgresql://h/d?sslmode=disable", &[("PGSSLMODE", "require")]), Ok(Mode::Disable));
        assert_eq!(mode("mysql://h/d", &[("PGSSLMODE", "require")]), Ok(Mode::Disable));
    }

    #[test]
    fn a_default_file_fills_what_the_url_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.cnf");
        let text =
            "[client]\nuser = \"u\"\npassword='p#1'\nhost=db\nport=3307\nsocket=/run/db\nskip-name\n[other]\nuser=v\n";
        std::fs::write(&file, text).unwrap();
        let options = |place: &str| {
            let url = parsed(&format!("mysql://{place}?read_default_file={}", file.display())).unwrap();
            let of_url = url.native.parse::<MySqlConnectOptions>().unwrap();
            let options = url.mysql(of_url, Mode::Disable);
            (options.get_username().to_owned(), options.get_host().to_owned(), options.get_port())
        };
        assert_eq!(options("/heat"), ("u".into(), "db".into(), 3307));
        assert_eq!(options("w:x@h:1/heat"), ("w".into(), "h".into(), 1));
    }

    #[test]
    fn several_hosts_are_tried_in_order() {
        let places = |url: &str| {
            let url = parsed(url)?;
            let options = url.postgres(&url.native.parse::<PgConnectOptions>().unwrap(), Mode::Disable);
            let place = |options: &PgConnectOptions| match options.get_socket() {
                Some(folder) => folder.display().to_string(),
                None => format!("{}:{}", options.get_host(), options.get_port()),
            };
            Ok::<_, String>(options.iter().map(place).collect::<Vec<_>>().join(" "))
        };
        for (url, expected) in [
            ("postgresql://u:p@a:1/d", "a:1"),
            ("postgresql://u:p,q@a:1,b,[::1]:3/d?port=9", "a:1 b:9 ::1:3"),
            ("postgresql+psycopg2://u:p@/d?host=a:1&host=b:2", "a:1 b:2"),
            ("postgresql://u@x/d?host=a,b,/run/pg&port=1,2,3", "a:1 b:2 /run/pg"),
            ("postgresql://u@x:7/d?host=a,::1", "a:7 ::1:7"),
            ("postgresql://u@x,y:7/d?hostaddr=10.0.0.1&host=a,b", "10.0.0.1:5432"),
        ] {
            assert_eq!(places(url).as_deref(), Ok(expected), "{url}");
        }
        for (url, why) in [
            ("postgresql://u@a,b,c/d?port=1,2", "parameter port: 2 ports for 3 hosts"),
            ("postgresql://u@a,,c/d", "a host is empty"),
            ("postgresql://u@a/d?host=a:x", "parameter host: \"x\" is not a port"),
            (
                "mysql+pymysql://u@a,b/d",
                "several hosts are not supported with MySQL and MariaDB: put a proxy in front of them",
            ),
        ] {
            assert_eq!(places(url).unwrap_err(), why, "{url}");
        }
        let limit = |url: &str| parsed(url).unwrap().demands.connect_timeout;
        assert_eq!(limit("postgresql://u@a,b/d"), Some(HOST_LIMIT));
        assert_eq!(limit("postgresql://u@a,b/d?connect_timeout=10"), Some(HOST_LIMIT));
        assert_eq!(limit("postgresql://u@a/d"), None);
    }
}
