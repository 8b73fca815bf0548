//! The CloudFormation query API, for boto3, the AWS command line and agents in servers.
//!
//! [`Cfn`] reads requests, checks signatures and the policy by action, and writes XML or JSON;
//! [`kiln_service::Service`] executes the use cases, which the REST API shares. `action/` contains one file per action,
//! `view/` the formats of objects.

#[cfg(test)]
extern crate self as kiln_cfn; // for tests/query/support.rs

mod action;
mod call;
mod cfn;
mod fault;
mod generated_template;
mod input;
mod options;
mod page;
mod params;
mod reply;
mod resource_scan;
mod signal;
mod stack_refactor;
#[cfg(test)]
#[path = "../tests/query/support.rs"]
#[expect(dead_code, reason = "the tests of actions use less of it than those in tests/query")]
mod support;
mod token;
mod view;
mod worksheet;
mod xml;

pub use cfn::{Cfn, Parts};
pub use options::Options;
