//! The use cases of the store, on every database.

mod bed;
mod commits;
mod doorbell;
mod housekeeping;
mod leases;
mod lists;
mod make;
mod requests;
