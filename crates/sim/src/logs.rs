//! Adds the log of the engines to the trace.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Once};

use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::prelude::*;

use crate::simulation::Simulation;

thread_local! {
    /// The run of this thread whose log is recorded.
    static TRACED: RefCell<Option<Arc<Simulation>>> = const { RefCell::new(None) };
}

/// Records the log of this thread until it is dropped.
pub(crate) struct Collecting;

impl Drop for Collecting {
    fn drop(&mut self) {
        TRACED.set(None);
    }
}

/// Adds the log of this thread to the trace until the guard is dropped. All threads share one subscriber: with one per
/// thread, the log would depend on other runs.
pub(crate) fn collect(sim: &Arc<Simulation>) -> Collecting {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let wanted = dynamic_filter_fn(|event, _| {
            *event.level() <= tracing::Level::DEBUG && TRACED.with_borrow(Option::is_some)
        });
        let lines = tracing_subscriber::fmt::layer().without_time().with_ansi(false).with_writer(|| Lines);
        // This fails only if another subscriber is set.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines.with_filter(wanted)));
    });
    TRACED.set(Some(Arc::clone(sim)));
    Collecting
}

struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        TRACED.with_borrow(|sim| {
            for (sim, line) in text.lines().filter_map(|line| Some((sim.as_ref()?, line))) {
                sim.trace.note("log", || line.trim().to_owned());
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
