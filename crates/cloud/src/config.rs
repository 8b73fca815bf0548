//! The cloud configuration of a client: `clouds.yaml` and the `OS_*` variables, read as openstacksdk does.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_value::{Map, Secret, Value};
use url::Url;

use crate::address::Addresses;
use crate::catalog::Interface;
use crate::connector::Connector;
use crate::credentials::{Credentials, Named, Scope};
use crate::session::Options;
use crate::transport::{SharedClient, TlsOptions, TransportError};

/// Reads an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A cloud and the credentials for it.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    /// Name in `clouds.yaml`; `None` if it comes from variables.
    pub name: Option<String>,
    /// URL of Keystone; `None` with [`Credentials::None`].
    pub auth_url: Option<Url>,
    /// Credentials.
    pub credentials: Credentials,
    /// Region.
    pub region: Option<String>,
    /// Endpoint interface.
    pub interface: Interface,
    /// Certificates.
    pub tls: TlsOptions,
    /// Endpoints that override the catalog, by service type.
    pub endpoint_overrides: HashMap<String, Url>,
}

/// Configuration errors.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No file contains the cloud.
    #[error("Cloud {name} was not found.")]
    UnknownCloud {
        /// Its name.
        name: String,
        /// Names of the known clouds.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A required setting is missing.
    #[error("Missing value {0} required for auth plugin {1}")]
    Missing(&'static str, String),
    /// A setting is invalid.
    #[error("invalid value for {setting}: {message}")]
    Invalid {
        /// The setting.
        setting: String,
        /// The reason.
        message: String,
    },
    /// Neither a cloud nor variables are set.
    #[error(
        "no cloud is configured: select one from clouds.yaml (--os-cloud, OS_CLOUD) or set OS_AUTH_URL and credentials"
    )]
    Nothing,
    /// The HTTP client rejected the certificates.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Settings by flat name, as in `OS_<NAME>` and below `auth`.
type Settings = BTreeMap<String, String>;

impl CloudConfig {
    /// The cloud with this name, else that of `OS_CLOUD`, else that of the `OS_*` variables, else the only one in
    /// `clouds.yaml`.
    ///
    /// `clouds.yaml` is searched in the working directory, in `$XDG_CONFIG_HOME/openstack` (default
    /// `~/.config/openstack`) and in `/etc/openstack`; `OS_CLIENT_CONFIG_FILE` takes precedence. `secure.yaml`, found
    /// the same way, is merged over it.
    pub fn load(cloud: Option<&str>, env: Environment<'_>) -> Result<Self, ConfigError> {
        let named = cloud.map(str::to_owned).or_else(|| env("OS_CLOUD")).filter(|n| !n.is_empty() && n != "envvars");
        let variables = from_environment(env);
        let has_variables = ["auth_url", "endpoint", "url"].iter().any(|key| variables.contains_key(*key));
        if named.is_none() && (has_variables || cloud == Some("envvars")) {
            return Self::from_settings(None, &variables);
        }
        let mut clouds = read_clouds("clouds", "OS_CLIENT_CONFIG_FILE", env)?;
        merge(&mut clouds, read_clouds("secure", "OS_CLIENT_SECURE_FILE", env)?);
        let only = || clouds.keys().next().filter(|_| clouds.len() == 1).cloned();
        let name = named.or_else(only).ok_or(ConfigError::Nothing)?;
        let Some(entry) = clouds.get(&name) else {
            return Err(ConfigError::UnknownCloud { name, known: clouds.keys().cloned().collect() });
        };
        let mut settings = Settings::new();
        flatten(entry, &mut settings);
        if let Some(region) = env("OS_REGION_NAME").filter(|r| !r.is_empty()) {
            settings.entry("region_name".into()).or_insert(region);
        }
        Self::from_settings(Some(name), &settings)
    }

