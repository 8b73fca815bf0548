//! Objects that exist become resources: what there is in a project, a template for it, and whether it has what a template
//! says.

mod compare;
pub(crate) mod kind;
mod scan;
mod write;

pub use compare::{ComparedObject, compare};
pub use scan::{FoundObject, ObjectKey, Scan, scan, scanned_types};
pub use write::{Written, WrittenResource, write};
