//! OS::Octavia::Pool

use async_trait::async_trait;
use kiln_resource::Facts;
use kiln_value::{Diagnostic, Value};

use crate::rest::Shape;
use crate::validation::{failed, one_of};

/// A pool of servers.
pub(super) struct Pool;

#[async_trait]
impl Shape for Pool {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        one_of(facts, "listener", "loadbalancer")?;
        let persistence = facts.property("session_persistence");
        let has_cookie = persistence.get("cookie_name").is_some_and(Value::is_truthy);
        match persistence.str_at("type") {
            Some("APP_COOKIE") if !has_cookie => {
                Err(failed("Property cookie_name is required when session_persistence type is set to APP_COOKIE."))
            }
            Some("SOURCE_IP") if has_cookie => Err(failed(
                "Property cookie_name must NOT be specified when session_persistence type is set to SOURCE_IP.",
            )),
            _ => Ok(()),
        }
    }
}
