//! HOT and CFN.

pub mod constraint;
pub mod parameter;
