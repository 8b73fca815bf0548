//! A stack as it is read: its texts and rows, its objects in the cloud, and what the decisions about its resources need.
//!
//! The engine (`kiln_engine`) and the read model (`kiln_view`) are above it and do not know each other. All dependencies
//! are behind traits, passed in [`Backends`].

pub mod backends;
pub mod call_retry;
mod child;
pub mod clock;
pub mod clouds;
pub mod export;
pub mod gather;
pub mod guards;
pub mod hidden_values;
pub mod load;
pub mod loaded_stack;
pub mod lru;
pub mod mark;
pub mod meaning;
mod project_threads;
pub mod sizes;
mod source_cache;
mod stopwatch;
pub mod stored_software;

pub use backends::{Backends, Caches};
pub use clock::{Chance, Clock, StoreClock, SystemClock};
pub use clouds::{Clouds, NoCloud, UNUSED_AFTER};
pub use export::export;
pub use loaded_stack::{LoadedStack, OutputValue};
pub use project_threads::{ProjectThreads, threads};
pub use source_cache::SourceCache;
pub use stopwatch::Stopwatch;
