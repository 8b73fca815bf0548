//! Executes plans: an actor for each stack with work, under a lease, with every step stored.
//!
//! An [`Engine`] claims stacks, a [`View`] shows them. All dependencies are behind traits, passed in [`Backends`].

mod actor;
pub mod backends;
mod breakdown;
mod child;
pub mod clock;
pub mod clouds;
mod courier;
pub mod drift;
pub mod engine;
pub mod export;
mod fence;
mod gather;
mod handover;
mod heartbeat;
pub mod housekeeping;
mod lifecycle;
mod listing;
pub mod load;
mod lru;
mod mark;
pub mod meaning;
pub mod observer;
mod options;
pub mod preview;
mod retry;
mod room;
mod sizes;
mod software;
mod source_cache;
mod stack_cache;
mod step;
mod turns;
pub mod unmarked;
mod view;
mod view_cache;

pub use backends::{Backends, Caches};
pub use clock::{Chance, Clock, StoreClock, SystemClock};
pub use clouds::{Clouds, NoCloud};
pub use courier::{Message, MessageBus};
pub use engine::Engine;
pub use export::export;
pub use lifecycle::LifecyclePlugin;
pub use listing::Listing;
pub use options::Options;
pub use preview::{PlannedChange, Preview, preview};
pub use software::{metadata_of, plan_push, push_metadata, pushed_server};
pub use source_cache::SourceCache;
pub use stack_cache::StackCache;
pub use turns::{Turns, threads};
pub use view::{OutputValue, View};
pub use view_cache::ViewCache;
