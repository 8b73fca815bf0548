//! HOT and CFN.
