//! HTTP in the form that Heat's clients expect: paths, queries, bodies, responses.

pub(crate) mod body;
pub(crate) mod kept_list;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
pub(crate) mod stream;
mod upload;
pub(crate) mod watchers;
