//! When the certificate of a server expires.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use jiff::civil::DateTime;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

/// The time after which the certificate of an https URL is not valid. It is not verified: that is done by the calls.
pub async fn expiry(url: &Url) -> Result<Timestamp> {
    let host = url.host_str().context("the URL has no host")?.trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let seen = Arc::new(Recorder::default());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let verifier = Arc::<Recorder>::clone(&seen);
    let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    let name = ServerName::try_from(host)?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let certificate = seen.certificate.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A server that requires a client certificate ends the connection after it has shown its own.
    let certificate = certificate.ok_or_else(|| match connected {
        Ok(_) => anyhow!("the server has no certificate"),
        Err(error) => error.into(),
    })?;
    not_after(&certificate).context("the certificate cannot be read")
}

/// Accepts every certificate and keeps the last one.
#[derive(Debug, Default)]
struct Recorder {
    certificate: Mutex<Option<Vec<u8>>>,
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.certificate.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_entity.to_vec());
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider: CryptoProvider = rustls::crypto::ring::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}

/// `notAfter` of an X.509 certificate in DER (RFC 5280, 4.1).
pub fn not_after(der: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(der)?;
    let (_, mut body, _) = element(certificate)?;
    if element(body)?.0 == VERSION {
        body = element(body)?.2;
    }
    // serialNumber, signature, issuer
    for _ in 0..3 {
        body = element(body)?.2;
    }
    let (tag, validity, _) = element(body)?;
    let (_, _, rest) = element(validity)?;
    let (kind, text, _) = element(rest)?;
    (tag == SEQUENCE).then(|| time(kind, std::str::from_utf8(text).ok()?))?
}

/// Tag, content and what follows of a DER element.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f).min(8))?;
        (bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// UTCTime (two digits of the year: 1950 to 2049) or GeneralizedTime.
fn time(kind: u8, text: &str) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    let digits = text.strip_suffix('Z')?;
    let full = match kind {
        UTC_TIME => format!("{}{digits}", if digits.get(..2)? < "50" { "20" } else { "19" }),
        _ => digits.to_owned(),
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", full).ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_found() {
        let file = format!("{}/tests/data/tls/server.pem", env!("CARGO_MANIFEST_DIR"));
        let certificate = CertificateDer::from_pem_file(file).unwrap();
        // openssl x509 -enddate -noout -in server.pem
        assert_eq!(not_after(&certificate).unwrap().to_string(), "2126-10-29T11:05:14Z");
        assert_eq!(not_after(&certificate[..40]), None);
    }

    #[test]
    fn both_forms_of_times_are_read() {
        assert_eq!(time(0x17, "491231235959Z").unwrap().to_string(), "2049-12-31T23:59:59Z");
        assert_eq!(time(0x17, "500101000000Z").unwrap().to_string(), "1950-01-01T00:00:00Z");
        assert_eq!(time(0x18, "20500101000000Z").unwrap().to_string(), "2050-01-01T00:00:00Z");
        assert_eq!(time(0x18, "2050"), None);
    }
}
