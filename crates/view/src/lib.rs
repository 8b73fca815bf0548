//! What clients see of stacks beside their rows: lists, the differences from their objects, and what a request would change.

pub mod drift;
mod listing;
pub mod preview;

pub use listing::Listing;
pub use preview::{PlannedChange, Preview, preview};
