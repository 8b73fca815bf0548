//! OS::Neutron::SecurityGroup

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value};

use super::rules;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// A security group with its rules.
pub(super) struct SecurityGroup;

const RULES: &str = "rules";

#[async_trait]
impl Shape for SecurityGroup {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property(RULES).is_truthy()
    }

    fn note(&self, object: &Value) -> Value {
        rules::of(object)
    }

    fn keep(&self, facts: &Facts, object: &Value) -> Map {
        rules::keep(object, facts.property(RULES))
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, noted: &Value) -> Result<(), Failure> {
        match cx.facts.property(RULES) {
            rules if rules.is_truthy() => rules::set(cx, id, rules, noted).await,
            _ => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get(RULES) {
            Some(rules) => rules::set(cx, id, rules, &Value::Null).await,
            None => Ok(()),
        }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let rules = rules::live(cx, object, cx.facts.property(RULES)).await?;
        live.extend(rules.map(|rules| (RULES.to_owned(), rules)));
        Ok(())
    }

    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        Ok(Map::from([(RULES.to_owned(), rules::expected(cx, cx.facts.property(RULES)).await?)]))
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("name").as_str() == Some("default") {
            return Err(failed("Security groups cannot be assigned the name \"default\"."));
        }
        Ok(())
    }
}
