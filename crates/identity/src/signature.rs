//! Requests that are signed with an EC2 key, as clients of AWS send them: signature version 2 in the parameters, or
//! version 4 in the parameters or the header `Authorization`.
//!
//! Only Keystone knows the secret keys: it gets the signature with all data that it covers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use http::Method;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use kiln_value::url::quote;
use kiln_value::{Map, Secret, Value, value};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

/// Why a signed request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("the request has no signature")]
    Incomplete,
    /// The signature does not cover all of the request.
    #[error("{0}")]
    Partial(&'static str),
    /// There is no access key.
    #[error("the request has no access key")]
    NoKey,
    /// Keystone does not know the access key.
    #[error("the access key does not exist")]
    UnknownKey,
    /// The signature does not belong to the request.
    #[error("the signature does not match")]
    Mismatch,
    /// Keystone refuses without a reason, as it usually does.
    #[error("the request is not authorized")]
    Refused,
    /// Keystone is not reachable.
    #[error("the identity service is unavailable: {0}")]
    Unavailable(String),
}

/// A signed request with all data that the signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    access: String,
    signature: String,
    host: String,
    verb: String,
    path: String,
    params: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body_hash: String,
}

impl SignedRequest {
    /// Reads the signature of a request. `params` are the parameters of the URL and of the form in the body.
    ///
    /// # Errors
    /// [`SignatureError::Incomplete`], [`SignatureError::NoKey`], and [`SignatureError::Partial`] if the request has
    /// parameters that nobody has signed.
    pub fn read<'a>(
        head: &Parts,
        params: impl Iterator<Item = (&'a str, &'a str)>,
        body: &[u8],
    ) -> Result<Self, SignatureError> {
        let mut params: BTreeMap<String, String> = params.map(|(name, value)| (name.into(), value.into())).collect();
        let authorization = authorization(head);
        match params.get("SignatureVersion").map(String::as_str) {
            // They cover only the action and the time, or texts that can be cut in several ways.
            Some("0" | "1") => return Err(SignatureError::Partial("SignatureVersion must be 2 or 4.")),
            _ if !Self::covers_query(head, params.keys().map(String::as_str)) => {
                let text =
                    "The parameters of a POST must be in its body: a signature of version 4 does not cover its URL.";
                return Err(SignatureError::Partial(text));
            }
            _ => {}
        }
        let access = access_key(head, |name| params.get(name).map(String::as_str));
        // The signature does not cover itself.
        let of_params = [params.remove("Signature"), params.remove("X-Amz-Signature")];
        let signature = of_params.into_iter().flatten().find(|signature| !signature.is_empty());
        let signature = signature.or_else(|| field(authorization, "Signature").map(str::to_owned));
        let signature = signature.ok_or(SignatureError::Incomplete)?;
        let access = access.filter(|access| !access.is_empty()).ok_or(SignatureError::NoKey)?;
        let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
        // Version 2 signs the decoded path, version 4 the path as it is sent.
        let sent = head.uri.path();
        let path = if params.contains_key("SignatureVersion") {
            percent_decode_str(sent).decode_utf8_lossy().into_owned()
        } else {
            sent.to_owned()
        };
        let headers = head.headers.iter();
        let headers = headers.filter_map(|(name, value)| Some((title(name.as_str()), value.to_str().ok()?.to_owned())));
        let mut body_hash = String::new();
        for byte in Sha256::digest(body) {
            _ = write!(body_hash, "{byte:02x}");
        }
        Ok(Self {
            access,
            signature,
            host: host.to_owned(),
            verb: head.method.to_string(),
            path,
            params,
            headers: headers.collect(),
            body_hash,
        })
    }

    /// A request that does nothing, signed with a key: whether Keystone knows the key.
    pub fn of_key(access: &str, secret: &Secret<String>) -> Self {
        let (host, verb, path) = ("kiln", "POST", "/");
        let params = [("AWSAccessKeyId", access), ("SignatureMethod", "HmacSHA256"), ("SignatureVersion", "2")];
        let query: Vec<String> = params.iter().map(|(name, value)| format!("{name}={}", quote(value, ""))).collect();
        let text = [verb, host, path, &query.join("&")].join("\n");
        // HMAC accepts keys of every length.
        let mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes());
        let mac = mac.map(|mac| STANDARD.encode(mac.chain_update(text).finalize().into_bytes()));
        Self {
            access: access.to_owned(),
            signature: mac.unwrap_or_default(),
            host: host.to_owned(),
            verb: verb.to_owned(),
            path: path.to_owned(),
            params: params.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            headers: BTreeMap::new(),
            body_hash: String::new(),
        }
    }

    /// Whether the signature covers the query of the URL, if there is one. With version 4, Keystone takes the parameters
    /// of a POST from the body alone.
    fn covers_query<'a>(head: &Parts, names: impl Iterator<Item = &'a str>) -> bool {
        head.method != Method::POST
            || head.uri.query().unwrap_or_default().is_empty()
            || !Self::is_version_4(head, names)
    }

    /// Whether a request has a signature of version 4.
    pub fn is_version_4<'a>(head: &Parts, mut names: impl Iterator<Item = &'a str>) -> bool {
        authorization(head).starts_with("AWS4-") || names.any(|name| name.starts_with("X-Amz-"))
    }

    /// Whether a request has parts of a signature.
    pub fn is_signed<'a>(head: &Parts, mut names: impl Iterator<Item = &'a str>) -> bool {
        const OF_SIGNATURES: [&str; 4] = ["AWSAccessKeyId", "Signature", "X-Amz-Credential", "X-Amz-Signature"];
        authorization(head).starts_with("AWS4-") || names.any(|name| OF_SIGNATURES.contains(&name))
    }

    /// The object `ec2Credentials` for Keystone.
    pub(crate) fn to_keystone(&self) -> Value {
        let map = |entries: &BTreeMap<String, String>| -> Map {
            entries.iter().map(|(name, value)| (name.clone(), value.into())).collect()
        };
        value!({
            "access": (&self.access),
            "signature": (&self.signature),
            "host": (&self.host),
            "verb": (&self.verb),
            "path": (&self.path),
            "params": (map(&self.params)),
            "headers": (map(&self.headers)),
            "body_hash": (&self.body_hash),
        })
    }
}

