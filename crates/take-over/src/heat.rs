//! The database of Heat: what is in its tables, as it is there.

mod cipher;
mod database;
mod decoding;
mod rows;

pub use cipher::{CipherError, HeatKey};
pub(crate) use database::Listed;
pub use database::{HeatDatabase, Release};

pub use rows::HeatTree;
pub(crate) use rows::{
    HeatCredentials, HeatEvent, HeatProperties, HeatResource, HeatSoftware, HeatStack, HeatTemplate, StoredData,
};
