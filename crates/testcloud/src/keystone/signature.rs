//! Signatures of AWS, versions 2 and 4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Characters that are not escaped.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// The data that a signature covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedCall<'a> {
    pub(super) verb: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) params: &'a BTreeMap<String, String>,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) body_hash: &'a str,
}

/// Version 2.
pub(super) fn signature_2(call: &SignedCall<'_>, secret: &str) -> String {
    let text = format!("{}\n{}\n{}\n{}", call.verb, call.host, call.path, query(call.params));
    let digest = if call.params.get("SignatureMethod").is_some_and(|method| method == "HmacSHA256") {
        sha256(secret.as_bytes(), &text)
    } else {
        Hmac::<Sha1>::new_from_slice(secret.as_bytes())
            .map(|mac| mac.chain_update(text).finalize().into_bytes().to_vec())
            .unwrap_or_default()
    };
    STANDARD.encode(digest)
}

/// Version 4; `None` if a part is missing.
pub(super) fn signature_4(call: &SignedCall<'_>, secret: &str) -> Option<String> {
    let header = |name: &str| {
        let mut headers = call.headers.iter();
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let field = |name: &str| {
        let authorization = header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
        let fields = authorization.split(',').filter_map(|field| field.trim().split_once('='));
        fields.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    };
    let param = |name: &str| call.params.get(name).map(String::as_str);
    let credential = param("X-Amz-Credential").or_else(|| field("Credential"))?;
    let signed = param("X-Amz-SignedHeaders").or_else(|| field("SignedHeaders"))?;
    let date = param("X-Amz-Date").or_else(|| header("x-amz-date"))?;
    let (_, scope) = credential.split_once('/')?;
    let names = signed.split(';').map(|name| {
        let value = if name == "host" { Some(call.host) } else { header(name) };
        value.map(|value| format!("{name}:{value}\n"))
    });
    let headers = names.collect::<Option<String>>()?;
    // The parameters of a form are in the body.
    let query = if call.verb == "POST" { String::new() } else { query(call.params) };
    let hash = header("x-amz-content-sha256").unwrap_or(call.body_hash);
    let request = format!("{}\n{}\n{query}\n{headers}\n{signed}\n{hash}", call.verb, call.path);
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| sha256(&key, part));
    Some(hex(&sha256(&key, &text)))
}

fn query(params: &BTreeMap<String, String>) -> String {
    let escape = |text| utf8_percent_encode(text, UNRESERVED);
    let pairs = params.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn sha256(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key);
    mac.map(|mac| mac.chain_update(text).finalize().into_bytes().to_vec()).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The example in the documentation of AWS.
    #[test]
    fn version_2() {
        let params = map(&[
            ("AWSAccessKeyId", "AKIAIOSFODNN7EXAMPLE"),
            ("Action", "DescribeJobFlows"),
            ("SignatureMethod", "HmacSHA256"),
            ("SignatureVersion", "2"),
            ("Timestamp", "2011-10-03T15:19:30"),
            ("Version", "2009-03-31"),
        ]);
        let call = SignedCall {
            verb: "GET",
            host: "elasticmapreduce.amazonaws.com",
            path: "/",
            params: &params,
            headers: &BTreeMap::new(),
            body_hash: "",
        };
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        assert_eq!(signature_2(&call, secret), "i91nKc4PWAt0JJIdXwz9HxZCJDdiy6cf/Mj6vPxyYIs=");
    }

    /// The request `get-vanilla` of the test suite of AWS.
    #[test]
    fn version_4() {
        let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=unknown");
        let headers = map(&[("Authorization", &authorization), ("X-Amz-Date", "20150830T123600Z")]);
        let call = SignedCall {
            verb: "GET",
            host: "example.amazonaws.com",
            path: "/",
            params: &BTreeMap::new(),
            headers: &headers,
            body_hash: &hex(&Sha256::digest("")),
        };
        let signature = signature_4(&call, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let expected = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(signature.as_deref(), Some(expected));
    }
}
