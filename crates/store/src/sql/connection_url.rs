//! The URL of a database: its parameters mean what they mean to PyMySQL, mysqlclient and psycopg.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sea_orm::sqlx;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use url::{Url, form_urlencoded};

use super::default_file::DefaultFile;
use super::tls::{Mode, Roots, Tls};

/// What a parameter does.
enum Meaning {
    /// It is read here.
    Read(fn(&mut Given, &str) -> Result<(), String>),
    /// The driver understands it.
    Driver,
    /// It cannot have an effect: it tunes what Kiln's driver does not have.
    NoEffect,
    /// It is not supported; what to do instead.
    Refused(&'static str),
}

use Meaning::{Driver, NoEffect, Read, Refused};

const NOTICED: &str = "Kiln itself notices connections on which the database is silent; remove it";
const NO_CIPHERS: &str = "TLS 1.2 and 1.3 are used with their AEAD ciphers only; restrict ciphers on the server";

/// The parameters of MySQL and MariaDB.
const MYSQL: &[(&str, Meaning)] = &[
    ("ssl_ca", Read(|given, text| path(&mut given.ca, text))),
    ("ssl_capath", Read(|given, text| path(&mut given.capath, text))),
    ("ssl_cert", Read(|given, text| path(&mut given.cert, text))),
    ("ssl_key", Read(|given, text| path(&mut given.key, text))),
    ("ssl_check_hostname", Read(|given, text| set(&mut given.check_host, flag(text)))),
    ("ssl_verify_cert", Read(|given, text| set(&mut given.verify_cert, flag(text)))),
    ("ssl_verify_identity", Read(|given, text| set(&mut given.verify_identity, flag(text)))),
    ("ssl_mode", Read(|given, text| set(&mut given.mode, Mode::of_mysql(text)))),
    ("ssl_disabled", Read(|given, text| set(&mut given.disabled, flag(text)))),
    ("ssl_cipher", Refused(NO_CIPHERS)),
    ("ssl_key_password", Refused("keys with a passphrase are not supported; use one without")),
    ("ssl", Refused("write ssl_mode=REQUIRED, or ssl_ca=FILE")),
    ("sslmode", Refused("MySQL and MariaDB have ssl_mode")),
    ("unix_socket", Read(|given, text| path(&mut given.socket, text))),
    ("read_default_file", Read(|given, text| path(&mut given.default_file, text))),
    ("read_default_group", Read(|given, text| set(&mut given.default_group, Ok(text.to_owned())))),
    ("bind_address", Refused("the system chooses the local address; remove it")),
    ("charset", Read(|_, text| unicode(text))),
    ("connect_timeout", Read(|given, text| set(&mut given.connect_timeout, seconds(text)))),
    ("read_timeout", Refused(NOTICED)),
    ("write_timeout", Refused(NOTICED)),
    ("use_unicode", NoEffect),
    ("binary_prefix", NoEffect),
    ("local_infile", NoEffect),
    ("autocommit", NoEffect),
];

/// The parameters of PostgreSQL.
const POSTGRES: &[(&str, Meaning)] = &[
    ("sslmode", Read(|given, text| set(&mut given.mode, Mode::of_postgres(text)))),
    ("sslrootcert", Read(|given, text| path(&mut given.ca, text))),
    ("sslcert", Read(|given, text| path(&mut given.cert, text))),
    ("sslkey", Read(|given, text| path(&mut given.key, text))),
    ("sslpassword", Refused("keys with a passphrase are not supported; use one without")),
    ("sslcrl", Refused("lists of revoked certificates are not supported")),
    ("ssl_ca", Refused("PostgreSQL has sslrootcert")),
    ("ssl_mode", Refused("PostgreSQL has sslmode")),
    ("host", Driver),
    ("hostaddr", Driver),
    ("port", Driver),
    ("dbname", Driver),
    ("user", Driver),
    ("password", Driver),
    ("application_name", Driver),
    ("options", Driver),
    ("client_encoding", Read(|_, text| unicode(text))),
    ("connect_timeout", Read(|given, text| set(&mut given.connect_timeout, seconds(text)))),
    ("target_session_attrs", Read(|given, text| set(&mut given.must_write, must_write(text)))),
    ("keepalives", Refused(NOTICED)),
    ("keepalives_idle", Refused(NOTICED)),
    ("keepalives_interval", Refused(NOTICED)),
    ("keepalives_count", Refused(NOTICED)),
    ("tcp_user_timeout", Refused(NOTICED)),
];

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

/// What is demanded of a connection, besides encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demands {
    /// The time limit for opening it.
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
    /// The parameters that were accepted and have no effect.
    pub(super) without_effect: Vec<&'static str>,
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
                Some((_, Read(read))) => read(&mut given, &value).map_err(|why| format!("parameter {name}: {why}"))?,
                Some((_, Driver)) => driver.push(pair),
                Some((known, NoEffect)) => read.without_effect.push(known),
                Some((_, Refused(hint))) => return Err(format!("parameter {name} is not supported: {hint}")),
                None => {
                    let known = table.iter().filter(|(_, meaning)| !matches!(meaning, Refused(_)));
                    let known: Vec<&str> = known.map(|(name, _)| *name).collect();
                    return Err(format!("parameter {name} is unknown; the known ones are {}", known.join(", ")));
                }
            }
        }
        read.add_query(driver.into_iter());
        read.demands =
            Demands { connect_timeout: given.connect_timeout, must_write: given.must_write.unwrap_or(false) };
        if read.native.starts_with("mysql:") {
            read.login = given.default_values()?;
            read.socket = given.socket.take();
            read.tls = given.mysql_tls()?;
        } else {
            read.tls = given.postgres_tls(variable)?;
        }
        Ok(read)
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

    /// The options of a PostgreSQL connection.
    pub(super) fn postgres(&self, options: PgConnectOptions, mode: Mode) -> PgConnectOptions {
        self.tls.postgres(options, mode)
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
                "postgres://h@db/heat?application_name=a%20b&port=1",
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
        assert_eq!(
            (read.without_effect, read.demands.connect_timeout),
            (vec!["autocommit", "local_infile"], Some(Duration::from_secs(3)))
        );
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
    fn the_manual_has_every_parameter() {
        let page = include_str!("../../../../docs/operating.md");
        for (name, _) in MYSQL.iter().chain(POSTGRES) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
