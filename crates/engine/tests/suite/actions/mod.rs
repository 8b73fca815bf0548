//! Actions on stacks besides create, update and delete, with an engine and a database in memory.

mod adopt;
mod attributes;
mod bench;
mod hooks;
mod orphans;
mod rollback;
mod snapshots;
mod views;
