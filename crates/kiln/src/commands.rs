//! The commands, one file per noun.

pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod confirm;
pub(crate) mod demo;
pub(crate) mod heat_manage;
pub(crate) mod heat_status;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod manage;
pub(crate) mod orphan;
pub(crate) mod oslo_options;
pub(crate) mod resource_type;
pub(crate) mod serve;
pub(crate) mod software;
pub(crate) mod stack;
pub(crate) mod template;
pub(crate) mod testcloud;
