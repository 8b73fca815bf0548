//! The use cases of the store, on every database.

mod bed;
mod make;
mod requests;
