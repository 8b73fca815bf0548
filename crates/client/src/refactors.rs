//! Calls that move resources between stacks. Heat has none of them.

use http::Method;
use kiln_value::{Value, value};

use crate::client::unwrap;
use crate::{Client, Error, StackRequest};

impl Client {
    /// Moves resources between stacks, which get new templates; each move has `from` and `to` as `STACK/RESOURCE`. Returns the
    /// `moves` with type and ID of the objects, and `updating`, the names of the stacks whose nested stacks an engine updates
    /// then. With `dry_run` nothing is changed, and `obstacles` says what stands in the way.
    pub async fn refactor_stacks(
        &self,
        stacks: &[(String, StackRequest)],
        moves: &Value,
        dry_run: bool,
    ) -> Result<Value, Error> {
        let entry = |(name, request): &(String, StackRequest)| {
            let mut entry = request.body(None);
            if let Some(entry) = entry.as_map_mut() {
                entry.insert("stack".to_owned(), name.as_str().into());
            }
            entry
        };
        let body = value!({ "stacks": (stacks.iter().map(entry).collect::<Value>()), "moves": (moves.clone()) });
        let query = if dry_run { vec![("dry_run".to_owned(), "True".to_owned())] } else { vec![] };
        unwrap(self.call(Method::POST, "/refactors", &query, Some(&body)).await?, "refactor")
    }
}
