//! The table of all options that Kiln reads.

pub(crate) mod clouds;
pub(crate) mod kiln;
pub(crate) mod messages;
pub(crate) mod server;
pub(crate) mod stacks;

use super::option::ConfigOption;

/// Defines options and the table of them.
macro_rules! options {
    ($($id:ident = $option:expr;)*) => {
        $(pub(crate) static $id: ConfigOption = $option;)*
        /// All options of this module.
        pub(crate) static TABLE: &[&ConfigOption] = &[$(&$id),*];
    };
}
use options;

/// All options, in the order of the reference.
pub(crate) fn all() -> impl Iterator<Item = &'static ConfigOption> {
    [stacks::TABLE, server::TABLE, clouds::TABLE, messages::TABLE, kiln::TABLE].into_iter().flatten().copied()
}
