//! The template languages HOT and CFN.
//!
//! A [`Template`] is a value whose version is known. Bound to [`parameter::Parameters`] and [`Files`] it is a
//! [`Bound`], from which conditions, [`Definition`]s of resources and [`Output`]s are read. Their parts are
//! [`Expr`]essions, parsed once and resolved as often as the stack moves on, against a [`Scope`] that knows the
//! resources. Nothing here waits or reads from anywhere.

mod bound;
mod condition;
pub mod constraint;
mod definition;
pub mod environment;
mod expr;
mod function;
mod group;
pub mod hint;
mod output;
pub mod parameter;
mod scope;
pub mod source;
mod template;
mod validate;
pub mod version;

pub use bound::Bound;
pub use condition::Conditions;
pub use definition::{Definition, DeletionPolicy};
pub use expr::{AttributeUse, Expr, Partial, Wanted};
pub use function::{FunctionInfo, functions};
pub use group::ParameterGroup;
pub use kiln_yaql::Limits as YaqlLimits;
pub use output::Output;
pub use scope::{Facade, ResourceView, Scope, Unbuilt, select};
pub use template::{Files, Template};
pub use version::{Release, Version};
