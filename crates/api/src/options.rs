//! Options of the API, with the names and defaults of Heat (docs/heat-behaviour.md §23).

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kiln_audit::Auditor;
use kiln_service::{DriftWatch, QuotaChanges, Webhooks};
use kiln_store::AnswerStore;
use kiln_topology::TypeFiles;
use kiln_web::{Admission, ConnectionLimits, Cors, Heat, Proxies};

/// Options of the API.
#[derive(Clone)]
pub struct Options {
    /// Maximum size of a request body in bytes (`max_json_body_size`).
    pub max_body: usize,
    /// URL of the API for clients, including `/v1` (`heat_api_root`); `None`: the address of each request.
    pub root: Option<String>,
    /// The proxies before the service.
    pub proxies: Proxies,
    /// Stacks with one of these tags are listed only on request (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// The revision in `build_info` (`heat_revision`).
    pub revision: String,
    /// Requests of pages of other origins (`[cors]`).
    pub cors: Cors,
    /// Limits of connections.
    pub connections: ConnectionLimits,
    /// Stores requests with an idempotency key; `None`: such requests are refused.
    pub answers: Option<Arc<dyn AnswerStore>>,
    /// Webhooks of projects; `None`: there are none.
    pub webhooks: Option<Webhooks>,
    /// Changes quotas; `None`: there are none.
    pub quotas: Option<QuotaChanges>,
    /// Schedules of comparisons; `None`: there are none.
    pub drift: Option<DriftWatch>,
    /// Budgets of clients, and maintenance.
    pub admission: Admission,
    /// Writes the audit events of requests.
    pub auditor: Option<Arc<Auditor>>,
    /// The types of files that blueprints and service templates may use.
    pub topology_types: Arc<TypeFiles>,
    /// Answers for the projects that were not switched to Kiln; `None`: they are refused.
    pub heat: Option<Arc<Heat>>,
    /// Writes the text of `GET /report`.
    pub reporter: Option<Reporter>,
}

/// Reports what this process does.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>);

impl Reporter {
    /// A reporter that calls `write` for each report. Its text must not contain secrets.
    pub fn new(write: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub(crate) async fn report(&self) -> String {
        (self.0)().await
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 1_048_576,
            root: None,
            proxies: Proxies::default(),
            hidden_stack_tags: vec!["data-processing-cluster".to_owned()],
            revision: "unknown".to_owned(),
            cors: Cors::default(),
            connections: ConnectionLimits::default(),
            answers: None,
            webhooks: None,
            quotas: None,
            drift: None,
            admission: Admission::default(),
            auditor: None,
            // A test reads the types of Kiln, so there are no errors.
            topology_types: TypeFiles::shipped().unwrap_or_default(),
            heat: None,
            reporter: None,
        }
    }
}
