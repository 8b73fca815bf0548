//! Simple REST resources: one driver for all types with a `rest` section in their definition.

mod adopt;
mod body;
mod driver;
mod shape;

pub(crate) use driver::RestDriver;
pub(crate) use shape::{Edit, Shape};
