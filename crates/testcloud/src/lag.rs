//! Reads that lag behind writes: objects that lists omit for some time.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// The objects that are not listed yet, by ID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lags(Vec<(String, Instant)>);

impl Lags {
    /// Omits the created objects of a response from lists for some time.
    pub(crate) fn add(&mut self, answer: &Value, lag: Duration) {
        let until = Instant::now() + lag;
        let made = std::iter::once(answer).chain(answer.as_object().into_iter().flat_map(|members| members.values()));
        self.0.extend(made.filter_map(id).map(|id| (id.to_owned(), until)));
    }

    /// Removes objects that are not visible yet from the lists of a response.
    pub(crate) fn hide(&mut self, answer: &mut Value) {
        let now = Instant::now();
        self.0.retain(|(_, until)| *until > now);
        if self.0.is_empty() {
            return;
        }
        for list in answer.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
            if let Value::Array(items) = list {
                items.retain(|item| id(item).is_none_or(|id| !self.0.iter().any(|(hidden, _)| hidden == id)));
            }
        }
    }
}

/// The identifier of an object: its ID, or the name of a key pair.
fn id(object: &Value) -> Option<&str> {
    ["id", "name"].into_iter().find_map(|key| object.get(key)?.as_str()).or_else(|| id(object.get("keypair")?))
}