    /// Builds a configuration from flat settings: `auth_url`, `username`, `project_name` …
    fn from_settings(name: Option<String>, settings: &Settings) -> Result<Self, ConfigError> {
        let get = |key: &str| settings.get(key).map(String::as_str).filter(|v| !v.is_empty());
        let credentials = credentials(&get)?;
        let auth_url = get("auth_url").map(|url| parse_url("auth_url", url)).transpose()?;
        if auth_url.is_none() && !matches!(credentials, Credentials::None { .. }) {
            return Err(ConfigError::Missing("auth-url", "password".into()));
        }
        let interface = get("interface").or_else(|| get("endpoint_type")).unwrap_or("public");
        let interface = Interface::parse(interface).ok_or_else(|| ConfigError::Invalid {
            setting: "interface".into(),
            message: format!("{interface} is not one of public, internal, admin"),
        })?;
        let insecure = get("insecure").is_some_and(is_true) || get("verify").is_some_and(|v| !is_true(v));
        let file = |name: &str| get(name).map(|path| read_bytes(Path::new(path))).transpose();
        let authorities = file("cacert")?;
        // One file may contain both.
        let identity = match (file("cert")?, file("key")?) {
            (Some(certificate), key) => Some([certificate, key.unwrap_or_default()].join(&b'\n')),
            (None, Some(_)) => {
                return Err(ConfigError::Invalid { setting: "key".into(), message: "cert is not set".into() });
            }
            (None, None) => None,
        };
        let mut endpoint_overrides = HashMap::new();
        for (key, url) in settings {
            if let Some(service) = key.strip_suffix("_endpoint_override").or_else(|| key.strip_suffix("_endpoint")) {
                endpoint_overrides.insert(service.replace('_', "-"), parse_url(key, url)?);
            }
        }
        Ok(Self {
            name,
            auth_url,
            credentials,
            region: get("region_name").map(str::to_owned),
            interface,
            tls: TlsOptions { authorities, identity, insecure },
            endpoint_overrides,
        })
    }

    /// The cloud of credentials that a user stored: `kind` is the type of keystoneauth's plug-in and `auth` its options.
    /// Options that would read a file of this machine are refused, like all that are unknown.
    pub(crate) fn of_credential(kind: &str, auth: &Map) -> Result<Self, ConfigError> {
        let invalid = |setting: &str, message: String| ConfigError::Invalid { setting: setting.to_owned(), message };
        let mut settings = Settings::from([("auth_type".to_owned(), kind.to_owned())]);
        for (key, value) in auth {
            if !CREDENTIAL_OPTIONS.contains(&key.as_str()) {
                return Err(invalid("auth", format!("{key} is not an option of the credentials")));
            }
            let text = value.as_str().ok_or_else(|| invalid(key, "not a string".to_owned()))?;
            settings.insert(key.clone(), text.to_owned());
        }
        Self::from_settings(None, &settings)
    }

    /// The session options for this cloud. Without Keystone, the endpoint takes the place of its URL.
    pub fn options(&self) -> Result<Options, ConfigError> {
        let url = match (&self.auth_url, &self.credentials) {
            (Some(url), _) => url.clone(),
            (None, Credentials::None { endpoint }) => parse_url("endpoint", endpoint)?,
            (None, _) => return Err(ConfigError::Missing("auth-url", "password".into())),
        };
        let mut options = Options::new(url);
        options.region.clone_from(&self.region);
        options.interface = self.interface;
        options.endpoint_overrides.clone_from(&self.endpoint_overrides);
        Ok(options)
    }

    /// A connector to this cloud with its own HTTP client. It is for a person's own program, so that remote clouds may
    /// be at any address.
    pub fn connector(&self) -> Result<Connector, ConfigError> {
        let client = SharedClient::new(&self.tls)?;
        Ok(Connector::new(Arc::new(client), self.options()?).with_remotes_at(Addresses::any()))
    }
}

