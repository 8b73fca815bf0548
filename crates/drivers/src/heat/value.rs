//! `OS::Heat::Value`: holds a value with an optional type.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, PropertySchema, Step, TypeRules, properties};
use kiln_template::constraint::DataType;
use kiln_value::{Diagnostic, Map, Value};

/// The type's driver.
pub(super) struct HeatValue;

/// The schema of `value` for the property `type`; `None` if any value is valid.
fn schema(facts: &Facts) -> Option<PropertySchema> {
    let kind = match facts.property("type").as_str()? {
        "string" => DataType::String,
        "number" => DataType::Number,
        "comma_delimited_list" => DataType::List,
        "json" => DataType::Map,
        "boolean" => DataType::Boolean,
        _ => return None,
    };
    Some(PropertySchema::new(kind))
}

fn typed(facts: &Facts) -> Result<Value, Diagnostic> {
    match schema(facts) {
        Some(schema) => properties::value("value", &schema, &facts.properties),
        None => Ok(facts.property("value").clone()),
    }
}

impl TypeRules for HeatValue {
    fn foreseen(&self, facts: &Facts, name: &str) -> Option<Value> {
        (name == "value").then(|| facts.property("value").clone())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        // Null may be a value that is not known yet.
        if facts.property("value").is_null() {
            return Ok(());
        }
        typed(facts).map(|_| ()).map_err(|error| {
            let path = kiln_value::Path::root().key("resources").key(&facts.name).key("properties").key("value");
            Diagnostic::of_property(&path, error.text.as_str())
        })
    }
}

#[async_trait]
impl Driver for HeatValue {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => Step::done().id(&cx.facts.physical_name),
            _ => Step::done(),
        })
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        // The value is only checked against the type, not converted.
        let value = cx.facts.property("value");
        Ok(names.iter().filter(|name| **name == "value").map(|name| ((*name).to_owned(), value.clone())).collect())
    }
}
