//! The clients of the cloud's services: sections `[clients]` and `[clients_*]`, with Heat's names.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use kiln_cloud::{Connector, Interface, Options, SharedClient, TlsOptions, Transport};
use kiln_config::option::{CLIENTS, ConfigOption, SERVICES};
use kiln_config::options::{clouds, kiln, stacks};
use kiln_config::{Account, Config};
use url::Url;

use crate::runtime::call_timeout;

/// The largest response of a service, in bytes: the lists of services have pages, and a stack can name a service of its user.
const LARGEST_RESPONSE: usize = 64 << 20;
/// The transport of services without options of their own.
pub fn transport(config: &Config, service: &Account) -> Result<Arc<dyn Transport>> {
    common(config, service)?.transport(CLIENTS)
}

/// The transport to a service with the authorities in a file; `section` is named in errors.
pub(crate) fn trusting(section: &str, ca_file: Option<String>) -> Result<Arc<dyn Transport>> {
    Tls { ca_file, ..Tls::default() }.transport(section)
}

/// The TLS options of `[clients]`, or else of the service's own user.
fn common(config: &Config, service: &Account) -> Result<Tls> {
    Ok(Tls::of(config, CLIENTS)?.or(Tls {
        ca_file: service.cafile.clone(),
        cert_file: service.certfile.clone(),
        key_file: service.keyfile.clone(),
        insecure: Some(service.insecure),
    }))
}

/// A connector to the cloud of the service's own user.
pub fn connector(config: &Config, service: &Account) -> Result<Connector> {
    let url = service.auth_url.clone().or_else(|| config.text(&clouds::WWW_AUTHENTICATE_URI));
    let url = url.ok_or_else(|| anyhow!("[keystone_authtoken] auth_url is not set: set the URL of Keystone"))?;
    let mut options = Options::new(Url::parse(&url).with_context(|| format!("auth_url {url:?}"))?);
    options.region = config.text(&stacks::REGION_NAME_FOR_SERVICES).or_else(|| service.region.clone());
    options.timeout = call_timeout(config)?;
    options.interface = interface(config, CLIENTS)?.unwrap_or(Interface::Public);
    let common = common(config, service)?;
    let mut of_services = HashMap::new();
    for (section, service) in SERVICES {
        if let Some(interface) = interface(config, section)? {
            options.interfaces.insert(service.to_owned(), interface);
        }
        let own = Tls::of(config, section)?;
        if own != Tls::default() {
            of_services.insert(service.to_owned(), own.or(common.clone()).transport(section)?);
        }
    }
    let connector = Connector::with_transports(common.transport(CLIENTS)?, of_services, options);
    let networks = config.list(&kiln::REMOTE_CLOUD_NETWORKS);
    connector.with_remote_networks(&networks).context("[kiln] remote_cloud_networks")
}

fn interface(config: &Config, section: &str) -> Result<Option<Interface>> {
    let given = config.choice(clouds::ENDPOINT_TYPE.of(section))?;
    Ok(given.as_deref().and_then(Interface::parse))
}

/// The TLS options of a section; `None`: not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tls {
    ca_file: Option<String>,
    cert_file: Option<String>,
    key_file: Option<String>,
    insecure: Option<bool>,
}

impl Tls {
    fn of(config: &Config, section: &str) -> Result<Self> {
        let text = |option: &'static ConfigOption| config.text(option.of(section));
        Ok(Self {
            ca_file: text(&clouds::CA_FILE),
            cert_file: text(&clouds::CERT_FILE),
            key_file: text(&clouds::KEY_FILE),
            insecure: config.flag_if_set(clouds::INSECURE.of(section))?,
        })
    }

    /// These options, with unset ones taken from the others.
    fn or(self, other: Self) -> Self {
        // A key belongs to its certificate.
        let (cert_file, key_file) = match self.cert_file {
            Some(own) => (Some(own), self.key_file),
            None => (other.cert_file, self.key_file.or(other.key_file)),
        };
        Self {
            ca_file: self.ca_file.or(other.ca_file),
            cert_file,
            key_file,
            insecure: self.insecure.or(other.insecure),
        }
    }

