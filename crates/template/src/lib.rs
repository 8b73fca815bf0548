//! The template languages HOT and CFN.
//!
//! A [`Template`] is a value with a known version. Together with [`parameter::Parameters`] and [`Files`] it becomes a
//! [`Bound`], which provides conditions, [`Definition`]s of resources and [`Output`]s. Their parts are [`Expr`]essions,
//! which are parsed once and evaluated repeatedly in a [`Scope`] that knows the resources. This crate does no I/O.

mod bound;
mod condition;
pub mod constraint;
mod definition;
pub mod environment;
mod expr;
mod function;
mod group;
pub mod hint;
pub mod identity;
mod moved;
mod output;
pub mod parameter;
pub mod property_place;
mod renamed;
mod scope;
pub mod source;
mod template;
mod validate;
pub mod version;

pub use bound::Bound;
pub use condition::Conditions;
pub use definition::{Definition, DeletionPolicy};
pub use expr::{AttributeUse, Expr, Partial, Wanted};
pub use function::{Arguments, Example, FunctionInfo, all_functions, functions, has_call, is_call};
pub use group::ParameterGroup;
pub use identity::StackIdentity;
pub use kiln_yaql::Limits as YaqlLimits;
pub use moved::Move;
pub use output::Output;
pub use property_place::PropertyPlace;
pub use renamed::renamed;
pub use scope::{Facade, ResourceView, Scope, Unbuilt, select};
pub use template::{Files, Template};
pub use version::{Release, Version};
