//! `GET …/environment`: the effective environment, with masked values of hidden parameters.

use std::sync::Arc;

use axum::response::Response;
use kiln_engine::load;
use kiln_service::Hidden;
use kiln_template::Template;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:environment")?;
    let stack = call.stack_or_deleted().await?;
    let sources = load::stored(call.backends(), &stack.desired).await?;
    let hidden = Hidden::of(&Template::from_value(Arc::clone(&sources.template))?, &sources.files);
    let mut environment = sources.environment.to_stored();
    hidden.mask_environment(&mut environment);
    Ok(reply::json(&environment))
}
