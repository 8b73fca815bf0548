//! Kiln as in production: `kiln api` and `kiln engine` as separate processes with one database and a simulated cloud.
//! Engines are killed, frozen and restarted.
//!
//! `plugins` creates stacks of types that child processes implement. `crash` kills the only engine during each action,
//! `planned` also the API while a plan is executed, `take_over` one of two engines, `lost_node` a node of a Galera cluster of
//! three. In `stopped_database` and `silent_proxy` the database is silent, in `slow_commit` one commit is slow.
//! `storm` has three engines, several users and hundreds of stacks; it runs on request, on the servers of
//! `crates/store/tests/databases.sh`:
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored --nocapture short   # 90 s each
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored --nocapture long    # 200 stacks
//! ```

pub(crate) mod cluster;
mod converge;
mod crash;
mod drift_plans;
mod drift_watch;
mod heavy;
mod impossible_ids;
mod kept;
mod lifecycle;
mod lost_node;
mod lowered;
mod many_servers;
mod moved;
mod named;
mod nested;
mod notifications;
mod packets;
mod passwords;
mod planned;
mod plugins;
mod process;
mod proxy;
mod python_plugins;
mod refactored;
mod remote;
mod renamed;
mod replacement;
mod saved;
mod scheduler_hints;
mod silent_proxy;
mod sinks;
mod slow_commit;
mod stopped_database;
mod storm;
mod take_over;
mod tokens;
mod traces;
mod wanted;
