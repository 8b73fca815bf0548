//! The table of all options that Kiln reads.

pub mod clouds;
pub mod kiln;
pub mod messages;
pub mod server;
pub mod stacks;
pub mod vault;
pub mod webhooks;

use super::option::ConfigOption;

/// Defines options and the table of them.
macro_rules! options {
    ($($id:ident = $option:expr;)*) => {
        $(#[doc = concat!("The option `", stringify!($id), "`.")]
        pub static $id: ConfigOption = $option;)*
        /// All options of this module.
        pub static TABLE: &[&ConfigOption] = &[$(&$id),*];
    };
}
use options;

/// All options, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static ConfigOption> {
    [stacks::TABLE, server::TABLE, clouds::TABLE, messages::TABLE, webhooks::TABLE, vault::TABLE, kiln::TABLE]
        .into_iter()
        .flatten()
        .copied()
}
