//! Authentication and authorization.
//!
//! [`Identity`] converts the headers of a request to a [`Caller`]: [`Keystone`] uses a Keystone, [`Local`] has one user
//! without a token. A [`SignedRequest`] is signed with an EC2 key instead of a token. A [`DelegationPlan`] describes a
//! trust before it is created. [`Policy`] contains Heat's default rules, changed by the operator's `policy.yaml`.

mod caller;
mod delegation;
mod identity;
mod keystone;
mod local;
mod login;
pub mod policy;
mod signature;
mod trust;

pub use caller::Caller;
pub use delegation::{DelegationPlan, PlanError};
pub use identity::{DelegateError, Denied, Identity};
pub use keystone::{Deferred, Keystone, KeystoneOptions};
pub use local::Local;
pub use login::Login;
pub use policy::{DefaultCheck, DefaultRule, Policy, PolicyError, rules_of_heat};
pub use signature::{SignatureError, SignedRequest, access_key};
