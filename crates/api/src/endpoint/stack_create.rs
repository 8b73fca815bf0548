//! `POST /stacks`.

use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::link::Link;

#[derive(Serialize)]
struct Created {
    stack: Entry,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    links: [Link; 1],
}

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:create")?;
    let body = call.instantiation().await?;
    let new = body.create()?;
    let stack = call.service().create_stack(&call.caller, new).await.map_err(|error| body.placed(error))?;
    let link = call.links.to_stack(&stack, "self");
    let location = HeaderValue::from_str(&link.href);
    let created = Created { stack: Entry { id: stack.id.to_string(), links: [link] } };
    let mut response = reply::json_with(StatusCode::CREATED, &created);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
