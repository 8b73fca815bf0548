//! Sessions against a made-up wire: tokens, repetition, limits, outages.

mod answers;
mod outages;
mod tokens;
mod wire;
