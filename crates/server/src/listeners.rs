//! The sockets on which the APIs listen: TCP, with TLS if there is a certificate, and sockets of the file system.

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kiln_config::Config;
use kiln_config::option::ConfigOption;
use kiln_config::options::{kiln, server};
use kiln_web::{Listener, Tls};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::own_certificate::CertificateFiles;
use crate::passed_sockets::PassedSockets;

/// Heat's port of the CloudFormation API.
const CFN_PORT: u16 = 8000;

/// The sockets of a service.
pub struct Listeners {
    /// The REST API.
    pub api: kiln_web::Listeners,
    /// The CloudFormation API.
    pub cfn: Option<kiln_web::Listeners>,
    /// The metrics.
    pub metrics: Option<TcpListener>,
    /// Removed when the service ends.
    files: Vec<SocketFile>,
}

impl From<TcpListener> for Listeners {
    fn from(api: TcpListener) -> Self {
        Self { api: api.into(), cfn: None, metrics: None, files: Vec::new() }
    }
}

impl Listeners {
    /// The sockets of a configuration. `host` and `port` take precedence over `[heat_api] bind_host` and `bind_port`. An API whose
    /// sockets systemd has passed binds no port.
    pub async fn of(config: &Config, host: Option<&str>, port: Option<u16>) -> Result<Self> {
        let has_tcp = config.flag(&kiln::TCP)?;
        if !has_tcp && (host.is_some() || port.is_some()) {
            bail!("[kiln] tcp is false: --bind-host and --bind-port have no effect");
        }
        let host = host.map_or_else(|| config.text(&server::API_BIND_HOST).unwrap_or_default(), str::to_owned);
        let port = port.map_or_else(|| config.number(&server::API_BIND_PORT), Ok)?;
        let mode = mode(config)?;
        let mut files = Vec::new();
        let mut passed = PassedSockets::take()?;
        let has_api = has_tcp || passed.has_api();
        let api_tls = if has_api { tls(config, &server::API_CERT_FILE, &server::API_KEY_FILE)? } else { None };
        let mut api = passed.api(api_tls.as_ref());
        if has_tcp && api.is_empty() {
            let socket = TcpListener::bind((host.as_str(), port)).await;
            let socket = socket
                .with_context(|| format!("cannot listen on {host} port {port} ([heat_api] bind_host, bind_port)"))?;
            api.push(Listener::from(socket).with_tls(api_tls));
        }
        if let Some((socket, file)) = unix(config, &kiln::API_SOCKET, mode).await? {
            api.push(socket.into());
            files.push(file);
        }
        if api.is_empty() {
            bail!("[kiln] api_socket is not set, but tcp is false");
        }
        let mut cfn = Vec::new();
        if config.flag(&kiln::CFN_API)? {
            let has_cfn = has_tcp || passed.has_cfn();
            let cfn_tls = if has_cfn { tls(config, &server::CFN_CERT_FILE, &server::CFN_KEY_FILE)? } else { None };
            cfn = passed.cfn(cfn_tls.as_ref());
            if has_tcp && cfn.is_empty() {
                let socket = cfn_tcp(config, &host, port).await?;
                cfn.push(Listener::from(socket).with_tls(cfn_tls));
            }
            if let Some((socket, file)) = unix(config, &kiln::CFN_SOCKET, mode).await? {
                cfn.push(socket.into());
                files.push(file);
            }
            if cfn.is_empty() {
                tracing::warn!("the CloudFormation API is not served: set [kiln] cfn_socket, or cfn_api = false");
            }
        } else if passed.has_cfn() {
            bail!("[kiln] cfn_api is false, but systemd has passed a socket for it");
        }
        let cfn = (!cfn.is_empty()).then(|| cfn.into());
        Ok(Self { api: api.into(), cfn, metrics: None, files })
    }

    /// The files of the sockets: they are removed when the result is dropped.
    pub fn take_files(&mut self) -> Vec<SocketFile> {
        std::mem::take(&mut self.files)
    }
}

fn tls(config: &Config, certificate: &'static ConfigOption, key: &'static ConfigOption) -> Result<Option<Tls>> {
    CertificateFiles::of(config, certificate, key)?.map(CertificateFiles::follow).transpose()
}

/// The TCP socket of the CloudFormation API. Servers send their signals to it, so a service does not start without it.
async fn cfn_tcp(config: &Config, api_host: &str, api_port: u16) -> Result<TcpListener> {
    let host = config.text(&server::CFN_BIND_HOST).unwrap_or_else(|| api_host.to_owned());
    let given = config.given_number(&server::CFN_BIND_PORT)?;
    let port = given.unwrap_or(if api_port == 0 { 0 } else { CFN_PORT });
    TcpListener::bind((host.as_str(), port)).await.with_context(|| {
        format!(
            "cannot listen on {host} port {port} for the CloudFormation API: set [heat_api_cfn] bind_host and bind_port, \
             or [kiln] cfn_api = false"
        )
    })
}

/// Checks the options without listening.
pub fn check(config: &Config) -> Result<()> {
    mode(config)?;
    if !config.flag(&kiln::TCP)? && !config.is_set(&kiln::API_SOCKET) {
        bail!("[kiln] api_socket is not set, but tcp is false");
    }
    Ok(())
}

fn mode(config: &Config) -> Result<u32> {
    let text = config.text(&kiln::SOCKET_MODE).unwrap_or_default();
    let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.with_context(|| format!("[kiln] socket_mode: {text:?} is not an octal number up to 777"))
}

/// A socket of the file system, if the option is set. The file of a process that has ended is replaced.
async fn unix(config: &Config, option: &'static ConfigOption, mode: u32) -> Result<Option<(UnixListener, SocketFile)>> {
    let Some(path) = config.text(option).map(PathBuf::from) else { return Ok(None) };
    let place = || format!("cannot listen on {} ([kiln] {})", path.display(), option.name());
    if std::fs::symlink_metadata(&path).is_ok_and(|about| about.file_type().is_socket()) {
        if UnixStream::connect(&path).await.is_ok() {
            bail!("{}: another process listens there", place());
        }
        std::fs::remove_file(&path).with_context(place)?;
    }
    let socket = UnixListener::bind(&path).with_context(place)?;
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).with_context(place)?;
    let file = SocketFile::of(path.clone()).with_context(place)?;
    Ok(Some((socket, file)))
}

/// The file of a socket, removed on drop, unless another process has made a new one.
pub struct SocketFile {
    path: PathBuf,
    number: u64,
}

impl SocketFile {
    fn of(path: PathBuf) -> std::io::Result<Self> {
        let number = number(&path)?;
        Ok(Self { path, number })
    }
}

fn number(path: &Path) -> std::io::Result<u64> {
    std::fs::symlink_metadata(path).map(|about| about.ino())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if number(&self.path).is_ok_and(|number| number == self.number)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, file = %self.path.display(), "the socket cannot be removed");
        }
    }
}
