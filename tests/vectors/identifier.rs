//! Identities of stacks, resources and events.

use kiln_template::StackIdentity;
use kiln_value::{Diagnostic, text, value};

use crate::case::{Case, Outcome};
use crate::expectation::error;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    match identity(case) {
        Err(problem) => case.judge(&value!({"error": (error(&problem))})),
        Ok(identity) => case.judge(&value!({
            "identity": {
                "tenant": (identity.tenant.as_str()),
                "stack_name": (identity.stack_name.as_str()),
                "stack_id": (identity.stack_id.as_str()),
                "path": (identity.path.as_str()),
            },
            "arn": (identity.arn()),
            "arn_url_path": (identity.arn_url_path()),
            "url_path": (identity.url_path()),
            "stack_path": (identity.stack_path()),
        })),
    }
}

fn identity(case: &Case) -> Result<StackIdentity, Diagnostic> {
    let given = case.input("identity");
    let part = |key: &str| given.get(key).map(text::str);
    let whole = || {
        let [tenant, name, id, path] =
            ["tenant", "stack_name", "stack_id", "path"].map(|key| part(key).unwrap_or_default());
        StackIdentity::with_path(tenant, name, id, &path)
    };
    match case.input("op").as_str().unwrap_or_default() {
        "from_arn" => StackIdentity::from_arn(case.input("arn").as_str().unwrap_or_default()),
        "from_arn_url" => StackIdentity::from_arn_url(case.input("url").as_str().unwrap_or_default()),
        "resource" => match part("resource_name") {
            Some(name) => whole()?.resource(&name),
            None => whole(),
        },
        "event" => Ok(match part("event_id") {
            Some(id) => whole()?.event(&id),
            None => whole()?,
        }),
        _ => whole(),
    }
}
