//! Runs plans: an actor for each stack that has work, under a lease, one stored step at a time.
//!
//! An [`Engine`] claims stacks, [`View`] shows them. Everything outside is behind traits, given in a [`Backends`].

mod actor;
pub mod clock;
pub mod clouds;
pub mod engine;
mod gather;
pub mod housekeeping;
pub mod load;
mod operation;
pub mod options;
pub mod preview;
pub mod view;

pub use clock::{Chance, Clock, SystemClock};
pub use clouds::{Clouds, NoCloud};
pub use engine::{Backends, Engine};
pub use options::Options;
pub use preview::{PlannedChange, Preview, preview};
pub use view::{OutputValue, View};
