//! Tests of the store's interface, on every database.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]
#![expect(clippy::disallowed_methods, reason = "ids of their own keep tests apart; leases run by the real clock")]

mod answers;
mod bed;
mod brief;
mod claims;
mod commits;
mod credentials;
mod doorbell;
mod drift;
mod dropped;
mod durations;
mod encryption;
mod full_disk;
mod guards;
mod housekeeping;
mod inbox;
mod large;
mod leases;
mod lists;
mod lost;
mod make;
mod model;
mod operations;
mod orphans;
mod outbox;
mod owners;
mod packets;
mod plans;
mod proxy;
mod quotas;
mod recycled;
mod refactor;
mod requests;
mod reset;
mod schema;
mod shared_reads;
mod silent;
mod slow_commits;
mod snapshots;
mod software;
mod webhooks;
mod worksheets;
