//! Sessions with a cloud.

mod real_cloud;
mod sessions;
