//! The audit of a request.

use std::net::IpAddr;
use std::sync::Arc;

use axum::response::Response;
use http::header::{LOCATION, USER_AGENT};
use http::request::Parts;
use kiln_audit::{Attachment, Auditor, Entry, Refused, Request, Requester};
use kiln_identity::Caller;
use kiln_stack::Backends;
use kiln_store::StackId;

/// The audit of one request.
pub struct Audit {
    auditor: Arc<Auditor>,
    entry: Option<Entry>,
    /// Where IDs and times are from, once the entry is there.
    backends: Option<Backends>,
    request_id: String,
    /// Of the service, as the client used it.
    address: String,
    client: Option<IpAddr>,
    has_begun: bool,
    hides_query: bool,
}

impl Audit {
    /// The audit of a request of a client to an address of the service.
    pub fn new(auditor: Arc<Auditor>, request_id: &str, address: String, client: Option<IpAddr>) -> Self {
        Self {
            auditor,
            entry: None,
            backends: None,
            request_id: request_id.to_owned(),
            address,
            client,
            has_begun: false,
            hides_query: false,
        }
    }

    /// The events do not have the query: that of the CloudFormation API contains the values of parameters.
    #[must_use]
    pub fn without_query(mut self) -> Self {
        self.hides_query = true;
        self
    }

    /// Writes the event before the work.
    ///
    /// # Errors
    /// The event cannot be written, and the operator wants such requests to be refused.
    pub fn begin(&mut self, backends: &Backends, head: &Parts, caller: Option<&Caller>) -> Result<(), Refused> {
        self.has_begun = true;
        let header = |name: &str| head.headers.get(name)?.to_str().ok();
        let host = self.address.split_once("://").map_or(self.address.as_str(), |(_, rest)| rest);
        let request = Request {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().filter(|_| !self.hides_query),
            host: host.split('/').next().unwrap_or_default(),
            client: self.client,
            agent: header(USER_AGENT.as_str()),
            token: header("x-auth-token").unwrap_or_default(),
            requester: caller.map(|caller| Requester {
                user_id: &caller.user_id,
                username: &caller.username,
                project_id: &caller.project_id,
                catalog: caller.catalog.as_ref(),
            }),
            request_id: &self.request_id,
            global_request_id: header("x-openstack-request-id").filter(|id| is_request_id(id)),
        };
        self.entry = self.auditor.begin(&request, || backends.chance.uuid(), backends.clock.now())?;
        self.backends = self.entry.is_some().then(|| backends.clone());
        Ok(())
    }

    /// Writes the event after the work. A request that was refused before its caller was known has both events here.
    pub fn end(mut self, backends: &Backends, head: &Parts, response: &Response, attachments: Vec<Attachment>) {
        if !self.has_begun {
            _ = self.begin(backends, head, None);
        }
        if let Some(entry) = self.entry.take() {
            let (id, now) = (backends.chance.uuid(), backends.clock.now());
            self.auditor.end(entry, response.status().as_u16(), attachments, id, now);
        }
    }
}

/// A client that has gone away: the work was dropped somewhere.
impl Drop for Audit {
    fn drop(&mut self) {
        if let (Some(entry), Some(backends)) = (self.entry.take(), &self.backends) {
            self.auditor.abandon(entry, backends.chance.uuid(), backends.clock.now());
        }
    }
}

/// The ID of the stack that a request is about: in its path, or where the response leads to.
pub fn stack_of(head: &Parts, response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION).and_then(|url| url.to_str().ok()).unwrap_or_default();
    let paths = [head.uri.path(), location].into_iter();
    let ids = paths.flat_map(|path| path.split(['/', '?'])).filter(|part| part.len() == 36);
    ids.filter(|part| part.parse::<StackId>().is_ok()).map(str::to_owned).next()
}

/// Whether a text is the ID of a request, as oslo.context checks it.
fn is_request_id(text: &str) -> bool {
    text.strip_prefix("req-").is_some_and(|id| id.len() == 36 && id.parse::<StackId>().is_ok())
}
