//! The service catalog.

use std::sync::Arc;

use kiln_value::{Value, value};
use serde::Deserialize;
use url::Url;

/// Endpoint interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interface {
    /// For everyone.
    #[default]
    Public,
    /// For internal use within the cloud.
    Internal,
    /// For administrators.
    Admin,
}

impl Interface {
    /// Parses `public`, `publicURL` and so on.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("URL").unwrap_or(text) {
            "public" => Some(Self::Public),
            "internal" => Some(Self::Internal),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// The services of a token. Cheap to clone: tokens of the same project share it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalog(Arc<Vec<Service>>);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Endpoint {
    interface: String,
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default)]
    region: Option<String>,
    url: String,
}

/// Official service type first, then its current and former aliases in catalogs (OpenStack's service types authority).
const ALIASES: &[&[&str]] = &[
    &["alarm", "alarming"],
    &["application-container", "container"],
    &["baremetal", "bare-metal"],
    &["block-storage", "volumev3", "volumev2", "volume", "block-store"],
    &["clustering", "resource-cluster", "cluster"],
    &["container-infrastructure-management", "container-infrastructure", "container-infra"],
    &["instance-ha", "ha"],
    &["message", "messaging"],
    &["object-store", "object-storage"],
    &["policy", "metric-policy"],
    &["reservation"],
    &["root-cause-analysis", "rca"],
    &["shared-file-system", "sharev2", "shared-file-systems", "share"],
    &["workflow", "workflowv2"],
];

/// The names under which a catalog may list a service, most likely first.
fn aliases(service: &str) -> &[&str] {
    ALIASES.iter().find(|names| names.contains(&service)).copied().unwrap_or_default()
}

/// The official name of a service type: `block-storage` for `volumev3`.
pub fn official_type(service: &str) -> &str {
    aliases(service).first().copied().unwrap_or(service)
}

/// A service with the URLs of its first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogService<'a> {
    /// Its type.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The URL for administrators.
    pub admin: Option<&'a str>,
    /// The URL for other services.
    pub internal: Option<&'a str>,
    /// The URL for users.
    pub public: Option<&'a str>,
}

impl Catalog {
    /// The services with endpoints.
    pub fn services(&self) -> impl Iterator<Item = CatalogService<'_>> {
        self.0.iter().filter_map(|service| {
            let region = service.endpoints.first()?.region.as_deref();
            let url = |interface: &str| {
                let mut of_region = service.endpoints.iter().filter(|endpoint| endpoint.region.as_deref() == region);
                let is_it = |endpoint: &&Endpoint| {
                    endpoint
                        .interface
                        .strip_suffix("URL")
                        .unwrap_or(&endpoint.interface)
                        .eq_ignore_ascii_case(interface)
                };
                of_region.find(is_it).map(|endpoint| endpoint.url.as_str())
            };
            let (kind, name) = (service.kind.as_str(), service.name.as_str());
            Some(CatalogService { kind, name, admin: url("admin"), internal: url("internal"), public: url("public") })
        })
    }

    /// The URL of a service in the catalog; `None` if there is none for the interface and region.
    pub fn endpoint(&self, service: &str, interface: Interface, region: Option<&str>) -> Option<&str> {
        let names = aliases(service);
        let exact = std::iter::once(service);
        exact.chain(names.iter().copied()).find_map(|name| {
            let endpoints = self.0.iter().filter(|s| s.kind == name).flat_map(|s| &s.endpoints);
            endpoints
                .filter(|e| e.interface.strip_suffix("URL").unwrap_or(&e.interface) == interface.as_str())
                .find(|e| region.is_none_or(|r| e.region_id.as_deref() == Some(r) || e.region.as_deref() == Some(r)))
                .map(|e| e.url.as_str())
        })
    }

    /// The regions in which a service has an endpoint, in the order of the catalog.
    pub fn regions(&self, service: &str, interface: Interface) -> Vec<&str> {
        let kinds = self.0.iter().filter(|one| official_type(&one.kind) == official_type(service));
        let endpoints = kinds.flat_map(|one| &one.endpoints);
        let of_interface = endpoints.filter(|one| Interface::parse(&one.interface) == Some(interface));
        let mut regions: Vec<&str> = Vec::new();
        for region in of_interface.filter_map(|one| one.region_id.as_deref().or(one.region.as_deref())) {
            if !regions.contains(&region) {
                regions.push(region);
            }
        }
        regions
    }

    /// The catalog in Keystone's form: service types with their endpoints.
    pub(crate) fn to_value(&self) -> Value {
        let services = self.0.iter().map(|service| {
            let endpoints = service.endpoints.iter().map(|endpoint| {
                let region = endpoint.region_id.as_ref().or(endpoint.region.as_ref());
                value!({
                    "interface": (endpoint.interface.as_str()),
                    "region": (region.map_or(Value::Null, |region| region.as_str().into())),
                    "url": (endpoint.url.as_str()),
                })
            });
            value!({"type": (service.kind.as_str()), "endpoints": (endpoints.collect::<Value>())})
        });
        services.collect()
    }

    /// Whether the catalog contains a service.
    pub fn has(&self, service: &str) -> bool {
        let names = aliases(service);
        self.0.iter().any(|s| s.kind == service || names.contains(&s.kind.as_str()))
    }
}

