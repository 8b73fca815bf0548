//! HTTP as Heat's clients know it: paths, queries, bodies, answers.

pub(crate) mod body;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
pub(crate) mod version;
