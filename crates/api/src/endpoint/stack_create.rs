//! `POST /stacks`.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use kiln_value::value;
use serde::Serialize;

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::link::Link;
use crate::openapi::schema;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "CreateStack",
    method: Method::POST,
    path: "/{tenant_id}/stacks",
    rule: Rule::Of("stacks:create"),
    tag: "stacks",
    summary: "Create or adopt a stack",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(201),
    run: |call| Box::pin(run(call)),
};

/// A new stack.
pub(super) static BODY: Body = Body {
    name: "CreateStack",
    required: true,
    is_template: true,
    schema: || {
        let mut properties = schema::template();
        properties.extend(schema::settings());
        properties.insert("stack_name".to_owned(), value!({ "type": "string", "maxLength": 255 }));
        properties.insert("adopt_stack_data".to_owned(), value!({ "type": ["object", "string"] }));
        value!({ "type": "object", "required": ["stack_name"], "properties": properties })
    },
};

#[derive(Serialize)]
struct Created {
    stack: Entry,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    links: [Link; 1],
}

async fn run(call: &Call) -> Result<Response, ApiError> {
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
