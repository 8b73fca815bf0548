//! Formats that several endpoints share.

pub(crate) mod event;
pub(crate) mod instant;
pub(crate) mod meaning;
pub(crate) mod output;
pub(crate) mod plan_document;
pub(crate) mod planned;
pub(crate) mod resource;
pub(crate) mod resource_list;
pub(crate) mod snapshot;
pub(crate) mod stack;
