//! TLS to RabbitMQ.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use kiln_config::Config;
use kiln_config::options::messages;

/// Connects with the certificates of `[oslo_messaging_rabbit]`: `ssl_ca_file`, `ssl_cert_file`, `ssl_key_file`. The certificate of the
/// server is always verified, by default with the certificates of the system.
pub(super) fn connector(config: &Config) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = config.text(&messages::SSL_CA_FILE) {
        for certificate in certificates(&file)? {
            roots.add(certificate).with_context(|| file.clone())?;
        }
    } else {
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 {
            bail!("[oslo_messaging_rabbit] ssl_ca_file is not set, and the system has no certificates");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = match config.choice(&messages::SSL_VERSION)?.as_deref() {
        Some("TLSv1_2" | "tlsv1_2") => &[&TLS12][..],
        Some("TLSv1_3" | "tlsv1_3") => &[&TLS13],
        _ => rustls::ALL_VERSIONS,
    };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions)?;
    let builder = builder.with_root_certificates(roots);
    let config = match (config.text(&messages::SSL_CERT_FILE), config.text(&messages::SSL_KEY_FILE)) {
        (Some(certificate), Some(key)) => {
            let own = certificates(&certificate)?;
            let key = PrivateKeyDer::from_pem_file(Path::new(&key)).with_context(|| key.clone())?;
            builder.with_client_auth_cert(own, key).with_context(|| certificate.clone())?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => bail!("[oslo_messaging_rabbit] ssl_cert_file and ssl_key_file must be set together"),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.with_context(|| file.to_owned())?;
    if certificates.is_empty() {
        bail!("{file} has no certificate");
    }
    Ok(certificates)
}
