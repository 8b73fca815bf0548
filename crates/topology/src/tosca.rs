//! TOSCA: service templates of the Simple Profile 1.0 to 1.3, of the NFV profile (SOL001) and of TOSCA 2.0.
//!
//! Source of the behaviour: the specifications of OASIS; where they are silent or ambiguous, openstack/tosca-parser 2.15.
//! [`read`] finds all errors of a template and its imports at once.

mod checker;
mod function;
mod import;
mod model;
mod node;
mod policy;
mod reader;
mod relation;
mod scalar;
mod schema;
mod substitution;
mod template;
mod types;
mod version_2;

pub use import::Files;

pub(crate) use checker::{Names, TypeChecker};
pub(crate) use function::{arguments, call};
pub(crate) use import::{join, with_imports};
pub(crate) use node::STANDARD_OPERATIONS;
pub(crate) use scalar::Scalar;
pub(crate) use schema::is_required;
pub(crate) use template::TOPOLOGY;
pub use template::{Template, read, read_with};
pub(crate) use types::{Definitions, Section, Types};
