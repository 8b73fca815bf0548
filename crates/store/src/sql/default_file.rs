//! An option file of MySQL and MariaDB (`my.cnf`), as PyMySQL reads it: `read_default_file` in a URL.

use std::path::{Path, PathBuf};

use kiln_value::Secret;

/// The options of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct DefaultFile {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret<String>>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) database: Option<String>,
    pub(super) socket: Option<PathBuf>,
    pub(super) ssl_ca: Option<PathBuf>,
    pub(super) ssl_capath: Option<PathBuf>,
    pub(super) ssl_cert: Option<PathBuf>,
    pub(super) ssl_key: Option<PathBuf>,
}

impl DefaultFile {
    /// Reads a group of a file. Options that PyMySQL does not read belong to other programs and are ignored.
    pub(super) fn read(file: &Path, group: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut read = Self::default();
        let mut is_inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_inside = name == group;
            } else if is_inside && !line.starts_with(['#', ';', '!']) {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                let value = value.trim();
                let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
                read.set(&name.trim().replace('_', "-"), quoted.unwrap_or(value))
                    .map_err(|why| format!("{}: {} {why}", file.display(), name.trim()))?;
            }
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let path = || Some(PathBuf::from(value));
        match name {
            "user" => self.user = Some(value.to_owned()),
            "password" => self.password = Some(Secret::new(value.to_owned())),
            "host" => self.host = Some(value.to_owned()),
            "port" => self.port = Some(value.parse().map_err(|_| "is not a port")?),
            "database" => self.database = Some(value.to_owned()),
            "socket" => self.socket = path(),
            "ssl-ca" => self.ssl_ca = path(),
            "ssl-capath" => self.ssl_capath = path(),
            "ssl-cert" => self.ssl_cert = path(),
            "ssl-key" => self.ssl_key = path(),
            "ssl-cipher" | "bind-address" => return Err("is not supported; remove it"),
            "default-character-set" if !value.to_lowercase().starts_with("utf8") => return Err("is not utf8"),
            _ => {}
        }
        Ok(())
    }
}
