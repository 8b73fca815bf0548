//! `GET /resource_types`.

use axum::response::Response;
use kiln_resource::ResourceType;
use kiln_value::regex::Pattern;
use kiln_value::{Value, value};

use crate::availability::Availability;
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

/// The words that `support_status` may be.
const STATUSES: [&str; 5] = ["UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"];

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_resource_types")?;
    let with_description = match call.query.given("with_description") {
        Some(text) => crate::http::query::boolean("with_description", &text.into())?,
        None => false,
    };
    let status = call.query.given("support_status");
    if status.is_some_and(|status| !STATUSES.contains(&status)) {
        let words = STATUSES.map(|word| format!("'{word}'")).join(", ");
        let reason = format!("Invalid support status and should be one of ({words})");
        return Err(ApiError::new("Invalid", format!("Data supplied was not valid: {reason}")));
    }
    let version = call.query.given("version");
    // Matched from the start of the name; what is no expression matches nothing.
    let pattern = call.query.given("name").map(|name| Pattern::new(name).ok());
    let matches = |name: &str| match &pattern {
        None => true,
        Some(Some(pattern)) => pattern.match_end(name).is_ok_and(|end| end.is_some()),
        Some(None) => false,
    };
    let catalog = &call.api.backends.resource_types;
    let wanted = |resource_type: &&ResourceType| {
        let support = &resource_type.support;
        !support.is_hidden()
            && status.is_none_or(|status| status == support.status.name())
            && version.is_none_or(|version| support.version.as_deref() == Some(version))
            && matches(&resource_type.name)
            && call.api.policy.allows_type(&resource_type.name, &call.caller)
    };
    let types: Vec<_> = catalog.shown().filter(wanted).collect();
    let availability = Availability::of(call, types.iter().copied()).await;
    let types = types.into_iter().filter(|resource_type| availability.has(resource_type));
    let types: Value = types.map(|resource_type| entry(resource_type, with_description)).collect();
    Ok(reply::json(&value!({ "resource_types": types })))
}

fn entry(resource_type: &ResourceType, with_description: bool) -> Value {
    let name = Value::from(&resource_type.name);
    if with_description {
        return value!({ "resource_type": name, "description": (&resource_type.summary) });
    }
    name
}
