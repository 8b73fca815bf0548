//! `OS::Heat::AutoScalingGroup`: only its template, for validation. It cannot be created yet.

use kiln_resource::{Facts, Nested, NotImplemented};
use kiln_value::Map;

use super::members;

/// Members have random names in Heat; this one stands for any of them.
const MEMBER: &str = "aaaaaaaaaaaa";

/// The type's driver.
pub(super) const DRIVER: NotImplemented = NotImplemented { nested_draft, draft_needs: &["resource"] };

/// One member, whatever the size is: Heat validates and shows one.
fn nested_draft(facts: &Facts) -> Option<Nested> {
    let resource = facts.property("resource").as_map()?;
    let member = Map::from([(MEMBER.to_owned(), resource.clone().into())]);
    Some(Nested { template: members::template(member, Map::new()), ..Nested::default() })
}
