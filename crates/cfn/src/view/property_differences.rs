//! Differences between resources and their objects.

use std::fmt::Write as _;

use kiln_value::{Value, text, value};
use kiln_view::stack_drift::{Drift, PropertyDrift, ResourceDrift, StackDrift};

use super::{arn, instant};
use crate::call::Call;
use crate::fault::Fault;

/// A resource.
pub(crate) fn resource(call: &Call, compared: &StackDrift, one: &ResourceDrift) -> Value {
    let (status, reason) = one.drift.status();
    let differences = if let Drift::Modified(differences) = &one.drift { differences.as_slice() } else { &[] };
    // As in AWS, only for resources that were compared.
    let (mut expected, mut actual) = (None, None);
    if matches!(one.drift, Drift::InSync | Drift::Modified(_)) {
        let stored = one.row.properties().clone();
        let mut live = stored.clone();
        live.extend(differences.iter().map(|one| (one.name.clone(), one.actual.clone())));
        live.retain(|_, value| !value.is_null());
        (expected, actual) = (Some(text::json(&Value::Map(stored))), Some(text::json(&Value::Map(live))));
    }
    let differences: Vec<Value> = differences.iter().map(difference).collect();
    value!({
        "StackId": (arn(&compared.stack, "")),
        "LogicalResourceId": (&one.row.name),
        "PhysicalResourceId": (one.row.physical_id.clone()),
        "ResourceType": (&one.row.resource_type),
        "ExpectedProperties": expected,
        "ActualProperties": actual,
        "PropertyDifferences": differences,
        "StackResourceDriftStatus": status,
        "DriftStatusReason": reason,
        "Timestamp": (instant(call.backends().clock.now())),
    })
}

fn difference(one: &PropertyDrift) -> Value {
    let kind = if one.actual.is_null() { "REMOVE" } else { "NOT_EQUAL" };
    value!({
        "PropertyPath": (format!("/{}", one.name.replace('~', "~0").replace('/', "~1"))),
        "ExpectedValue": (plain(&one.expected)),
        "ActualValue": (plain(&one.actual)),
        "DifferenceType": kind,
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::Map(_) | Value::List(_) => text::json(value),
        other => text::str(other),
    }
}

/// The ID of a detection: that of the stack, and the names of the resources if it has only some. Kiln compares when it
/// is asked for the result, so there is nothing to store.
pub(crate) fn detection(stack: &kiln_store::Stack, names: &[&str]) -> String {
    let mut id = stack.id.to_string();
    for name in names {
        _ = write!(id, ":{}", percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC));
    }
    id
}

/// The stack and the names of a detection.
pub(crate) fn of_detection(id: &str) -> Result<(String, Vec<String>), Fault> {
    let unknown = || Fault::validation(format!("Stack drift detection id {id} does not exist"));
    let mut parts = id.split(':');
    let stack = parts.next().filter(|stack| stack.parse::<kiln_store::StackId>().is_ok()).ok_or_else(unknown)?;
    let names = parts.map(|name| {
        let name = percent_encoding::percent_decode_str(name).decode_utf8().map_err(|_| unknown())?;
        Ok(name.into_owned())
    });
    Ok((stack.to_owned(), names.collect::<Result<_, Fault>>()?))
}
