//! Sessions against a made-up wire: tokens, repetition, limits, outages.

mod answers;
mod outages;
mod services;
mod tokens;
mod wire;
