//! Groups in a stack: batches, sizes, scaling.

mod batches;
mod bench;
mod instances;
mod room;
mod scaling;
