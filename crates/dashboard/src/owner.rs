//! The user who runs a dashboard alone on a machine. Others on the machine can reach its port, and web sites can have a name
//! that means this machine: so the session opens only with a key that the user gets, once, and at one address. Other users can see the key among the
//! arguments of the browser: so only the same user may use it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aes_gcm::aead::OsRng;
use aes_gcm::aead::rand_core::RngCore as _;
use axum::extract::ConnectInfo;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts as Head;
use kiln_cloud::Token;
use kiln_value::Secret;
use kiln_web::Query;
use sha2::{Digest as _, Sha256};

use crate::connection::is_of_other_user;
use crate::error::PageError;
use crate::page_request::Place;
use crate::session::{NameAndId, Session};

/// The user who runs the dashboard.
pub struct Owner {
    address: SocketAddr,
    key: Secret<String>,
    session: Session,
    is_used: AtomicBool,
}

/// Whose rights the session has.
pub enum OwnerAccess {
    /// Those of this token, which has a project.
    Token(Arc<Token>),
    /// The API in this process asks for none.
    Local {
        /// The project of its stacks.
        project: String,
    },
}

impl Owner {
    /// A dashboard at this address. `None`: the token has no project.
    pub fn new(address: SocketAddr, access: &OwnerAccess) -> Option<Self> {
        let session = match access {
            OwnerAccess::Token(token) => Session::of_token(token)?,
            OwnerAccess::Local { project } => {
                let named = |name: &str| NameAndId { id: name.to_owned(), name: name.to_owned() };
                Session {
                    token: Secret::new(String::new()),
                    user: named("local"),
                    project: named(project),
                    roles: Vec::new(),
                    expires_at: "9999-12-31T23:59:59Z".to_owned(),
                    region: None,
                }
            }
        };
        let mut bytes = [0; 32];
        OsRng.fill_bytes(&mut bytes);
        let key = Secret::new(URL_SAFE_NO_PAD.encode(bytes));
        Some(Self { address, key, session, is_used: AtomicBool::new(false) })
    }

    /// The same, in a region of the service.
    #[must_use]
    pub fn in_region(mut self, region: Option<String>) -> Self {
        self.session.region = region;
        self
    }

    /// The address that opens the session. It can be used once.
    pub fn address(&self) -> Secret<String> {
        Secret::new(format!("http://{}/dashboard/?key={}", self.address, self.key.expose()))
    }

    /// Refuses requests to another host name: a web site whose name means this machine.
    pub(crate) fn check(&self, place: &Place) -> Result<(), PageError> {
        let host = self.address.to_string();
        if place.host() == host { Ok(()) } else { Err(PageError::Host(host)) }
    }

    /// The session for the key in a query; `None`: there is no key.
    pub(crate) fn open(&self, head: &Head) -> Option<Result<&Session, PageError>> {
        let query = Query::parse(head.uri.query());
        let given = query.given("key")?;
        let ConnectInfo(client) = head.extensions.get::<ConnectInfo<SocketAddr>>()?;
        // The digests take the same time to compare wherever the texts differ.
        let is_it = Sha256::digest(given) == Sha256::digest(self.key.expose());
        if is_it && is_of_other_user(*client, self.address) {
            return Some(Err(PageError::OtherUser));
        }
        let is_first = is_it && !self.is_used.swap(true, Ordering::SeqCst);
        Some(if is_first { Ok(&self.session) } else { Err(PageError::Key) })
    }
}
