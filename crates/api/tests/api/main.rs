//! The REST API, driven through the real router.

mod availability;
mod groups;
mod nested;
mod reference;
mod stacks;
mod support;
