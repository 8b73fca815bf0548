//! TLS to PostgreSQL, MySQL and MariaDB: what is encrypted, whom a connection trusts, and how it shows itself.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::{CertificateError, Error as TlsError};
use sea_orm::sqlx;
use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sea_orm::sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSslMode};
use sea_orm::{ConnectionTrait as _, Statement};

use super::connection::Place;
use super::dialect::Dialect;
use super::pool::Pool;
use super::statement_retry::Fault;

/// Which connections are encrypted, and what of the server's certificate is checked: the modes of libpq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Never encrypted.
    Disable,
    /// Encrypted only if the server demands it.
    Allow,
    /// Encrypted if the server can.
    Prefer,
    /// Always encrypted, by whomever.
    Require,
    /// Encrypted by a server whose certificate a known authority has signed.
    VerifyCa,
    /// The same, for the host of the URL.
    VerifyFull,
}

impl Mode {
    /// `sslmode` of libpq.
    pub(super) fn of_postgres(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" => Self::Allow,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return Err(format!("{text:?} is not disable, allow, prefer, require, verify-ca or verify-full")),
        })
    }

    /// `ssl_mode` of mysqlclient.
    pub(super) fn of_mysql(text: &str) -> Result<Self, String> {
        Ok(match text.to_uppercase().as_str() {
            "DISABLED" => Self::Disable,
            "PREFERRED" => Self::Prefer,
            "REQUIRED" => Self::Require,
            "VERIFY_CA" => Self::VerifyCa,
            "VERIFY_IDENTITY" => Self::VerifyFull,
            _ => return Err(format!("{text:?} is not DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")),
        })
    }

    /// Whether the certificate is verified.
    pub(super) fn verifies(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyFull)
    }

    /// What to try one after the other, until the server takes it.
    pub(super) fn attempts(self) -> &'static [Self] {
        match self {
            Self::Disable => &[Self::Disable],
            Self::Allow => &[Self::Disable, Self::Require],
            Self::Prefer => &[Self::Prefer, Self::Disable],
            Self::Require => &[Self::Require],
            Self::VerifyCa => &[Self::VerifyCa],
            Self::VerifyFull => &[Self::VerifyFull],
        }
    }
}

/// The authorities that may have signed the certificate of the server.
#[derive(Clone, Debug)]
pub(super) enum Roots {
    /// Nothing is verified.
    None,
    /// A file, which every new connection reads.
    File(PathBuf),
    /// Certificates as PEM.
    Pem(Vec<u8>),
}

impl Roots {
    /// The certificates of a file.
    pub(super) fn of_file(parameter: &str, file: &Path) -> Result<Self, String> {
        let read = content(parameter, file)?;
        if !has_certificate(&read) {
            return Err(format!("parameter {parameter}: {} has no certificate", file.display()));
        }
        Ok(Self::File(file.to_owned()))
    }

    /// The certificates of all files of a folder, and of a file.
    pub(super) fn of_folder(parameter: &str, folder: &Path, file: Option<&Path>) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("parameter {parameter}: {}: {error}", folder.display());
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(failed)?;
        files.retain(|file| file.is_file());
        files.extend(file.map(Path::to_owned));
        let mut all = Vec::new();
        for file in &files {
            let read = content(parameter, file)?;
            if has_certificate(&read) {
                all.extend(read);
                all.push(b'\n');
            }
        }
        if all.is_empty() {
            return Err(format!("parameter {parameter}: {} has no file with a certificate", folder.display()));
        }
        Ok(Self::Pem(all))
    }

    /// The authorities of the system.
    pub(super) fn of_system() -> Result<Self, String> {
        let certificates = rustls_native_certs::load_native_certs().certs;
        if certificates.is_empty() {
            return Err("the system has no certificates of authorities: name a file of them".to_owned());
        }
        let pem = certificates.iter().map(|der| {
            let text = BASE64_STANDARD.encode(der);
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        });
        Ok(Self::Pem(pem.collect::<String>().into_bytes()))
    }
}

fn content(parameter: &str, file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("parameter {parameter}: {}: {error}", file.display()))
}

fn has_certificate(pem: &[u8]) -> bool {
    contains(pem, "-----BEGIN CERTIFICATE-----")
}

fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The encryption of connections.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    /// What is wanted.
    pub(super) mode: Mode,
    roots: Roots,
    /// Own certificate and key, if the server wants them.
    own: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Plain text.
    pub(super) fn none() -> Self {
        Self { mode: Mode::Disable, roots: Roots::None, own: None }
    }

    /// With an own certificate and key, each with the name of its parameter.
    pub(super) fn new(
        mode: Mode,
        roots: Roots,
        cert: (&str, Option<PathBuf>),
        key: (&str, Option<PathBuf>),
    ) -> Result<Self, String> {
        let own = match (cert.1, key.1) {
            (None, None) => None,
            // Both may be in one file, as in PyMySQL.
            (Some(file), other) => {
                if !has_certificate(&content(cert.0, &file)?) {
                    return Err(format!("parameter {}: {} has no certificate", cert.0, file.display()));
                }
                let key_file = other.unwrap_or_else(|| file.clone());
                let read = content(key.0, &key_file)?;
                if contains(&read, "ENCRYPTED") {
                    return Err(format!("parameter {}: {} has a passphrase", key.0, key_file.display()));
                }
                if !contains(&read, "PRIVATE KEY-----") {
                    return Err(format!("parameter {}: {} has no private key", key.0, key_file.display()));
                }
                Some((file, key_file))
            }
            (None, Some(_)) => return Err(format!("parameter {} needs {}", key.0, cert.0)),
        };
        Ok(Self { mode, roots, own })
    }

    pub(super) fn mysql(&self, options: MySqlConnectOptions, mode: Mode) -> MySqlConnectOptions {
        let options = options.ssl_mode(match mode {
            Mode::Disable | Mode::Allow => MySqlSslMode::Disabled,
            Mode::Prefer => MySqlSslMode::Preferred,
            Mode::Require => MySqlSslMode::Required,
            Mode::VerifyCa => MySqlSslMode::VerifyCa,
            Mode::VerifyFull => MySqlSslMode::VerifyIdentity,
        });
        self.certificates(
            options,
            |options, file| options.ssl_ca(file),
            MySqlConnectOptions::ssl_ca_from_pem,
            |options, cert, key| options.ssl_client_cert(cert).ssl_client_key(key),
        )
    }

    pub(super) fn postgres(&self, options: PgConnectOptions, mode: Mode) -> PgConnectOptions {
        // As with libpq, a socket is never encrypted.
        let mode = if options.get_socket().is_some() { Mode::Disable } else { mode };
        let options = options.ssl_mode(match mode {
            Mode::Disable | Mode::Allow => PgSslMode::Disable,
            Mode::Prefer => PgSslMode::Prefer,
            Mode::Require => PgSslMode::Require,
            Mode::VerifyCa => PgSslMode::VerifyCa,
            Mode::VerifyFull => PgSslMode::VerifyFull,
        });
        self.certificates(
            options,
            |options, file| options.ssl_root_cert(file),
            PgConnectOptions::ssl_root_cert_from_pem,
            |options, cert, key| options.ssl_client_cert(cert).ssl_client_key(key),
        )
    }

    /// Adds the authorities and the own certificate to the options of a driver.
    fn certificates<O>(
        &self,
        options: O,
        of_file: fn(O, &Path) -> O,
        of_pem: fn(O, Vec<u8>) -> O,
        own: fn(O, &Path, &Path) -> O,
    ) -> O {
        let options = match &self.roots {
            Roots::None => options,
            Roots::File(file) => of_file(options, file),
            Roots::Pem(pem) => of_pem(options, pem.clone()),
        };
        match &self.own {
            None => options,
            Some((cert, key)) => own(options, cert, key),
        }
    }
}

/// Why a connection with these demands on encryption cannot be made: the server and the client do not agree, which another
/// attempt does not change. `None`: it failed for another reason.
pub(super) fn disagreement(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Tls(error) => Some(match error.to_string() {
            text if text.contains("does not support TLS") => "the server does not offer TLS".to_owned(),
            text => text,
        }),
        sqlx::Error::Io(error) => {
            let error: &TlsError = error.get_ref()?.downcast_ref()?;
            Some(match error {
                TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    "no authority that is trusted has signed the certificate of the server".to_owned()
                }
                TlsError::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                ) => format!("the certificate of the server is for another host: {error}"),
                error => error.to_string(),
            })
        }
        // The server refuses this user, host and database, with or without encryption.
        sqlx::Error::Database(error) => {
            let error = error.try_downcast_ref::<PgDatabaseError>().filter(|error| error.code() == "28000")?;
            Some(error.message().to_owned())
        }
        _ => None,
    }
}

/// Whether a connection is encrypted, and how, by what the server says and by what was demanded of it.
pub(super) async fn encryption(db: &Pool, dialect: Dialect) -> Result<Option<String>, Fault> {
    let (name, query) = match dialect {
        Dialect::Sqlite => return Ok(None),
        Dialect::Postgres => (
            "PostgreSQL",
            "SELECT 'version', version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl \
             UNION ALL SELECT 'cipher', cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl",
        ),
        Dialect::MariaDb | Dialect::MySql => {
            ("MariaDB or MySQL", "SHOW SESSION STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher')")
        }
    };
    let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), query)).await?;
    let mut words: Vec<String> = rows.iter().map(|row| row.try_get_by_index(1)).collect::<Result<_, _>>()?;
    words.retain(|word| !word.is_empty());
    // The version first.
    words.sort_by_key(|word| !word.starts_with("TLSv"));
    if words.is_empty() {
        return Ok(Some(format!("{name}, not encrypted")));
    }
    let checked = match demanded(db) {
        Mode::VerifyFull => "certificate and host name are verified",
        Mode::VerifyCa => "the certificate is verified, the host name is not",
        _ => "the certificate is not verified",
    };
    Ok(Some(format!("{name}, encrypted with {}; {checked}", words.join(" "))))
}

/// What the connections of a pool demand.
fn demanded(db: &Pool) -> Mode {
    match db.place() {
        Place::Postgres { hosts, .. } => match hosts.first().map(PgConnectOptions::get_ssl_mode) {
            Some(PgSslMode::VerifyFull) => Mode::VerifyFull,
            Some(PgSslMode::VerifyCa) => Mode::VerifyCa,
            _ => Mode::Require,
        },
        Place::MySql { options, .. } => match options.get_ssl_mode() {
            MySqlSslMode::VerifyIdentity => Mode::VerifyFull,
            MySqlSslMode::VerifyCa => Mode::VerifyCa,
            _ => Mode::Require,
        },
        Place::Sqlite { .. } => Mode::Disable,
    }
}
