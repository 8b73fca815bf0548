//! The engines' own log, as lines of the trace.

use std::io;
use std::sync::Arc;

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::World;

/// Takes the log of this thread into the trace while the guard lives.
pub(crate) fn collect(world: &Arc<World>) -> DefaultGuard {
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(Lines(Arc::clone(world)))
        .finish();
    tracing::subscriber::set_default(subscriber)
}

#[derive(Clone)]
struct Lines(Arc<World>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            self.0.trace.note("log", || line.trim().to_owned());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
