//! A cloud that records what requests contain.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kiln_resource::{AccountNames, Cloud, CloudRequest, CloudResponse, Failure, Method, SignalEndpoints, UserDomain};
use kiln_value::{Value, text, value};

/// Passes requests to another cloud. A name that nothing has is an ID.
pub(crate) struct Recorder {
    inner: Arc<dyn Cloud>,
    sent: Mutex<BTreeSet<String>>,
}

impl Recorder {
    pub(crate) fn new(inner: Arc<dyn Cloud>) -> Self {
        Self { inner, sent: Mutex::default() }
    }

    /// Adds what is not in a request.
    pub(crate) fn note(&self, line: String) {
        self.sent.lock().unwrap().insert(line);
    }

    /// The values in the requests that change something, each with its place: `POST /v2.0/ports /port/name=a`.
    pub(crate) fn sent(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    fn record(&self, request: &CloudRequest) {
        let mut sent = self.sent.lock().unwrap();
        let at = format!("{:?} {}", request.method, request.path);
        let parts = [&request.query, &request.headers];
        sent.extend(parts.into_iter().flatten().map(|(key, value)| format!("{at} {key}={value}")));
        record(&at, request.body.as_ref().unwrap_or(&Value::Null), &mut sent);
    }
}

fn record(at: &str, value: &Value, sent: &mut BTreeSet<String>) {
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            entries.iter().for_each(|(key, value)| record(&format!("{at}/{key}"), value, sent));
        }
        Value::List(items) if !items.is_empty() => items.iter().for_each(|item| record(at, item, sent)),
        scalar => {
            let text = text::str(scalar);
            let decoded = STANDARD.decode(&text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            sent.extend(decoded.map(|decoded| format!("{at}={decoded}")));
            sent.insert(format!("{at}={text}"));
        }
    }
}

#[async_trait]
impl Cloud for Recorder {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        // Cinder associates by reading.
        let is_read = matches!(request.method, Method::Get | Method::Head) && !request.path.ends_with("associate");
        if !is_read {
            self.record(&request);
        }
        // The simulated cloud has no agents.
        let has_agents = request.method == Method::Get && request.path.ends_with("-agents");
        match self.inner.call(request).await {
            Err(_) if has_agents => {
                Ok(CloudResponse { status: 200, body: value!({"agents": []}), ..Default::default() })
            }
            answer => answer,
        }
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        Ok(self.inner.find(finder, name_or_id).await.unwrap_or_else(|_| name_or_id.to_owned()))
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        self.inner.has_service(service).await
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        self.inner.has_extension(service, alias).await
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        self.inner.endpoint(service).await
    }

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        self.inner.user_domain().await
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        self.inner.signal_endpoints().await
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        self.inner.account_names().await
    }

    async fn project_id(&self) -> Result<String, Failure> {
        self.inner.project_id().await
    }
}
