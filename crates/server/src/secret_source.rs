//! Secrets of the operator in Vault (or OpenBao) and in Barbican: `vault:PATH#FIELD`, `barbican:ID`.
//!
//! A secret is read when a process starts, and stored nowhere.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use kiln_cloud::{HttpRequest, Transport};
use kiln_config::Config;
use kiln_config::options::vault;
use kiln_resource::CloudRequest;
use kiln_value::{Secret, Value};
use url::{Host, Url};

use crate::clients;
use crate::service_cloud::credentials;

/// The section with the options of Vault.
const SECTION: &str = "vault";
/// Maximum time of a request to Vault.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretSource {
    /// A field of an entry in a KV store of version 2, without the mount point.
    Vault { path: String, field: String },
    /// A secret of the service user's project, by its ID.
    Barbican(String),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault { path, field } => write!(f, "vault:{path}#{field}"),
            Self::Barbican(id) => write!(f, "barbican:{id}"),
        }
    }
}

impl std::str::FromStr for SecretSource {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
        let is_path = |path: &str| path.split('/').all(|part| is_word(part) && part != "." && part != "..");
        match text.split_once(':') {
            Some(("vault", rest)) => match rest.split_once('#') {
                Some((path, field)) if is_path(path) && is_word(field) => {
                    return Ok(Self::Vault { path: path.to_owned(), field: field.to_owned() });
                }
                _ => {}
            },
            // The key manager names a secret by its URL.
            Some(("barbican", rest)) => match rest.rsplit('/').next() {
                Some(id) if is_word(id) => return Ok(Self::Barbican(id.to_owned())),
                _ => {}
            },
            _ => {}
        }
        bail!("{text:?} is neither vault:PATH#FIELD nor barbican:ID")
    }
}

impl SecretSource {
    /// Whether the configuration says how it is read. Nothing is called.
    pub(crate) fn check(&self, config: &Config) -> Result<()> {
        match self {
            Self::Vault { .. } => Vault::of(config).map(drop),
            Self::Barbican(_) => {
                credentials(&config.account("keystone_authtoken")?, "keystone_authtoken", true).map(drop)
            }
        }
    }

    /// The secret as it is now.
    pub(crate) async fn read(&self, config: &Config) -> Result<Secret<String>> {
        let read = match self {
            Self::Vault { path, field } => Vault::of(config)?.field(path, field).await,
            Self::Barbican(id) => of_key_manager(config, id).await,
        };
        read.with_context(|| self.to_string())
    }
}

async fn of_key_manager(config: &Config, id: &str) -> Result<Secret<String>> {
    let service = config.account("keystone_authtoken")?;
    let session = clients::connector(config, &service)?.session(credentials(&service, "keystone_authtoken", true)?);
    let mut path = Url::parse("http://of/v1/secrets/")?;
    path.path_segments_mut().map_err(|()| anyhow!("a path"))?.pop_if_empty().push(id).push("payload");
    let mut request = CloudRequest::new("key-manager", kiln_resource::Method::Get, path.path());
    request.headers.push(("accept".to_owned(), "text/plain".to_owned()));
    match session.call(&request).await?.body {
        Value::Str(text) => Ok(Secret::new(text)),
        // A text that is a number in JSON.
        Value::Int(number) => Ok(Secret::new(number.to_string())),
        _ => bail!("the payload is no text"),
    }
}

/// A Vault or an OpenBao.
struct Vault {
    url: Url,
    mount: String,
    namespace: Option<String>,
    login: Login,
    transport: std::sync::Arc<dyn Transport>,
}

/// How a process gets a token.
enum Login {
    Token(Secret<String>),
    Role { id: String, secret: Secret<String> },
}

impl Vault {
    fn of(config: &Config) -> Result<Self> {
        let text = config.text(&vault::URL).unwrap_or_default();
        let url = Url::parse(&text).with_context(|| format!("[{SECTION}] vault_url {text:?}"))?;
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() != "https" && !is_here {
            bail!("[{SECTION}] vault_url {text:?}: only https is allowed, except for this host");
        }
        let (token, role) = (config.secret(&vault::TOKEN), config.text(&vault::ROLE_ID));
        let login = match (token, role, config.secret(&vault::SECRET_ID)) {
            (Some(token), None, None) => Login::Token(token),
            (None, Some(id), Some(secret)) => Login::Role { id, secret },
            _ => bail!("[{SECTION}] needs root_token_id, or else approle_role_id and approle_secret_id"),
        };
        Ok(Self {
            url,
            mount: config.text(&vault::MOUNT).unwrap_or_default(),
            namespace: config.text(&vault::NAMESPACE),
            login,
            transport: clients::trusting(SECTION, config.text(&vault::CA_FILE))?,
        })
    }

    async fn field(&self, path: &str, field: &str) -> Result<Secret<String>> {
        let token = self.token().await?;
        let segments = [self.mount.as_str(), "data"].into_iter().chain(path.split('/'));
        let answer = self.call(Method::GET, segments, Some(&token), None).await?;
        match &answer["data"]["data"][field] {
            serde_json::Value::String(text) => Ok(Secret::new(text.clone())),
            serde_json::Value::Null => bail!("the entry has no such field"),
            _ => bail!("the field is no text"),
        }
    }

    async fn token(&self) -> Result<Secret<String>> {
        let (id, secret) = match &self.login {
            Login::Token(token) => return Ok(token.clone()),
            Login::Role { id, secret } => (id, secret),
        };
        let body = serde_json::json!({"role_id": id, "secret_id": secret.expose()});
        let answer = self.call(Method::POST, ["auth", "approle", "login"], None, Some(&body)).await;
        let answer = answer.context("AppRole")?;
        let token = answer["auth"]["client_token"].as_str().context("AppRole: the answer has no token")?;
        Ok(Secret::new(token.to_owned()))
    }

