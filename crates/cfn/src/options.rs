//! Options of the API, with the names and defaults of Heat.

use std::sync::Arc;

use kiln_audit::Auditor;
use kiln_store::{AnswerStore, WorksheetStore};
use kiln_web::{Admission, ConnectionLimits, Cors, Heat, Proxies};

/// Options of the API.
#[derive(Clone)]
pub struct Options {
    /// Maximum size of a request body in bytes (`max_json_body_size`).
    pub max_body: usize,
    /// The proxies before the service.
    pub proxies: Proxies,
    /// Stacks with one of these tags are not listed (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// Maximum number of stacks, resources or events in a response; `NextToken` leads to the others
    /// (`[kiln] cfn_page_size`).
    pub page: u64,
    /// Requests of pages of other origins (`[cors]`).
    pub cors: Cors,
    /// Limits of connections.
    pub connections: ConnectionLimits,
    /// Stores requests with a token; `None`: such requests are refused.
    pub answers: Option<Arc<dyn AnswerStore>>,
    /// Stores refactorings, scans and generated templates between two requests; `None`: such requests are refused.
    pub worksheets: Option<Arc<dyn WorksheetStore>>,
    /// Budgets of clients, and maintenance.
    pub admission: Admission,
    /// Answers for the projects that were not switched to Kiln; `None`: they are refused.
    pub heat: Option<Arc<Heat>>,
    /// Writes the audit events of requests.
    pub auditor: Option<Arc<Auditor>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 1_048_576,
            proxies: Proxies::default(),
            hidden_stack_tags: vec!["data-processing-cluster".to_owned()],
            page: 1000,
            cors: Cors::default(),
            connections: ConnectionLimits::default(),
            answers: None,
            worksheets: None,
            admission: Admission::default(),
            heat: None,
            auditor: None,
        }
    }
}
