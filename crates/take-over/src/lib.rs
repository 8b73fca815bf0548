//! Takes stacks of Heat over: reads its database and converts its stacks to those of Kiln.
//!
//! [`HeatDatabase`] reads a tree of stacks as it is at one moment, [`Converter`] makes of it what Kiln stores, or says what
//! stands in the way. [`Import`] stores it beside Kiln's own stacks, where it belongs to Heat until [`Switch`]. Only [`CloudCheck`]
//! calls the cloud.

mod client_view;
mod cloud_check;
mod compare;
mod convert;
mod export;
mod finding;
mod finish;
mod first_day;
mod heat;
mod import;
mod inventory;
mod kiln_tree;
mod resource_data;
mod switch;
mod tree_in_memory;
mod trees;
mod way_back;

pub use client_view::{BothViews, ClientView, KilnView};
pub use cloud_check::{CloudCheck, CloudFindings};
pub use compare::{Comparison, compare};
pub use convert::{Converted, Converter};
pub use export::{Exported, Exporter};
pub use finding::{Finding, Grade, reasons};
pub use finish::Finish;
pub use first_day::{Change, FirstDay};
pub use heat::{CipherError, HeatDatabase, HeatKey, HeatTree, ReadTree, Release};
pub use import::{Import, Imported, Outcome};
pub use inventory::{Inventory, ProjectInventory, inventory};
pub use switch::{Returned, Switch, Switched};
pub use trees::{Selection, Tree};
