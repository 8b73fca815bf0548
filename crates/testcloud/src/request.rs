//! HTTP requests.

use bytes::Bytes;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::reply::Refusal;
use crate::table::Row;

/// The simulated services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Keystone, under `/identity`.
    Identity,
    /// Nova, under `/compute`.
    Compute,
    /// Neutron, under `/network`.
    Network,
    /// Cinder, under `/volume`.
    Volume,
    /// Glance, under `/image`.
    Image,
    /// Octavia, under `/load-balancer`.
    #[serde(rename = "load-balancer")]
    LoadBalancer,
    /// Swift, under `/object-store`.
    #[serde(rename = "object-store")]
    ObjectStore,
    /// Barbican, under `/key-manager`.
    #[serde(rename = "key-manager")]
    KeyManager,
    /// Designate, under `/dns`.
    Dns,
    /// Aodh, under `/alarming`.
    Alarming,
    /// Zaqar, under `/messaging`.
    Messaging,
    /// Mistral, under `/workflow`.
    Workflow,
    /// Manila, under `/share`.
    Share,
    /// Magnum, under `/container-infra`.
    #[serde(rename = "container-infra")]
    ContainerInfra,
    /// Ironic, under `/baremetal`.
    Baremetal,
    /// Blazar, under `/reservation`.
    Reservation,
    /// Trove, under `/database`.
    Database,
    /// Zun, under `/container`.
    Container,
}

impl Service {
    /// All services.
    pub const ALL: [Service; 18] = [
        Service::Identity,
        Service::Compute,
        Service::Network,
        Service::Volume,
        Service::Image,
        Service::LoadBalancer,
        Service::ObjectStore,
        Service::KeyManager,
        Service::Dns,
        Service::Alarming,
        Service::Messaging,
        Service::Workflow,
        Service::Share,
        Service::ContainerInfra,
        Service::Baremetal,
        Service::Reservation,
        Service::Database,
        Service::Container,
    ];

    /// The first path segment of the service.
    pub fn prefix(self) -> &'static str {
        match self {
            Service::Identity => "identity",
            Service::Compute => "compute",
            Service::Network => "network",
            Service::Volume => "volume",
            Service::Image => "image",
            Service::LoadBalancer => "load-balancer",
            Service::ObjectStore => "object-store",
            Service::KeyManager => "key-manager",
            Service::Dns => "dns",
            Service::Alarming => "alarming",
            Service::Messaging => "messaging",
            Service::Workflow => "workflow",
            Service::Share => "share",
            Service::ContainerInfra => "container-infra",
            Service::Baremetal => "baremetal",
            Service::Reservation => "reservation",
            Service::Database => "database",
            Service::Container => "container",
        }
    }

    /// The path segment of the API version.
    fn version(self) -> &'static str {
        match self {
            Service::Identity | Service::Volume => "v3",
            Service::Compute => "v2.1",
            Service::Network => "v2.0",
            Service::Image
            | Service::LoadBalancer
            | Service::Dns
            | Service::Alarming
            | Service::Messaging
            | Service::Workflow
            | Service::Share => "v2",
            Service::ObjectStore
            | Service::KeyManager
            | Service::ContainerInfra
            | Service::Baremetal
            | Service::Reservation
            | Service::Database
            | Service::Container => "v1",
        }
    }
}

/// A request to one service.
#[derive(Debug)]
pub(crate) struct ServiceCall {
    pub(crate) service: Service,
    pub(crate) method: String,
    /// The project in the path.
    pub(crate) project: Option<String>,
    /// The decoded path without the version: `["servers", "5f…"]`. `None`: the root of the service, which lists its
    /// versions.
    pub(crate) path: Option<Vec<String>>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) raw_query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ServiceCall {
    /// Parses the path. `None` if it belongs to no service.
    pub(crate) fn new(method: &str, path: &str, query: &str, headers: HeaderMap, body: Bytes) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect::<Vec<_>>();
        let first = segments.first()?.clone();
        let service = Service::ALL.into_iter().find(|service| service.prefix() == first)?;
        segments.remove(0);
        let is_older = |segment: &String| service == Service::Messaging && segment == "v1.1";
        let versioned = segments.first().is_some_and(|segment| segment == service.version() || is_older(segment));
        let mut project = None;
        if versioned {
            segments.remove(0);
            // Paths of Cinder contain the project, and those of Nova may; no other path starts with a bare ID.
            if segments.first().is_some_and(|segment| is_project_id(segment))
                && matches!(service, Service::Compute | Service::Volume | Service::Share | Service::Database)
            {
                project = Some(segments.remove(0));
            }
            if let Some(last) = segments.last_mut()
                && let Some(stem) = last.strip_suffix(".json")
            {
                *last = stem.to_owned();
            }
        }
        let path = if versioned {
            Some(segments)
        } else {
            segments.is_empty().then_some(())?;
            None
        };
        let query_pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode_query(name), decode_query(value))
            })
            .collect();
        Some(ServiceCall {
            service,
            method: method.to_owned(),
            project,
            path,
            query: query_pairs,
            raw_query: query.to_owned(),
            headers,
            body,
        })
    }

    /// The path without the version, for matching.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.iter().flatten().map(String::as_str).collect()
    }

    /// The path without the version as text: `/servers/5f…`.
    pub(crate) fn local_path(&self) -> String {
        self.segments().iter().fold(String::new(), |path, segment| path + "/" + segment)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The first value of a query parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a query parameter is true.
    pub(crate) fn switch(&self, name: &str) -> bool {
        self.param(name).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "t"))
    }

    /// The body as JSON; `complaint` is the service's error text for invalid JSON.
    pub(crate) fn json(&self, complaint: &str) -> Result<Value, Refusal> {
        serde_json::from_slice(&self.body).map_err(|_| Refusal::new(400, "HTTPBadRequest", complaint))
    }

    /// The object under `name` in a JSON body, with Nova's and Cinder's error texts.
    pub(crate) fn member(&self, name: &str) -> Result<Row, Refusal> {
        let mut body = self.json("Malformed request body")?;
        match body.get_mut(name).map(Value::take) {
            Some(Value::Object(row)) => Ok(row),
            Some(other) => Err(Refusal::bad(format!(
                "Invalid input for field/attribute {name}. Value: {}. {} is not of type 'object'",
                python_text(&other),
                python(&other)
            ))),
            None => Err(Refusal::bad(format!("'{name}' is a required property"))),
        }
    }
}

fn decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

fn decode_query(text: &str) -> String {
    decode(&text.replace('+', " "))
}

fn is_project_id(segment: &str) -> bool {
    segment.len() == 32 && segment.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A value as Python's `repr` prints it, for error texts that quote input.
pub(crate) fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
            let escaped = if quote == '\'' { escaped.replace('\'', "\\'") } else { escaped };
            format!("{quote}{escaped}{quote}")
        }
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs =
                map.iter().map(|(key, item)| format!("{}: {}", python(&Value::from(key.as_str())), python(item)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value as Python's `str` prints it: like [`python`], but a string without quotes.
pub(crate) fn python_text(value: &Value) -> String {
    value.as_str().map_or_else(|| python(value), str::to_owned)
}
