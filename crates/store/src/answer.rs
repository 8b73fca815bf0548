//! Requests with an idempotency key, and their answers.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Error, Operation};

/// How long an answer is kept.
pub const ANSWER_KEPT: Duration = Duration::from_hours(24);

/// A request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The digest of the key, the user, the project and the route.
    pub id: String,
    /// The digest of the body.
    pub body: String,
    /// The ID of the request: `req-…`.
    pub request: String,
}

/// What is stored of an earlier request with the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    /// The digest of its body.
    pub body: String,
    /// Its ID.
    pub request: String,
    /// The time since it began.
    pub age: Duration,
    /// Its answer; `None`: it is being processed, or its process has ended before the answer was stored.
    pub answer: Option<String>,
}

/// Stores requests with an idempotency key for [`ANSWER_KEPT`].
#[async_trait]
pub trait AnswerStore: Send + Sync {
    /// Stores a request, unless there is an earlier one with its key: `None` if there is none. Repeating this is harmless.
    async fn begin_keyed(&self, keyed: &KeyedRequest) -> Result<Option<EarlierRequest>, Error>;
    /// Replaces an earlier request without an answer; false if another one has done that, or if it has an answer now.
    async fn take_over_keyed(&self, keyed: &KeyedRequest, earlier: &str) -> Result<bool, Error>;
    /// Stores the answer to a request, unless it was replaced.
    async fn answer_keyed(&self, keyed: &KeyedRequest, answer: &str) -> Result<(), Error>;
    /// Forgets a request that has changed nothing, unless it was replaced.
    async fn forget_keyed(&self, keyed: &KeyedRequest) -> Result<(), Error>;
    /// The operation that a request has begun in a project. This reads the operations of the project since the request began.
    async fn operation_of_request(&self, project: &str, earlier: &EarlierRequest) -> Result<Option<Operation>, Error>;
}
