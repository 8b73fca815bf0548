//! Sessions with a fake transport: tokens, retries, limits, outages.

mod answers;
mod found;
mod outages;
mod services;
mod shared_reads;
mod tokens;
mod wire;
