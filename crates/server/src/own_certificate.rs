//! The certificate of an API that serves HTTPS itself: `cert_file` and `key_file` of its section, read again when they
//! change and on SIGHUP. Connections that exist keep the certificate with which they began.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use kiln_config::Config;
use kiln_config::option::ConfigOption;
use kiln_config::options::server;
use kiln_value::Chain;
use kiln_web::Tls;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::certificate;
use crate::runtime;

/// Interval at which the files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// The options of the APIs, as `(cert_file, key_file)`.
pub const OF_APIS: [(&ConfigOption, &ConfigOption); 2] =
    [(&server::API_CERT_FILE, &server::API_KEY_FILE), (&server::CFN_CERT_FILE, &server::CFN_KEY_FILE)];

/// The files with a certificate and its key.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The section of the options.
    pub section: &'static str,
    certificate: PathBuf,
    key: PathBuf,
}

/// What shows that a file has changed: time, length and number.
type FileState = Option<(SystemTime, u64, u64)>;

impl CertificateFiles {
    /// The files of an API; none if it serves HTTP. As in Heat, both options must be set or none.
    pub fn of(config: &Config, certificate: &'static ConfigOption, key: &'static ConfigOption) -> Result<Option<Self>> {
        let section = certificate.section();
        match (config.text(certificate), config.text(key)) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                Ok(Some(Self { section, certificate: certificate.into(), key: key.into() }))
            }
            (Some(_), None) => bail!("[{section}] key_file is not set, but cert_file is"),
            (None, Some(_)) => bail!("[{section}] cert_file is not set, but key_file is"),
        }
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        let place = || format!("[{}] cert_file {}", self.section, self.certificate.display());
        let file = File::open(&self.certificate).with_context(place)?;
        let chain: Vec<_> =
            CertificateDer::pem_reader_iter(BufReader::new(file)).collect::<Result<_, _>>().with_context(place)?;
        if chain.is_empty() {
            bail!("{}: no certificate in PEM format", place());
        }
        Ok(chain)
    }

    /// When the certificate expires.
    pub fn expiry(&self) -> Result<Timestamp> {
        let chain = self.chain()?;
        let end = chain.first().and_then(|certificate| certificate::not_after(certificate));
        end.with_context(|| format!("[{}] cert_file {}: it cannot be read", self.section, self.certificate.display()))
    }

    /// The configuration of TLS with the files as they are now; it checks that they belong together.
    pub fn read(&self) -> Result<Arc<ServerConfig>> {
        let chain = self.chain()?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .with_context(|| format!("[{}] key_file {}", self.section, self.key.display()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).with_context(|| {
            format!("[{}] cert_file {}, key_file {}", self.section, self.certificate.display(), self.key.display())
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Reads the files, and again when they change and on SIGHUP, while somebody has the result. Files that are not
    /// valid are only logged: the former certificate stays in use.
    pub fn follow(self) -> Result<Tls> {
        let mut hangups = signal(SignalKind::hangup())?;
        let mut seen = self.state();
        let (sender, tls) = watch::channel(self.read()?);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    received = hangups.recv() => if received.is_none() { return },
                    () = tokio::time::sleep(LOOK) => if self.state() == seen { continue },
                }
                seen = self.state();
                self.renew(&sender);
            }
        });
        Ok(tls)
    }

    fn renew(&self, sender: &watch::Sender<Arc<ServerConfig>>) {
        let section = self.section;
        match self.read().and_then(|config| Ok((config, self.expiry()?))) {
            Ok((config, end)) => {
                sender.send_replace(config);
                tracing::info!(section, valid_until = %end, "the certificate was read again");
                if end < runtime::now() {
                    tracing::warn!(section, "the certificate has expired");
                }
            }
            Err(error) => {
                tracing::error!("the certificate is not valid, the former one stays in use: {}", Chain(&*error));
            }
        }
    }

    fn state(&self) -> [FileState; 2] {
        [&self.certificate, &self.key].map(|file| {
            let about = std::fs::metadata(file).ok()?;
            Some((about.modified().ok()?, about.len(), about.ino()))
        })
    }
}

/// Reads the certificates of all APIs once.
pub fn check(config: &Config) -> Result<()> {
    for (certificate, key) in OF_APIS {
        if let Some(files) = CertificateFiles::of(config, certificate, key)? {
            files.read()?;
        }
    }
    Ok(())
}