fn credentials<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> Result<Credentials, ConfigError> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| get(key));
    let secret = |text: &str| Secret::new(text.to_owned());
    let kind = get("auth_type").unwrap_or_else(|| {
        if get("application_credential_secret").is_some() {
            "v3applicationcredential"
        } else if get("token").is_some() && get("password").is_none() {
            "token"
        } else if get("auth_url").is_none() && first(&["endpoint", "url"]).is_some() {
            "none"
        } else {
            "password"
        }
    });
    let missing = |what| ConfigError::Missing(what, kind.to_owned());
    let user = || named(get, &["user_id"], &["username", "user_name"], "user");
    match kind {
        "password" | "v3password" => Ok(Credentials::Password {
            user: user().ok_or_else(|| missing("username"))?,
            password: secret(get("password").ok_or_else(|| missing("password"))?),
            scope: scope(get),
        }),
        "token" | "v3token" => {
            Ok(Credentials::Token { token: secret(get("token").ok_or_else(|| missing("token"))?), scope: scope(get) })
        }
        "v3applicationcredential" => {
            let credential = match (get("application_credential_id"), get("application_credential_name")) {
                (Some(id), _) => Named::id(id),
                (None, Some(name)) => Named::Name { name: name.to_owned(), domain: None },
                (None, None) => return Err(missing("application-credential-id")),
            };
            let user = if matches!(credential, Named::Name { .. }) { user() } else { None };
            let given = get("application_credential_secret").ok_or_else(|| missing("application-credential-secret"))?;
            Ok(Credentials::ApplicationCredential { credential, user, secret: secret(given) })
        }
        "none" | "admin_token" | "noauth" => {
            let endpoint = first(&["endpoint", "url"]).ok_or_else(|| missing("endpoint"))?;
            Ok(Credentials::None { endpoint: endpoint.to_owned() })
        }
        other => Err(ConfigError::Invalid {
            setting: "auth_type".into(),
            message: format!("{other} is not one of password, token, v3applicationcredential, none"),
        }),
    }
}

/// A user or project by ID or by name and domain; the default domain is `default`.
fn named<'a>(get: &impl Fn(&str) -> Option<&'a str>, ids: &[&str], names: &[&str], what: &str) -> Option<Named> {
    if let Some(id) = ids.iter().find_map(|key| get(key)) {
        return Some(Named::id(id));
    }
    let name = names.iter().find_map(|key| get(key))?.to_owned();
    let domain = match (get(&format!("{what}_domain_id")), get(&format!("{what}_domain_name"))) {
        (Some(id), _) => Named::id(id),
        (None, Some(name)) => Named::Name { name: name.to_owned(), domain: None },
        (None, None) => match (get("domain_id"), get("domain_name"), get("default_domain")) {
            (Some(id), ..) if what == "user" => Named::id(id),
            (_, Some(name), _) if what == "user" => Named::Name { name: name.to_owned(), domain: None },
            (.., Some(name)) => Named::id(name),
            _ => Named::id("default"),
        },
    };
    Some(Named::Name { name, domain: Some(Box::new(domain)) })
}

fn scope<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> Scope {
    if let Some(id) = get("trust_id") {
        return Scope::Trust(id.to_owned());
    }
    if let Some(project) = named(get, &["project_id", "tenant_id"], &["project_name", "tenant_name"], "project") {
        return Scope::Project(project);
    }
    match (get("domain_id"), get("domain_name")) {
        (Some(id), _) => Scope::Domain(Named::id(id)),
        (None, Some(name)) => Scope::Domain(Named::Name { name: name.to_owned(), domain: None }),
        (None, None) if get("system_scope").is_some() => Scope::System,
        (None, None) => Scope::Unscoped,
    }
}

