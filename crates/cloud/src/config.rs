//! Where a client finds its cloud: `clouds.yaml` and the `OS_*` variables, as openstacksdk reads them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_value::{Map, Secret, Value};
use url::Url;

use crate::catalog::Interface;
use crate::connector::Connector;
use crate::credentials::{Credentials, Named, Scope};
use crate::session::Options;
use crate::transport::{SharedClient, TlsOptions, TransportError};

/// Reads a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A cloud and who we are there.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    /// Name in `clouds.yaml`; none if it came from variables.
    pub name: Option<String>,
    /// Keystone; none with [`Credentials::None`].
    pub auth_url: Option<Url>,
    /// Who we are.
    pub credentials: Credentials,
    /// Region.
    pub region: Option<String>,
    /// Interface of the endpoints to use.
    pub interface: Interface,
    /// Certificates.
    pub tls: TlsOptions,
    /// Endpoints that count instead of the catalog's, by service type.
    pub endpoint_overrides: HashMap<String, Url>,
}

/// Why there is no usable configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The named cloud stands in no file.
    #[error("Cloud {name} was not found.")]
    UnknownCloud {
        /// Its name.
        name: String,
        /// Names that would have been found.
        known: Vec<String>,
    },
    /// A file that cannot be read.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A setting that is needed.
    #[error("Missing value {0} required for auth plugin {1}")]
    Missing(&'static str, String),
    /// A setting that makes no sense.
    #[error("invalid value for {setting}: {message}")]
    Invalid {
        /// Which.
        setting: String,
        /// Why.
        message: String,
    },
    /// Neither a cloud nor variables.
    #[error("no cloud: name one of clouds.yaml (--os-cloud, OS_CLOUD) or set OS_AUTH_URL and credentials")]
    Nothing,
    /// The HTTP client refused the certificates.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Settings by their flat names, as in `OS_<NAME>` and below `auth`.
type Settings = BTreeMap<String, String>;

impl CloudConfig {
    /// The cloud of this name, else that of `OS_CLOUD`, else what the `OS_*` variables say, else the only one there is.
    ///
    /// `clouds.yaml` is looked for in the working directory, in `$XDG_CONFIG_HOME/openstack` (default
    /// `~/.config/openstack`) and in `/etc/openstack`; `OS_CLIENT_CONFIG_FILE` goes first. `secure.yaml`, found the same
    /// way, is laid over it.
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

    /// Makes it of flat settings: `auth_url`, `username`, `project_name` …
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
            message: format!("{interface} is none of public, internal, admin"),
        })?;
        let insecure = get("insecure").is_some_and(is_true) || get("verify").is_some_and(|v| !is_true(v));
        let authorities = get("cacert").map(|path| read_bytes(Path::new(path))).transpose()?;
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
            tls: TlsOptions { authorities, insecure },
            endpoint_overrides,
        })
    }

    /// How sessions of this cloud behave. Without Keystone the endpoint stands for it.
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

    /// A connector to this cloud with a client of its own.
    pub fn connector(&self) -> Result<Connector, ConfigError> {
        let client = SharedClient::new(&self.tls)?;
        Ok(Connector::new(Arc::new(client), self.options()?))
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
            message: format!("{other} is none of password, token, v3applicationcredential, none"),
        }),
    }
}

/// A user or project by id or by name and domain; the domain is `default` where none is told.
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

/// The variables that count, without `OS_` and in lower case.
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

fn from_environment(env: Environment<'_>) -> Settings {
    let set = VARIABLES.iter().filter_map(|name| {
        let value = env(&format!("OS_{name}")).filter(|v| !v.is_empty())?;
        Some((name.to_ascii_lowercase(), value))
    });
    set.collect()
}

/// The `clouds` of the first file of a name that is there.
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
        Some(_) => Err(broken("clouds is no map".to_owned())),
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|e| ConfigError::File { path: path.to_owned(), message: e.to_string() })
}

/// Lays maps over maps; everything else replaces.
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

/// A cloud's entry as flat settings: what is below `auth` counts first.
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
    // `regions` is a list of names or of maps with a name: the first is the default.
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

    /// A folder with these files, removed at the end of the test.
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
    fn variables_count_where_no_cloud_is_named() {
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
    fn what_is_missing_is_named() {
        let folder = Folder::with(&[("clouds.yaml", CLOUDS)]);
        let error = |cloud| folder.load(cloud, &[]).unwrap_err();
        assert_eq!(error(Some("one")).to_string(), "Missing value password required for auth plugin password");
        assert!(
            matches!(error(Some("two")), ConfigError::UnknownCloud { known, .. } if known == ["one", "app", "bare"])
        );
        assert!(matches!(error(None), ConfigError::Nothing));
    }
}
