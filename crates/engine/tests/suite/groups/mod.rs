//! Groups in a stack: batches, sizes, scaling.

mod batches;
pub(crate) mod bench;
mod instances;
mod lifecycle;
mod planned;
mod preflight;
mod room;
mod scaling;
mod sizes;