/// The recognized variables, without `OS_` and in lower case.
const VARIABLES: &[&str] = &[
    "AUTH_TYPE",
    "AUTH_URL",
    "USERNAME",
    "USER_ID",
    "PASSWORD",
    "PROJECT_NAME",
    "PROJECT_ID",
    "TENANT_NAME",
    "TENANT_ID",
    "USER_DOMAIN_NAME",
    "USER_DOMAIN_ID",
    "PROJECT_DOMAIN_NAME",
    "PROJECT_DOMAIN_ID",
    "DOMAIN_NAME",
    "DOMAIN_ID",
    "DEFAULT_DOMAIN",
    "TOKEN",
    "TRUST_ID",
    "SYSTEM_SCOPE",
    "APPLICATION_CREDENTIAL_ID",
    "APPLICATION_CREDENTIAL_NAME",
    "APPLICATION_CREDENTIAL_SECRET",
    "REGION_NAME",
    "INTERFACE",
    "ENDPOINT_TYPE",
    "CACERT",
    "INSECURE",
    "ENDPOINT",
    "URL",
    "ORCHESTRATION_ENDPOINT_OVERRIDE",
];

/// The options of credentials that users store.
const CREDENTIAL_OPTIONS: &[&str] = &[
    "auth_url",
    "username",
    "user_name",
    "user_id",
    "password",
    "project_name",
    "project_id",
    "tenant_name",
    "tenant_id",
    "user_domain_name",
    "user_domain_id",
    "project_domain_name",
    "project_domain_id",
    "domain_name",
    "domain_id",
    "default_domain",
    "token",
    "trust_id",
    "system_scope",
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
    "endpoint",
    "url",
];

fn from_environment(env: Environment<'_>) -> Settings {
    let set = VARIABLES.iter().filter_map(|name| {
        let value = env(&format!("OS_{name}")).filter(|v| !v.is_empty())?;
        Some((name.to_ascii_lowercase(), value))
    });
    set.collect()
}

/// Reads `clouds` from the first existing file.
fn read_clouds(stem: &str, variable: &str, env: Environment<'_>) -> Result<Map, ConfigError> {
    let config = env("XDG_CONFIG_HOME").filter(|d| !d.is_empty()).map(PathBuf::from);
    let home = || env("HOME").map(|home| Path::new(&home).join(".config"));
    let folders =
        [Some(PathBuf::new()), config.or_else(home).map(|d| d.join("openstack")), Some("/etc/openstack".into())];
    let beside = folders.into_iter().flatten().flat_map(|folder| {
        ["yaml", "yml", "json"].into_iter().map(move |extension| folder.join(format!("{stem}.{extension}")))
    });
    let given = env(variable).map(PathBuf::from);
    let Some(path) = given.into_iter().chain(beside).find(|path| path.is_file()) else { return Ok(Map::new()) };
    let broken = |message: String| ConfigError::File { path: path.clone(), message };
    let text = String::from_utf8(read_bytes(&path)?).map_err(|e| broken(e.to_string()))?;
    let document = kiln_yaml::parse(&text).map_err(|e| broken(e.to_string()))?;
    match document.value.get("clouds") {
        Some(Value::Map(clouds)) => Ok(clouds.clone()),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(_) => Err(broken("clouds is not a map".to_owned())),
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|e| ConfigError::File { path: path.to_owned(), message: e.to_string() })
}

/// Merges maps recursively; other values are replaced.
fn merge(base: &mut Map, over: Map) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Flattens the entry of a cloud; settings below `auth` take precedence.
fn flatten(entry: &Value, settings: &mut Settings) {
    let Some(entry) = entry.as_map() else { return };
    let mut put = |key: &str, value: &Value| {
        let text = match value {
            Value::Map(_) | Value::List(_) | Value::Null => return,
            value => kiln_value::text::str(value),
        };
        settings.entry(key.replace('-', "_")).or_insert(text);
    };
    for (key, value) in entry.get("auth").and_then(Value::as_map).into_iter().flatten() {
        put(key, value);
    }
    for (key, value) in entry {
        put(key, value);
    }
    // `regions` is a list of names or of maps with a name: the first one is the default.
    let first = entry.get("regions").and_then(|r| r.at(0));
    if let Some(region) = first.and_then(|r| r.as_str().or_else(|| r.str_at("name"))) {
        settings.entry("region_name".into()).or_insert(region.to_owned());
    }
}

