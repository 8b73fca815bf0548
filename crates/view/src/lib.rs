//! What clients see of stacks beside their rows: lists, the differences from their objects, and what a request would change.

pub mod import;
mod listing;
pub mod observed_object;
pub mod plan_document;
pub mod preflight;
pub mod preview;
mod reading_cloud;
mod recent;
mod stack_cache;
pub mod stack_drift;

pub use listing::{Listing, listed};
pub use preview::{PlannedChange, Preview, Terms, preview};
pub use recent::{Outline, RecentReads};
pub use stack_cache::StackCache;
