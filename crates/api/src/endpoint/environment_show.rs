//! `GET …/environment`: the effective environment, with masked values of hidden parameters.

use axum::response::Response;
use kiln_service::Door;
use kiln_stack::load;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:environment")?;
    let stack = call.stack_or_deleted().await?;
    let sources = load::stored(call.backends(), &stack.desired).await?;
    let hidden = call.service().hidden(&stack, &sources).await?;
    let mut environment = sources.environment.to_stored();
    hidden.mask_environment(Door::Environment, &mut environment);
    for section in ["parameters", "parameter_defaults"] {
        if let Some(values) = environment.as_map_mut().and_then(|sections| sections.get_mut(section)?.as_map_mut()) {
            call.service().mask_inherited(Door::Environment, &stack, values).await?;
        }
    }
    Ok(reply::json(&environment))
}
