//! Authentication and authorization.

mod keystone;
mod policy;
mod real;