fn is_true(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on" | "t" | "y")
}

fn parse_url(setting: &str, url: &str) -> Result<Url, ConfigError> {
    Url::parse(url).map_err(|e| ConfigError::Invalid { setting: setting.to_owned(), message: e.to_string() })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A directory with these files, deleted at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn with(files: &[(&str, &str)]) -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("kiln-clouds-{}-{number}", std::process::id()));
            std::fs::create_dir_all(path.join("openstack")).unwrap();
            for (name, text) in files {
                std::fs::write(path.join("openstack").join(name), text).unwrap();
            }
            Self(path)
        }

        fn load(&self, cloud: Option<&str>, variables: &[(&str, &str)]) -> Result<CloudConfig, ConfigError> {
            let env = |name: &str| match name {
                "XDG_CONFIG_HOME" => Some(self.0.display().to_string()),
                _ => variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()),
            };
            CloudConfig::load(cloud, &env)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const CLOUDS: &str = "
clouds:
  one:
    auth: {auth_url: 'http://h:5000/v3', username: demo, project_name: p, user_domain_name: D, project_domain_id: d}
    regions: [R1, R2]
    interface: internal
    verify: false
  app:
    auth_type: v3applicationcredential
    auth: {auth_url: 'http://h:5000', application_credential_id: ac}
  bare:
    auth_type: none
    auth: {endpoint: 'http://h:8004/v1/p'}
";
    const SECURE: &str =
        "clouds: {one: {auth: {password: swordfish}}, app: {auth: {application_credential_secret: s}}}";

    #[test]
    fn files_are_merged() {
        let folder = Folder::with(&[("clouds.yaml", CLOUDS), ("secure.yaml", SECURE)]);
        let one = folder.load(Some("one"), &[("OS_USERNAME", "ignored")]).unwrap();
        let expected = Credentials::Password {
            user: Named::in_domain("demo", "D"),
            password: Secret::new("swordfish".into()),
            scope: Scope::Project(Named::Name { name: "p".into(), domain: Some(Box::new(Named::id("d"))) }),
        };
        assert_eq!(one.credentials, expected);
        assert_eq!((one.region.as_deref(), one.interface, one.tls.insecure), (Some("R1"), Interface::Internal, true));

        let app = folder.load(None, &[("OS_CLOUD", "app")]).unwrap();
        assert!(matches!(app.credentials, Credentials::ApplicationCredential { .. }));
        let bare = folder.load(Some("bare"), &[]).unwrap();
        assert_eq!(bare.credentials, Credentials::None { endpoint: "http://h:8004/v1/p".into() });
        assert!(bare.options().is_ok());
    }

    #[test]
    fn variables_are_used_if_no_cloud_is_selected() {
        let folder = Folder::with(&[("clouds.yaml", CLOUDS)]);
        let variables = [
            ("OS_AUTH_URL", "http://k:5000"),
            ("OS_USERNAME", "u"),
            ("OS_PASSWORD", "pw"),
            ("OS_TENANT_NAME", "t"),
            ("OS_REGION_NAME", "R9"),
        ];
        let got = folder.load(None, &variables).unwrap();
        assert_eq!((got.name, got.region.as_deref()), (None, Some("R9")));
        let Credentials::Password { scope, .. } = got.credentials else { panic!("no password") };
        let default = Some(Box::new(Named::id("default")));
        assert_eq!(scope, Scope::Project(Named::Name { name: "t".into(), domain: default }));
    }

    #[test]
    fn missing_settings_are_named() {
        let folder = Folder::with(&[("clouds.yaml", CLOUDS)]);
        let error = |cloud| folder.load(cloud, &[]).unwrap_err();
        assert_eq!(error(Some("one")).to_string(), "Missing value password required for auth plugin password");
        assert!(
            matches!(error(Some("two")), ConfigError::UnknownCloud { known, .. } if known == ["one", "app", "bare"])
        );
        assert!(matches!(error(None), ConfigError::Nothing));
    }
}