/// The API version that Kiln uses with a service if neither the catalog nor the request specifies one.
fn default_version(service: &str) -> Option<&'static str> {
    Some(match official_type(service) {
        "network" => "v2.0",
        "compute" => "v2.1",
        "block-storage" | "identity" => "v3",
        "image" | "dns" | "message" | "workflow" | "shared-file-system" | "load-balancer" => "v2",
        "key-manager" | "orchestration" | "application-container" => "v1",
        _ => return None,
    })
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| {
        !rest.is_empty()
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

/// Joins the URL in the catalog and the path of a request. Either, both or neither may contain the version:
/// `http://h/network` and `/v2.0/networks`, `http://h:9696/v2.0` and `/networks`, `http://h/v3/<project>` and
/// `/v3/volumes` all result in the expected URL. If both contain a version, that of the request is used.
///
/// `project` is inserted where Cinder's URL needs it and the catalog omits it.
pub(crate) fn join(base: &Url, service: &str, path: &str, project: Option<&str>) -> Option<Url> {
    let (version, rest) = match path.trim_start_matches('/').split_once('/') {
        Some((first, rest)) if is_version(first) => (Some(first), rest),
        None if is_version(path.trim_start_matches('/')) => (Some(path.trim_start_matches('/')), ""),
        _ => (None, path.trim_start_matches('/')),
    };
    let mut segments: Vec<&str> = base.path_segments()?.filter(|s| !s.is_empty()).collect();
    let found = segments.iter().rposition(|s| is_version(s));
    match (found, version.or_else(|| default_version(service))) {
        (Some(at), Some(wanted)) if version.is_some() => {
            if let Some(segment) = segments.get_mut(at) {
                *segment = wanted;
            }
        }
        (None, Some(wanted)) => {
            segments.push(wanted);
            if let (Some(project), "block-storage") = (project, official_type(service)) {
                segments.push(project);
            }
        }
        _ => {}
    }
    let mut url = base.clone();
    url.set_query(None);
    url.set_path(&format!("/{}{}{rest}", segments.join("/"), if rest.is_empty() { "" } else { "/" }));
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, service: &str, path: &str) -> String {
        join(&Url::parse(base).unwrap(), service, path, Some("p1")).unwrap().to_string()
    }

    #[test]
    fn versions_are_reconciled() {
        for base in ["http://h:9696", "http://h:9696/", "http://h:9696/v2.0", "http://h:9696/v2.0/"] {
            assert_eq!(joined(base, "network", "/v2.0/networks"), "http://h:9696/v2.0/networks");
            assert_eq!(joined(base, "network", "/networks"), "http://h:9696/v2.0/networks");
        }
        assert_eq!(joined("http://h/network", "network", "/v2.0/networks"), "http://h/network/v2.0/networks");
        assert_eq!(joined("http://h/compute/v2.1", "compute", "/servers"), "http://h/compute/v2.1/servers");
        assert_eq!(joined("http://h/compute", "compute", "/servers"), "http://h/compute/v2.1/servers");
        assert_eq!(joined("http://h/identity", "identity", "/v3/auth/tokens"), "http://h/identity/v3/auth/tokens");
    }

    #[test]
    fn the_project_is_kept_or_added_for_cinder() {
        for base in ["http://h/v3/p1", "http://h/v3/p1/", "http://h"] {
            assert_eq!(joined(base, "volumev3", "/volumes"), "http://h/v3/p1/volumes");
            assert_eq!(joined(base, "block-storage", "/v3/volumes"), "http://h/v3/p1/volumes");
        }
        assert_eq!(joined("http://h/v2/p1", "volume", "/v3/volumes"), "http://h/v3/p1/volumes");
    }

    #[test]
    fn services_are_found_by_all_of_their_names() {
        let json = r#"[{"type": "volumev3", "endpoints": [
            {"interface": "internal", "region_id": "R1", "url": "http://i"},
            {"interface": "public", "region_id": "R1", "url": "http://p"},
            {"interface": "public", "region_id": "R2", "url": "http://p2"}]}]"#;
        let catalog: Catalog = serde_json::from_str(json).unwrap();
        assert_eq!(catalog.endpoint("block-storage", Interface::Public, None), Some("http://p"));
        assert_eq!(catalog.endpoint("volume", Interface::Public, Some("R2")), Some("http://p2"));
        assert_eq!(catalog.endpoint("block-storage", Interface::Admin, None), None);
        assert!(catalog.has("block-storage") && !catalog.has("compute"));
        let value = catalog.to_value();
        let first = value!({"interface": "internal", "region": "R1", "url": "http://i"});
        assert_eq!(value.at(0).unwrap().str_at("type"), Some("volumev3"));
        assert_eq!(value.at(0).unwrap().get("endpoints").unwrap().at(0), Some(&first));
    }
}
