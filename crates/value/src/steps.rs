//! The steps of everything that a request makes Kiln compute: patterns, YAQL, functions of templates.
//!
//! Each of these has a limit of its own, but a request may contain thousands of them. They all take their steps from the
//! account that is open while they run, without being handed one. Steps are counted, not time: every process must come
//! to the same result.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Class, Diagnostic};

/// Usual maximum number of steps of a request: that of a pattern takes some 10 ns.
pub const MOST: usize = 250_000_000;

/// The steps of a request.
#[derive(Debug)]
struct Account {
    most: usize,
    left: AtomicUsize,
}

thread_local! {
    static OPEN: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

/// Why something ends: the request takes too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    most: usize,
}

impl Exhausted {
    /// The error.
    pub fn report(self) -> Diagnostic {
        Diagnostic::new(Class::RequestLimitExceeded, self.to_string())
    }
}

impl std::fmt::Display for Exhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = self.most;
        write!(f, "Request limit exceeded: The patterns, expressions and functions take more than {most} steps in all")
    }
}

/// Closes an account, also after a panic.
struct Closing(Option<Arc<Account>>);

impl Drop for Closing {
    fn drop(&mut self) {
        OPEN.with(|open| open.replace(self.0.take()));
    }
}

impl Account {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, left: AtomicUsize::new(most) })
    }

    /// Runs a function with this account open.
    fn within<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let _closing = Closing(OPEN.with(|open| open.replace(Some(Arc::clone(self)))));
        work()
    }
}

/// Runs the work of a request with an account of so many steps, which is open whenever the work runs.
pub fn metered<F: Future>(most: usize, work: F) -> impl Future<Output = F::Output> {
    let account = Account::new(most);
    let mut work = Box::pin(work);
    std::future::poll_fn(move |cx| account.within(|| work.as_mut().poll(cx)))
}

/// Runs a function with the open account, or with one of [`MOST`] steps if there is none.
pub fn bounded<T>(work: impl FnOnce() -> T) -> T {
    if current().is_some() { work() } else { Account::new(MOST).within(work) }
}

/// Runs a function with an account of so many steps.
///
/// # Errors
/// If there are too few steps.
pub fn within<T>(most: usize, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    Account::new(most).within(|| {
        let done = work();
        check().map(|()| done)
    })
}

/// Work of a task of its own, with the account that is open here.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let account = current();
    let mut work = Box::pin(work);
    std::future::poll_fn(move |cx| match &account {
        Some(account) => account.within(|| work.as_mut().poll(cx)),
        None => work.as_mut().poll(cx),
    })
}

fn current() -> Option<Arc<Account>> {
    OPEN.with(|open| open.borrow().clone())
}

/// The number of steps that are left.
pub(crate) fn left() -> usize {
    current().map_or(usize::MAX, |account| account.left.load(Ordering::Relaxed))
}

/// Takes steps from the open account. When there are too few, none are left.
///
/// # Errors
/// If the account is exhausted.
pub fn spend(steps: usize) -> Result<(), Exhausted> {
    let Some(account) = current() else { return Ok(()) };
    let rest = |left: usize| Some(left.saturating_sub(steps));
    let before = account.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
    if before.is_ok_and(|left| left > steps) { Ok(()) } else { Err(Exhausted { most: account.most }) }
}

/// Whether the open account is exhausted: results since then may be incomplete.
///
/// # Errors
/// If it is exhausted.
pub fn check() -> Result<(), Exhausted> {
    spend(0)
}
