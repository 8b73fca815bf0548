//! Groups in a stack: batches, sizes, scaling.

mod batches;
mod bench;
mod scaling;
