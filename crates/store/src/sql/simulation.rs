//! A store in a simulation: its time and its IDs are given, and no virtual time passes while the database works.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use sea_orm::sea_query::Expr;
use uuid::Uuid;

use super::columns::micros;
use super::dialect::Dialect;
use crate::memory::DatabaseClock;

/// The time and the IDs of a simulation.
#[derive(Clone)]
pub struct Simulation {
    clock: DatabaseClock,
    /// The last ID.
    last: Arc<AtomicU64>,
}

impl Simulation {
    /// A simulation with this clock of the database.
    pub fn new(clock: DatabaseClock) -> Self {
        Self { clock, last: Arc::default() }
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// What a store has from outside: the clock by which it judges times, and randomness.
#[derive(Clone, Debug)]
pub(super) enum Outside {
    /// The clock of the database, and the randomness of the system.
    Real(Dialect),
    Simulated(Simulation),
}

impl Outside {
    pub(super) fn new(dialect: Dialect, simulation: Option<Simulation>) -> Self {
        simulation.map_or(Self::Real(dialect), Self::Simulated)
    }

    /// The present time in a statement: microseconds since 1970.
    pub(super) fn now(&self) -> Expr {
        match self {
            Self::Real(dialect) => dialect.now(),
            Self::Simulated(simulation) => Expr::val(micros((simulation.clock)())),
        }
    }

    /// An ID that nobody can guess.
    pub(super) fn uuid(&self) -> Uuid {
        match self {
            #[expect(clippy::disallowed_methods, reason = "simulations have IDs of their own")]
            Self::Real(_) => Uuid::new_v4(),
            Self::Simulated(simulation) => Uuid::from_u64_pair(0, simulation.last.fetch_add(1, Ordering::Relaxed) + 1),
        }
    }
}

/// Lets this thread wait for the answer of a database whose connections have threads of their own. A runtime with virtual time
/// would find all tasks idle, and advance its clock.
pub(super) fn block_on<T>(answer: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut answer, mut context) = (pin!(answer), Context::from_waker(&waker));
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
