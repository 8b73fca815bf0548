//! The REST API, driven through the real router.

mod reference;
mod stacks;
mod support;
