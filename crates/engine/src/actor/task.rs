//! Tasks of an actor.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;
use kiln_resource::Failure;
use kiln_stack::gather::bug;
use tracing::Instrument as _;

use super::Work;
use super::calls::Reply;

/// Work whose reply the actor waits for. A panic in it becomes its reply, so that nothing waits for it for ever.
pub(super) struct Task(BoxFuture<'static, Reply>);

impl Task {
    /// `reply` is called with the result of `work`: with a failure if that panics.
    pub(super) fn new<T: 'static>(
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
        reply: impl FnOnce(Result<T, Failure>) -> Reply + Send + 'static,
    ) -> Self {
        let work = AssertUnwindSafe(work).catch_unwind();
        Self(Box::pin(work.map(move |result| reply(result.unwrap_or_else(|_| Err(bug()))))))
    }
}

impl Work {
    /// Starts a task for the present request.
    pub(super) fn spawn(&mut self, task: Task) {
        let task = self.actor.backends.caches.threads.within(&self.stack.project, task.0);
        self.tasks.spawn(task.instrument(self.span.present()));
    }

    /// The reply of a task that has nothing to wait for; any other task is started.
    pub(super) fn reply_or_spawn(&mut self, mut task: Task) -> Option<Reply> {
        let reply = (&mut task.0).now_or_never();
        if reply.is_none() {
            self.spawn(task);
        }
        reply
    }
}