/// The access key that a request names, in one of its parameters or in the header `Authorization`.
pub fn access_key<'a>(head: &Parts, param: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let key = param("AWSAccessKeyId").map(str::to_owned);
    let key = key.or_else(|| param("X-Amz-Credential").map(key_of));
    key.or_else(|| field(authorization(head), "Credential").map(key_of))
}

fn authorization(head: &Parts) -> &str {
    head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The access key in the scope of a credential: `KEY/20260101/region/cloudformation/aws4_request`.
fn key_of(scope: &str) -> String {
    scope.split('/').next().unwrap_or_default().to_owned()
}

/// A field of `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
fn field<'a>(authorization: &'a str, name: &str) -> Option<&'a str> {
    let fields = authorization.split([',', ' ']);
    fields.filter_map(|field| field.trim().split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A header name as WSGI servers write it, `X-Amz-Date`: Keystone looks for these names.
fn title(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn read(request: http::request::Builder, params: &[(&str, &str)]) -> Result<SignedRequest, SignatureError> {
        let (head, ()) = request.body(()).unwrap().into_parts();
        SignedRequest::read(&head, params.iter().copied(), b"")
    }

    #[test]
    fn version_2_is_in_the_parameters() {
        let request = Request::post("/v1/signal/arn%3Aa%20b?x").header("host", "h:8000");
        let params = [("AWSAccessKeyId", "key"), ("Signature", "sig="), ("SignatureVersion", "2")];
        let read = read(request, &params).unwrap();
        assert_eq!((read.access.as_str(), read.signature.as_str(), read.host.as_str()), ("key", "sig=", "h:8000"));
        assert_eq!((read.verb.as_str(), read.path.as_str()), ("POST", "/v1/signal/arn:a b"));
        assert!(!read.params.contains_key("Signature"));
        // The hash of an empty body.
        assert!(read.body_hash.starts_with("e3b0c44298fc1c14"));
    }

    #[test]
    fn version_4_is_in_a_header_or_in_the_parameters() {
        let scope =
            "AWS4-HMAC-SHA256 Credential=key/20260101/r/s/aws4_request, SignedHeaders=host;x-amz-date, Signature=ab";
        for header in [scope.to_owned(), scope.replace(", ", ",")] {
            let request = Request::post("/v1/a%20b").header("authorization", header).header("x-amz-date", "d");
            let read = read(request, &[]).unwrap();
            assert_eq!((read.access.as_str(), read.signature.as_str(), read.path.as_str()), ("key", "ab", "/v1/a%20b"));
            assert_eq!(read.headers["X-Amz-Date"], "d");
        }
        let (head, ()) = Request::post("/v1/?a=b").header("authorization", scope).body(()).unwrap().into_parts();
        let refused = SignedRequest::read(&head, [("a", "b")].into_iter(), b"");
        assert!(matches!(refused, Err(SignatureError::Partial(_))), "{refused:?}");
        let params = [("X-Amz-Credential", "key/1/2"), ("X-Amz-Signature", "ab")];
        let read = read(Request::get("/v1/"), &params).unwrap();
        assert_eq!((read.access.as_str(), read.signature.as_str()), ("key", "ab"));
    }

    #[test]
    fn missing_parts_are_reported() {
        assert_eq!(read(Request::get("/"), &[("AWSAccessKeyId", "k")]), Err(SignatureError::Incomplete));
        assert_eq!(read(Request::get("/"), &[("Signature", "")]), Err(SignatureError::Incomplete));
        assert_eq!(read(Request::get("/"), &[("Signature", "s")]), Err(SignatureError::NoKey));
        assert_eq!(read(Request::get("/").header("authorization", "Basic x"), &[]), Err(SignatureError::Incomplete));
    }
}
