//! Topology languages: blueprints, CAMP plans and TOSCA service templates.
//!
//! The readers ([`blueprint`], [`camp`]) turn texts into models whose errors have the path in the file of the user. Like
//! all crates of languages, this one has no I/O.

pub mod answer;
pub mod author;
pub mod blueprint;
pub mod camp;
pub mod check;
mod circle;
pub mod graph;
pub mod lower;
pub mod original;
pub mod package;
pub mod question;
mod refusal;
pub mod tosca;
pub mod type_file;
pub mod upload;
pub mod user_file;

pub use refusal::Refusal;
pub use type_file::TypeFiles;
pub use user_file::UserFile;