    async fn call<'a>(
        &self,
        method: Method,
        segments: impl IntoIterator<Item = &'a str>,
        token: Option<&Secret<String>>,
        body: Option<&serde_json::Value>,
    ) -> Result<serde_json::Value> {
        let mut url = self.url.clone();
        let path = url.path_segments_mut().map_err(|()| anyhow!("[{SECTION}] vault_url has no path"));
        path?.pop_if_empty().push("v1").extend(segments);
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(token.expose()).context("the token is no header")?;
            value.set_sensitive(true);
            headers.insert("x-vault-token", value);
        }
        if let Some(namespace) = &self.namespace {
            headers.insert("x-vault-namespace", HeaderValue::from_str(namespace)?);
        }
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let body = body.map(|body| Bytes::from(body.to_string()));
        let answer = self.transport.send(HttpRequest { method, url, headers, body, timeout: PATIENCE }).await?;
        let parsed: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return Ok(parsed);
        }
        let errors = parsed["errors"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        let errors: Vec<&str> = errors.collect();
        bail!("Vault answers {}: {}", answer.status.as_u16(), errors.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::{get, post};
    use serde_json::json;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    /// Answers as OpenBao does.
    async fn fake() -> String {
        let login = async |Json(body): Json<serde_json::Value>| {
            let is_known = body == json!({"role_id": "kiln", "secret_id": "s3cret"});
            let refused = json!({"errors": ["invalid role or secret ID"]});
            let answer = if is_known { json!({"auth": {"client_token": "of-role"}}) } else { refused };
            (if is_known { StatusCode::OK } else { StatusCode::BAD_REQUEST }, Json(answer))
        };
        let read = async |headers: HeaderMap| {
            let is_known = headers.get("x-vault-token").is_some_and(|token| token == "of-role" || token == "of-file");
            let entry = json!({"data": {"data": {"key": KEY, "number": 1}, "metadata": {"version": 3}}});
            let answer = if is_known { entry } else { json!({"errors": ["permission denied"]}) };
            (if is_known { StatusCode::OK } else { StatusCode::FORBIDDEN }, Json(answer))
        };
        let routes =
            Router::new().route("/v1/auth/approle/login", post(login)).route("/v1/clouds/data/kiln/prod", get(read));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        format!("http://{address}")
    }

    async fn read(url: &str, from: &str, options: &[(&str, &str)]) -> Result<String, String> {
        let mut all = vec![(SECTION, "vault_url", url.to_owned()), (SECTION, "kv_mountpoint", "clouds".to_owned())];
        all.extend(options.iter().map(|(name, value)| (SECTION, *name, (*value).to_owned())));
        let source: SecretSource = from.parse().map_err(|error: anyhow::Error| error.to_string())?;
        let read = source.read(&Config::of_options(&all)).await;
        read.map(|secret| secret.expose().clone()).map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn a_secret_is_read_from_vault() {
        let url = fake().await;
        let role = [("approle_role_id", "kiln"), ("approle_secret_id", "s3cret")];
        assert_eq!(read(&url, "vault:kiln/prod#key", &role).await.as_deref(), Ok(KEY));
        assert_eq!(read(&url, "vault:kiln/prod#key", &[("root_token_id", "of-file")]).await.as_deref(), Ok(KEY));
        for (from, options, why) in [
            (
                "vault:kiln/prod#key",
                [role[0], ("approle_secret_id", "wrong")],
                "AppRole: Vault answers 400: invalid role or secret ID",
            ),
            ("vault:kiln/prod#other", role, "the entry has no such field"),
            ("vault:kiln/prod#number", role, "the field is no text"),
            ("vault:kiln/dev#key", role, "Vault answers 404: "),
        ] {
            assert_eq!(read(&url, from, &options).await, Err(format!("{from}: {why}")));
        }
        let denied = read(&url, "vault:kiln/prod#key", &[("root_token_id", "other")]).await.unwrap_err();
        assert_eq!(denied, "vault:kiln/prod#key: Vault answers 403: permission denied");
    }

    #[tokio::test]
    async fn vault_is_asked_only_with_one_login_and_over_tls() {
        let token = [("root_token_id", "t")];
        let error = read("http://vault.example:8200", "vault:a#b", &token).await.unwrap_err();
        assert!(error.ends_with("only https is allowed, except for this host"), "{error}");
        for options in [&[][..], &[token[0], ("approle_role_id", "kiln")], &[("approle_role_id", "kiln")]] {
            let error = read("http://localhost:1", "vault:a#b", options).await.unwrap_err();
            assert!(error.contains("needs root_token_id, or else"), "{error}");
        }
    }

    #[test]
    fn a_reference_names_one_secret() {
        let vault = |path: &str, field: &str| SecretSource::Vault { path: path.to_owned(), field: field.to_owned() };
        assert_eq!("vault:kiln/prod#key".parse::<SecretSource>().unwrap(), vault("kiln/prod", "key"));
        let barbican = SecretSource::Barbican("a-b".to_owned());
        assert_eq!("barbican:a-b".parse::<SecretSource>().unwrap(), barbican);
        assert_eq!("barbican:https://b/v1/secrets/a-b".parse::<SecretSource>().unwrap(), barbican);
        for wrong in ["", "vault:a", "vault:#a", "vault:a#", "vault:a/../b#c", "vault:a//b#c", "barbican:", "file:a#b"]
        {
            assert!(wrong.parse::<SecretSource>().is_err(), "{wrong}");
        }
    }
}
