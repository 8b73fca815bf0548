//! The threads that a project may occupy at once.
//!
//! Templates are computed on the threads that also serve all other requests and stacks. A request may take seconds, so a
//! project that sent one for each thread would let all others wait. So the work of a project is polled on as many threads
//! as there are processors, and the process has one thread more: it loses nothing while it is alone, and others are served.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of processors.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The number of threads of a process that serves several projects.
pub fn threads() -> usize {
    processors() + 1
}

/// How many threads each project occupies.
#[derive(Debug)]
pub struct ProjectThreads {
    /// Most threads of a project.
    most: usize,
    of_projects: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// So many entries are kept before those without work are removed.
const KEPT: usize = 256;

impl Default for ProjectThreads {
    fn default() -> Self {
        Self::new(processors())
    }
}

impl ProjectThreads {
    fn new(most: usize) -> Self {
        Self { most, of_projects: Mutex::default() }
    }

    /// Work of a project, which is polled when one of its threads is free.
    pub fn within<F: Future>(&self, project: &str, work: F) -> OnFreeThread<F> {
        OnFreeThread { threads: self.of(project), next: None, work: Box::pin(work) }
    }

    fn of(&self, project: &str) -> Arc<Semaphore> {
        let mut projects = self.of_projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = projects.get(project).and_then(Weak::upgrade) {
            return threads;
        }
        if projects.len() >= KEPT {
            projects.retain(|_, threads| threads.strong_count() > 0);
        }
        let threads = Arc::new(Semaphore::new(self.most));
        projects.insert(project.to_owned(), Arc::downgrade(&threads));
        threads
    }
}

/// Work that is polled only when one of its threads is free.
pub struct OnFreeThread<F> {
    threads: Arc<Semaphore>,
    /// The next free thread, while the project occupies all its threads.
    next: Option<BoxFuture<'static, Option<OwnedSemaphorePermit>>>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for OnFreeThread<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _place = match (this.next.take(), Arc::clone(&this.threads).try_acquire_owned()) {
            (None, Ok(place)) => Some(place),
            (next, _) => {
                let threads = &this.threads;
                let mut next = next.unwrap_or_else(|| Arc::clone(threads).acquire_owned().map(Result::ok).boxed());
                match next.poll_unpin(cx) {
                    Poll::Ready(place) => place,
                    Poll::Pending => {
                        this.next = Some(next);
                        return Poll::Pending;
                    }
                }
            }
        };
        this.work.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A project that occupies its threads lets others go on, and its own work waits for a free one, also when a waiting one is
    /// given up.
    #[test]
    fn a_project_never_occupies_all_threads() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
        let threads = ProjectThreads::new(2);
        let (done, seen) = mpsc::channel();
        let (open, closed) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(0)));
        let gate = open.lock().unwrap();
        let heavy: Vec<_> = (0..6)
            .map(|_| {
                let (open, closed) = (Arc::clone(&open), Arc::clone(&closed));
                let work = threads.within("a", async move {
                    *closed.lock().unwrap() += 1;
                    drop(open.lock().unwrap());
                });
                runtime.spawn(work)
            })
            .collect();
        while *closed.lock().unwrap() < 2 {
            std::thread::yield_now();
        }
        // All threads of the project are blocked, and the third one serves another project.
        runtime.spawn(threads.within("b", async move { done.send(()).unwrap() }));
        seen.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(*closed.lock().unwrap(), 2);
        heavy[5].abort();
        drop(gate);
        runtime.block_on(async {
            for heavy in heavy {
                _ = heavy.await;
            }
        });
        assert!((5..=6).contains(&*closed.lock().unwrap()));
    }

    #[test]
    fn projects_without_work_are_forgotten() {
        let threads = ProjectThreads::new(1);
        let kept = threads.within("kept", async {});
        for number in 0..2 * KEPT {
            drop(threads.within(&number.to_string(), async {}));
        }
        let left = threads.of_projects.lock().unwrap();
        assert!(left.len() <= KEPT && left.contains_key("kept"));
        drop(kept);
    }
}
