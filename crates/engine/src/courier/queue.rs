//! Event sinks that are queues of Zaqar.

use kiln_resource::{CloudRequest, Failure, FailureKind, Method, StackId};
use kiln_stack::Backends;
use kiln_store::OutboxEntry;
use kiln_value::{Class, Value, text, value};

/// Maximum number of messages per call, and their size in bytes: below Zaqar's default limits.
const MESSAGES: usize = 20;
const BYTES: usize = 200_000;

/// How many entries fit one call.
pub(super) fn part(entries: &[OutboxEntry]) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&OutboxEntry| {
        bytes += text::json(&entry.body).len();
        bytes <= BYTES
    };
    entries.iter().take(MESSAGES).take_while(fits).count().max(1)
}

/// Posts events to a queue, with the credentials of the tree.
pub(super) async fn send(
    backends: &Backends,
    root: StackId,
    queue: &str,
    ttl: i64,
    entries: &[OutboxEntry],
) -> Result<(), Failure> {
    let unreadable = |error: kiln_store::Error| Failure::new(FailureKind::NotSent, Class::Database, error.to_string());
    let stack = backends.store.stack(root).await.map_err(unreadable)?;
    let stack = stack.ok_or_else(|| Failure::other(Class::NotFound, "the stack does not exist any more"))?;
    let cloud = backends.clouds.cloud(&stack).await?;
    let messages: Vec<Value> = entries.iter().map(|entry| value!({"ttl": ttl, "body": (entry.body.clone())})).collect();
    let path = format!("/v2/queues/{}/messages", segment(queue));
    let request = CloudRequest::new("messaging", Method::Post, path);
    cloud.call(request.body(value!({"messages": messages}))).await?;
    Ok(())
}

/// A name as a segment of a path.
fn segment(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().fold(String::new(), |path, byte| {
        if is_plain(byte) { path + &char::from(byte).to_string() } else { path + &format!("%{byte:02X}") }
    })
}
