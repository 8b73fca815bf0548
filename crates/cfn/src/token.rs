//! The token of a request that a client may send again: `ClientRequestToken`, and `ClientToken` of change sets.
//!
//! A token belongs to a user, a project and an action. The same parameters get the first result again.

use kiln_service::{Ending, Repeatable, Repetition};
use kiln_value::{Map, Value, text, value};

use crate::action::Action;
use crate::call::Call;
use crate::fault::Fault;
use crate::view::arn;

/// The names of the parameter.
const NAMES: [&str; 2] = ["ClientRequestToken", "ClientToken"];
/// The longest token, as in AWS.
const LONGEST: usize = 128;
/// The parameters that differ in a repetition: the signature and what belongs to it.
const OF_SIGNATURE: [&str; 7] =
    ["AWSAccessKeyId", "Expires", "Signature", "SignatureMethod", "SignatureVersion", "Timestamp", "ContentType"];

/// What is to be done with a request.
pub(crate) enum Begun {
    /// It is carried out; it may have a token.
    Run(Option<Repeatable>),
    /// It was carried out: the result.
    Answered(Value),
}

/// Begins a request that may have a token.
pub(crate) async fn begin(call: &Call, action: &Action, id: &str) -> Result<Begun, Fault> {
    let takes = |name: &&str| action.parameters.iter().copied().flatten().any(|parameter| parameter.name == *name);
    let token = NAMES.iter().find(|name| takes(name)).and_then(|name| call.params.get(name));
    let Some(token) = token else { return Ok(Begun::Run(None)) };
    if token.len() > LONGEST {
        return Err(Fault::validation(format!("A token has at most {LONGEST} characters.")));
    }
    let Some(store) = call.options().answers.clone() else {
        return Err(Fault::invalid("ClientRequestToken is not supported."));
    };
    let is_said = |name: &str| !OF_SIGNATURE.contains(&name) && !name.to_ascii_lowercase().starts_with("x-amz-");
    let mut said: Vec<(&str, &str)> = call.params.pairs().filter(|(name, _)| is_said(name)).collect();
    said.sort_unstable();
    let body: Value = said.into_iter().map(|(name, value)| value!([name, value])).collect();
    let (user, project) = (&call.caller.user_id, &call.caller.project_id);
    let of_whom = [token, user, project, "cfn", action.name];
    match Repeatable::begin(store, &of_whom, &text::json(&body), id, project).await? {
        Repetition::First(repeatable) => Ok(Begun::Run(Some(repeatable))),
        Repetition::OtherBody => Err(Fault::token_exists(token)),
        Repetition::Answered(answer) => Ok(Begun::Answered(serde_json::from_str(&answer).map_err(Fault::internal)?)),
        Repetition::Begun(operation, repeatable) => {
            let stack = call.store().stack(operation.stack).await?;
            let result = match stack {
                Some(stack) => value!({ "StackId": (arn(&stack, "")) }),
                None => Value::Map(Map::new()),
            };
            repeatable.end(Ending::Answered(text::json(&result))).await;
            Ok(Begun::Answered(result))
        }
        Repetition::Running => Err(Fault::in_progress(token)),
    }
}

/// Stores the result; after a failure, the same request is carried out again.
pub(crate) async fn end(repeatable: Repeatable, result: &Result<Value, Fault>) {
    let ending = match result {
        Ok(result) => Ending::Answered(text::json(result)),
        Err(fault) if fault.status.is_server_error() => Ending::Unknown,
        Err(_) => Ending::Refused,
    };
    repeatable.end(ending).await;
}
