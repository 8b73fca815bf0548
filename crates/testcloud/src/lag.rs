//! Reads that lag behind writes: objects that lists do not show yet.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// The objects that are not listed yet, by id.
#[derive(Debug, Default)]
pub(crate) struct Lags(Vec<(String, Instant)>);

impl Lags {
    /// Leaves what an answer tells as made out of lists for a time.
    pub(crate) fn add(&mut self, answer: &Value, lag: Duration) {
        let until = Instant::now() + lag;
        let made = std::iter::once(answer).chain(answer.as_object().into_iter().flat_map(|members| members.values()));
        self.0.extend(made.filter_map(id).map(|id| (id.to_owned(), until)));
    }

    /// Takes what is not to be seen yet out of the lists of an answer.
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

/// What an object is known by: its id, or a key's name.
fn id(object: &Value) -> Option<&str> {
    ["id", "name"].into_iter().find_map(|key| object.get(key)?.as_str()).or_else(|| id(object.get("keypair")?))
}
