//! Calls for guards. Heat has none of them.

use http::Method;
use kiln_value::{Map, Value};

use crate::client::{Query, segment, unwrap_list};
use crate::{Client, Error};

/// A guard to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewGuard {
    /// The name or ID of the root stack; `None`: all stacks of the project.
    pub stack: Option<String>,
    /// What it forbids: `protect` with `resources`, `freeze` with `signals`, or `plans`.
    pub rule: Map,
    /// When it ends by itself, as `2027-01-31T12:00:00Z`.
    pub until: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl Client {
    /// Adds a guard. The answer has the `guard` and the operations `in_flight` that it does not stop.
    pub async fn add_guard(&self, new: &NewGuard) -> Result<Value, Error> {
        let mut body = new.rule.clone();
        for (key, value) in [("stack", &new.stack), ("until", &new.until), ("reason", &new.reason)] {
            body.extend(value.clone().map(|value| (key.to_owned(), value.into())));
        }
        self.call(Method::PUT, "/guards", &vec![], Some(&body.into())).await
    }

    /// The guards of the project, or those that hold for a stack, oldest first.
    pub async fn guards(&self, stack: Option<&str>) -> Result<Vec<Value>, Error> {
        let query: Query = stack.map(|stack| ("stack".to_owned(), stack.to_owned())).into_iter().collect();
        unwrap_list(self.get("/guards", &query).await?, "guards")
    }

    /// A guard.
    pub async fn guard(&self, id: &str) -> Result<Value, Error> {
        crate::client::unwrap(self.get(&format!("/guards/{}", segment(id)), &vec![]).await?, "guard")
    }

    /// Lifts a guard.
    pub async fn lift_guard(&self, id: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &format!("/guards/{}", segment(id)), &vec![], None).await.map(drop)
    }
}
