//! Validates a template and describes its parameters.

use kiln_service::StackContent;
use kiln_value::{Map, Value, text, value};

use crate::call::Call;
use crate::fault::Fault;
use crate::input;

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let template = input::template(&call.params, &call.service().options.limits)?;
    let template = template.ok_or_else(input::no_template)?;
    let sections = input::Parameters::default().sections()?;
    let content = StackContent { sections, ..StackContent::default() };
    let validated = call.service().validate_template(&call.caller, &template, content, false, false).await?;
    let parameters: Value = validated.summary.parameters.iter().map(|(name, about)| parameter(name, about)).collect();
    Ok(value!({ "Description": (&validated.summary.description), "Parameters": parameters }))
}

fn parameter(name: &str, about: &Value) -> Value {
    let mut shown = Map::from([("ParameterKey".to_owned(), name.into())]);
    let default = about.get("Default").map(|default| match default {
        Value::Map(_) | Value::List(_) => text::json(default),
        other => text::str(other),
    });
    shown.extend(default.map(|default| ("DefaultValue".to_owned(), default.into())));
    for key in ["Description", "NoEcho"] {
        shown.insert(key.to_owned(), about.get(key).cloned().unwrap_or_default());
    }
    shown.into()
}
