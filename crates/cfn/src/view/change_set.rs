//! Change sets.

use kiln_service::{ChangeEffect, Execution, Failure, PreparedChange, ResourceChange};
use kiln_store::Plan;
use kiln_template::StackIdentity;
use kiln_value::{Map, Value, value};

use super::instant;

/// The reason of a change set without changes. `aws cloudformation deploy` looks for this text.
const NO_CHANGE: &str =
    "The submitted information didn't contain changes. Submit different information to create a change set.";

/// The ARN of a change set.
pub(crate) fn arn(set: &Plan) -> String {
    identity(set, format!("/changesets/{}/{}", set.name.as_deref().unwrap_or_default(), set.id)).arn()
}

/// The ARN of its stack, which may not exist yet.
pub(crate) fn stack_arn(set: &Plan) -> String {
    identity(set, String::new()).arn()
}

fn identity(set: &Plan, path: String) -> StackIdentity {
    let (tenant, stack_name, stack_id) = (set.project.clone(), set.stack_name.clone(), set.stack.to_string());
    StackIdentity { tenant, stack_name, stack_id, path }
}

/// The common data.
pub(crate) fn summary(prepared: &PreparedChange) -> Map {
    let set = &prepared.set;
    let (status, reason) = match prepared.failure() {
        None => ("CREATE_COMPLETE", None),
        Some(Failure::NoChange) => ("FAILED", Some(NO_CHANGE)),
        Some(Failure::Refused(reason)) => ("FAILED", Some(reason.as_str())),
    };
    let execution = match prepared.execution() {
        Execution::Unavailable => "UNAVAILABLE",
        Execution::Available => "AVAILABLE",
        Execution::InProgress => "EXECUTE_IN_PROGRESS",
        Execution::Complete => "EXECUTE_COMPLETE",
        Execution::Failed => "EXECUTE_FAILED",
        Execution::Obsolete => "OBSOLETE",
    };
    let shown = value!({
        "StackId": (stack_arn(set)),
        "StackName": (&set.stack_name),
        "ChangeSetId": (arn(set)),
        "ChangeSetName": (prepared.name()),
        "ExecutionStatus": execution,
        "Status": status,
        "StatusReason": reason,
        "CreationTime": (instant(set.created)),
        "Description": (prepared.description()),
    });
    match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    }
}

/// The change of a resource.
pub(crate) fn change(change: &ResourceChange) -> Value {
    let (action, replacement, recreation) = match change.effect {
        ChangeEffect::Add => ("Add", None, None),
        ChangeEffect::Import => ("Import", None, None),
        ChangeEffect::Remove => ("Remove", None, None),
        ChangeEffect::Update => ("Modify", Some("False"), Some("Never")),
        ChangeEffect::Replace => ("Modify", Some("True"), Some("Always")),
        ChangeEffect::MayReplace => ("Modify", Some("Conditional"), Some("Conditionally")),
    };
    let details = change.properties.iter().filter(|_| recreation.is_some()).map(|property| {
        let (evaluation, source) = match &property.awaited {
            Some(_) => ("Dynamic", "ResourceAttribute"),
            None => ("Static", "DirectModification"),
        };
        value!({
            "Target": { "Attribute": "Properties", "Name": (&property.name), "RequiresRecreation": recreation },
            "Evaluation": evaluation,
            "ChangeSource": source,
            "CausingEntity": (property.awaited.clone()),
        })
    });
    let details: Vec<Value> = details.collect();
    let scope: Vec<Value> = if details.is_empty() { Vec::new() } else { vec!["Properties".into()] };
    value!({
        "Type": "Resource",
        "ResourceChange": {
            "Action": action,
            "LogicalResourceId": (&change.name),
            "PhysicalResourceId": (change.physical_id.clone()),
            "ResourceType": (&change.resource_type),
            "Replacement": replacement,
            "Scope": scope,
            "Details": details,
        },
    })
}
