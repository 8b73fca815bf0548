//! Kiln as it runs in production: `kiln api` and `kiln engine` as processes of their own on one database, beside a
//! simulated cloud. Engines die, freeze and are restarted.
//!
//! `types` makes stacks of every type. `crash` kills the only engine in the middle of each action. `storm` has three engines, several users and hundreds of
//! stacks; it is run on request, on the servers of `crates/store/tests/databases.sh`:
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test processes -- --ignored --nocapture short   # 90 s each
//! crates/store/tests/databases.sh cargo test -p kiln --test processes -- --ignored --nocapture long    # 200 stacks
//! ```

mod cluster;
mod crash;
mod nested;
mod process;
mod remote;
mod replacement;
mod storm;
mod types;
mod wanted;
