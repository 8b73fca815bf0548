//! `POST /stacks`.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use kiln_store::Stack;
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
    Ok(created(call, &stack))
}

/// The answer with a new stack.
pub(crate) fn created(call: &Call, stack: &Stack) -> Response {
    let link = call.links.to_stack(stack, "self");
    let location = HeaderValue::from_str(&link.href);
    let created = Created { stack: Entry { id: stack.id.to_string(), links: [link] } };
    let mut response = reply::json_with(StatusCode::CREATED, &created);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_new_stack_has_an_address_and_a_name_of_its_own() {
        let app = App::new().await;
        let create = async |body| app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        let body = json!({"stack_name": "s", "template": (random_string())});
        let made = create(body.clone()).await;
        assert_eq!(made.status.as_u16(), 201);
        let stack = &made.json()["stack"];
        assert_eq!(stack["links"][0]["href"], made.header("location"));
        assert!(made.header("location").ends_with(stack["id"].as_str().unwrap()));
        let again = create(body).await;
        assert_eq!((again.status.as_u16(), again.json()["error"]["type"].clone()), (409, "StackExists".into()));
        let refused = create(json!({"stack_name": "t"})).await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("No template specified"), "{refused:?}");
    }
}
