//! The shapes that clients see, shared by endpoints.

pub(crate) mod event;
pub(crate) mod instant;
pub(crate) mod output;
pub(crate) mod resource;
pub(crate) mod stack;
