//! The token of a request that a client may send again: `ClientRequestToken`, and `ClientToken` of change sets.
//!
//! A token belongs to a user, a project and an action. The same parameters get the first result again.

use std::sync::Arc;
use std::time::Duration;

use kiln_store::{AnswerStore, Digest, KeyedRequest};
use kiln_value::{Map, Value, text, value};

use crate::action::Action;
use crate::call::Call;
use crate::fault::Fault;
use crate::view::arn;

/// The names of the parameter.
const NAMES: [&str; 2] = ["ClientRequestToken", "ClientToken"];
/// The longest token, as in AWS.
const LONGEST: usize = 128;
/// After this time, the process of a request without a result and without an operation is believed to have ended.
const ABANDONED: Duration = Duration::from_mins(2);
/// The parameters that differ in a repetition: the signature and what belongs to it.
const OF_SIGNATURE: [&str; 7] =
    ["AWSAccessKeyId", "Expires", "Signature", "SignatureMethod", "SignatureVersion", "Timestamp", "ContentType"];

/// A request with a token that is to be carried out.
pub(crate) struct Tokened {
    store: Arc<dyn AnswerStore>,
    request: KeyedRequest,
}

/// What is to be done with a request.
pub(crate) enum Begun {
    /// It is carried out; it may have a token.
    Run(Option<Tokened>),
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
    let of_whom = [token, &call.caller.user_id, &call.caller.project_id, "cfn", action.name].join("\n");
    let is_said = |name: &str| !OF_SIGNATURE.contains(&name) && !name.to_ascii_lowercase().starts_with("x-amz-");
    let mut said: Vec<(&str, &str)> = call.params.pairs().filter(|(name, _)| is_said(name)).collect();
    said.sort_unstable();
    let body: Value = said.into_iter().map(|(name, value)| value!([name, value])).collect();
    let request = KeyedRequest {
        id: Digest::of(&of_whom).to_string(),
        body: Digest::of(&text::json(&body)).to_string(),
        request: id.to_owned(),
    };
    let Some(earlier) = store.begin_keyed(&request).await? else {
        return Ok(Begun::Run(Some(Tokened { store, request })));
    };
    if earlier.body != request.body {
        return Err(Fault::token_exists(token));
    }
    if let Some(answer) = &earlier.answer {
        return Ok(Begun::Answered(serde_json::from_str(answer).map_err(Fault::internal)?));
    }
    // Its process ended before it answered, but after it had stored the change.
    if let Some(operation) = store.operation_of_request(&call.caller.project_id, &earlier).await? {
        let stack = call.store().stack(operation.stack).await?;
        let of_stack = |stack| value!({ "StackId": (arn(&stack, "")) });
        return Ok(Begun::Answered(stack.map_or_else(|| Value::Map(Map::new()), of_stack)));
    }
    if earlier.age > ABANDONED && store.take_over_keyed(&request, &earlier.request).await? {
        return Ok(Begun::Run(Some(Tokened { store, request })));
    }
    Err(Fault::in_progress(token))
}

impl Tokened {
    /// Stores the result; after a failure, the same request is carried out again.
    pub(crate) async fn end(self, result: &Result<Value, Fault>) {
        let stored = match result {
            Ok(result) => self.store.answer_keyed(&self.request, &text::json(result)).await,
            // Nobody knows what has happened: the operation will show it.
            Err(fault) if fault.status.is_server_error() => Ok(()),
            Err(_) => self.store.forget_keyed(&self.request).await,
        };
        if let Err(error) = stored {
            tracing::warn!(%error, "the result of a request with a token cannot be stored");
        }
    }
}
