//! Creates stacks and waits for them.

use std::time::Duration;

use kiln_plan::Sources;
use kiln_resource::StackId;
use kiln_stack::{Backends, Clock as _, SystemClock, load};
use kiln_store::{NewStack, Stack, Store};
use tokio::time::Instant;

/// Requests a new stack, as the API does.
pub(crate) async fn create(backends: &Backends, name: &str, sources: &Sources) -> StackId {
    let id = StackId(backends.chance.uuid());
    let stack = NewStack {
        username: "demo".to_owned(),
        user_id: "demo".to_owned(),
        ..NewStack::new(id, name.to_owned(), "demo".to_owned(), load::texts(sources), SystemClock.now())
    };
    backends.store.create_stack(stack).await.expect("stored");
    id
}

/// The stack when its operation has ended, which must happen within a timeout.
pub(crate) async fn settled(store: &dyn Store, id: StackId, within: Duration) -> Stack {
    let start = Instant::now();
    loop {
        let stack = store.stack(id).await.expect("read").expect("there");
        if !stack.is_pending() {
            return stack;
        }
        assert!(start.elapsed() < within, "stuck: {stack:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