    fn transport(&self, section: &str) -> Result<Arc<dyn Transport>> {
        let read = |option: &str, file: &Option<String>| match file {
            None => Ok(None),
            Some(path) => match std::fs::read(path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) => bail!("[{section}] {option} {path}: {error}"),
            },
        };
        let key = read("key_file", &self.key_file)?;
        let identity = match read("cert_file", &self.cert_file)? {
            // One file may contain both.
            Some(certificate) => Some([certificate, key.unwrap_or_default()].join(&b'\n')),
            None if key.is_some() => bail!("[{section}] key_file is set, but cert_file is not"),
            None => None,
        };
        let tls = TlsOptions {
            authorities: read("ca_file", &self.ca_file)?,
            identity,
            insecure: self.insecure.unwrap_or_default(),
        };
        let client = SharedClient::new(&tls).map(|client| client.reading_at_most(LARGEST_RESPONSE));
        let files =
            || [&self.ca_file, &self.cert_file, &self.key_file].into_iter().flatten().cloned().collect::<Vec<_>>();
        Ok(Arc::new(client.with_context(|| format!("[{section}] certificates in {}", files().join(", ")))?))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use kiln_cloud::HttpRequest;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::server::WebPkiClientVerifier;
    use rustls::{RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn file(name: &str) -> String {
        format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    /// A service that requires a client certificate of its CA.
    async fn service() -> u16 {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificate = |name: &str| CertificateDer::from_pem_file(file(name)).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.pem")).unwrap();
        let clients = WebPkiClientVerifier::builder(roots.into()).build().unwrap();
        let server = ServerConfig::builder().with_client_cert_verifier(clients);
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let server = server.with_single_cert(vec![certificate("server.pem")], key).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            }
        });
        port
    }

    /// The result of a request with the common options and those of a section.
    async fn ask(port: u16, section: &str, options: &[(&str, &str, &str)]) -> Result<u16> {
        let options: Vec<_> =
            options.iter().map(|(group, option, value)| (*group, *option, (*value).to_owned())).collect();
        let config = Config::of_options(&options);
        let transport = Tls::of(&config, section)?.or(Tls::of(&config, CLIENTS)?).transport(section)?;
        let request = HttpRequest {
            method: Method::GET,
            url: format!("https://localhost:{port}/").parse()?,
            headers: HeaderMap::new(),
            body: None,
            timeout: std::time::Duration::from_secs(10),
        };
        Ok(transport.send(request).await?.status.as_u16())
    }

    #[tokio::test]
    async fn certificates_are_used_for_the_services_they_are_set_for() {
        let port = service().await;
        let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
        let nova = [
            ("clients_nova", "ca_file", &*ca),
            ("clients_nova", "cert_file", &cert),
            ("clients_nova", "key_file", &key),
        ];
        assert_eq!(ask(port, "clients_nova", &nova).await.unwrap(), 204);
        ask(port, "clients_neutron", &nova).await.unwrap_err();
        let [authority, ..] = nova;
        ask(port, "clients_nova", &[authority]).await.unwrap_err();
        let common = [("clients", "cert_file", &*cert), ("clients", "key_file", &key)];
        assert_eq!(ask(port, "clients_nova", &[authority, common[0], common[1]]).await.unwrap(), 204);
        ask(port, "clients_neutron", &common).await.unwrap_err();
        let insecure = ("clients_neutron", "insecure", "true");
        assert_eq!(ask(port, "clients_neutron", &[common[0], common[1], insecure]).await.unwrap(), 204);
    }

    #[tokio::test]
    async fn an_unusable_file_is_named() {
        let error =
            async |options: &[(&str, &str, &str)]| format!("{:#}", ask(1, "clients_nova", options).await.unwrap_err());
        let missing = error(&[("clients_nova", "ca_file", "/nowhere/ca.pem")]).await;
        assert!(missing.starts_with("[clients_nova] ca_file /nowhere/ca.pem: "), "{missing}");
        let key = file("client.key");
        let alone = error(&[("clients_nova", "key_file", &key)]).await;
        assert_eq!(alone, "[clients_nova] key_file is set, but cert_file is not");
        let no_key = error(&[("clients_nova", "cert_file", &file("client.pem"))]).await;
        assert!(no_key.starts_with("[clients_nova] certificates in "), "{no_key}");
    }

    #[test]
    fn the_interface_can_differ_by_service() {
        let options = |given: &[(&str, &str, &str)]| {
            let mut all = vec![("keystone_authtoken", "auth_url", "http://keystone/v3".to_owned())];
            all.extend(given.iter().map(|(group, option, value)| (*group, *option, (*value).to_owned())));
            let config = Config::of_options(&all);
            connector(&config, &config.account("keystone_authtoken").unwrap()).map(|made| made.options().clone())
        };
        let mixed = [("clients", "endpoint_type", "internalURL"), ("clients_swift", "endpoint_type", "public")];
        let mixed = options(&mixed).unwrap();
        assert_eq!((mixed.interface, mixed.interfaces["object-store"]), (Interface::Internal, Interface::Public));
        let wrong = options(&[("clients_nova", "endpoint_type", "privat")]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "[clients_nova] endpoint_type: \"privat\" is not one of public, internal, admin, publicURL, internalURL, adminURL"
        );
    }
}
