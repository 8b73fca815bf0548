//! Requests that a client may send again, under a key of its own: they are carried out once.
//!
//! The REST API (`Idempotency-Key`) and the CloudFormation API (`ClientRequestToken`) differ only in what they answer.

use std::sync::Arc;
use std::time::Duration;

use kiln_store::{AnswerStore, Digest, EarlierRequest, Error, KeyedRequest, Operation};

/// After this time, the process of a request without an answer and without an operation is believed to have ended.
const ABANDONED: Duration = Duration::from_mins(2);

/// A request with a key that is to be carried out, or whose answer is to be stored.
pub struct Repeatable {
    store: Arc<dyn AnswerStore>,
    keyed: KeyedRequest,
    project: String,
}

/// What is known of a request with a key.
pub enum Repetition {
    /// It is the first one, or the process of the first one has ended before it changed anything: carry it out.
    First(Repeatable),
    /// The first one had another body.
    OtherBody,
    /// The answer to the first one.
    Answered(String),
    /// The first one has begun an operation, but its process ended before it answered: answer in its place.
    Begun(Box<Operation>, Repeatable),
    /// The first one is being processed.
    Running,
}

/// How a request ended.
pub enum Ending {
    /// With this answer, which repetitions get too.
    Answered(String),
    /// Refused, because the state of the stack or of the service was in the way: the same request is carried out again.
    Refused,
    /// Nobody knows what has happened: the operation says whether something has.
    Unknown,
}

impl Repeatable {
    /// Begins a request. `of_whom`: the key, the user, the project and the route; `body`: what a repetition says again;
    /// `request`: the ID of the request; `project`: that of its operation.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn begin(
        store: Arc<dyn AnswerStore>,
        of_whom: &[&str],
        body: &str,
        request: &str,
        project: &str,
    ) -> Result<Repetition, Error> {
        let (id, body) = (Digest::of(&of_whom.join("\n")).to_string(), Digest::of(body).to_string());
        let keyed = KeyedRequest { id, body, request: request.to_owned() };
        let mut own = Self { store, keyed, project: project.to_owned() };
        let Some(earlier) = own.store.begin_keyed(&own.keyed).await? else { return Ok(Repetition::First(own)) };
        if earlier.body != own.keyed.body {
            return Ok(Repetition::OtherBody);
        }
        if let Some(answer) = earlier.answer {
            return Ok(Repetition::Answered(answer));
        }
        if let Some(operation) = own.store.operation_of_request(&own.project, &earlier).await? {
            own.keyed.request = earlier.request;
            return Ok(Repetition::Begun(Box::new(operation), own));
        }
        if earlier.age > ABANDONED && own.store.take_over_keyed(&own.keyed, &earlier.request).await? {
            return Ok(Repetition::First(own));
        }
        Ok(Repetition::Running)
    }

    /// Stores how the request ended. A failure is only logged: the client has its answer.
    pub async fn end(self, ending: Ending) {
        let stored = match ending {
            Ending::Answered(answer) => self.store.answer_keyed(&self.keyed, &answer).await,
            Ending::Refused => self.store.forget_keyed(&self.keyed).await,
            Ending::Unknown => self.forget_if_unchanged().await,
        };
        if let Err(error) = stored {
            tracing::warn!(%error, "the answer to a request with a key cannot be stored");
        }
    }

    async fn forget_if_unchanged(&self) -> Result<(), Error> {
        let KeyedRequest { body, request, .. } = self.keyed.clone();
        let own = EarlierRequest { body, request, age: ABANDONED, answer: None };
        match self.store.operation_of_request(&self.project, &own).await? {
            Some(_) => Ok(()),
            None => self.store.forget_keyed(&self.keyed).await,
        }
    }
}
