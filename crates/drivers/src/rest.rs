//! Plain REST nouns: one driver for all types whose definition has a `rest` part.

mod adopt;
mod body;
mod driver;
mod shape;

pub(crate) use driver::RestDriver;
pub(crate) use shape::{Edit, Shape};
