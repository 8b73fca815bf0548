//! The database of Heat: what is in its tables, and how it is written there.

mod cipher;
mod database;
mod decoding;
mod rows;
mod writing;

pub(crate) use cipher::FERNET;
pub use cipher::{CipherError, HeatKey};
pub(crate) use database::Listed;
pub use database::{HeatDatabase, ReadTree, Release};

pub use rows::HeatTree;
pub(crate) use rows::{
    HeatConfig, HeatCredentials, HeatDeployment, HeatEvent, HeatProperties, HeatResource, HeatSnapshot, HeatSoftware,
    HeatStack, HeatTemplate, StoredData,
};
pub(crate) use writing::{delete_tree, write_software, write_tree};
