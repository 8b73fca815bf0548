//! What every engine does beside its stacks: forgets what is old.

use std::sync::Arc;
use std::time::Duration;

use kiln_store::Retention;

use crate::backends::Backends;
use crate::options::Options;

/// Works until it is aborted.
pub(crate) async fn run(backends: Backends, options: Arc<Options>) {
    loop {
        let now = backends.clock.now();
        let retention = Retention { deleted_before: now - options.keep_deleted, events_per_stack: options.max_events };
        match backends.store.forget(&retention).await {
            // A piece at a time, with breath in between, so that nobody waits for it.
            Ok(rows) if rows > 0 => backends.clock.sleep(Duration::from_millis(200)).await,
            Ok(_) => backends.clock.sleep(Duration::from_mins(10)).await,
            Err(error) => {
                tracing::warn!(%error, "could not forget old stacks");
                backends.clock.sleep(Duration::from_mins(1)).await;
            }
        }
    }
}
