//! Who calls, and what they may.
//!
//! [`Identity`] turns a request's headers into a [`Caller`]: [`Keystone`] asks a Keystone, [`Local`] knows one user
//! and no token. A [`DelegationPlan`] says what lets a stack act for its user, before that is made. [`Policy`] says what a caller may do: Heat's default rules, changed by an operator's `policy.yaml`.

mod caller;
mod delegation;
mod identity;
mod keystone;
mod local;
pub mod policy;
mod trust;

pub use caller::Caller;
pub use delegation::{DelegationPlan, PlanError};
pub use identity::{DelegateError, Denied, Identity};
pub use keystone::{Keystone, KeystoneOptions};
pub use local::Local;
pub use policy::{Policy, PolicyError};
