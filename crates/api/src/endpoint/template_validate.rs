//! `POST /validate`: validates a template and returns its parameters.

use axum::response::Response;
use http::Method;
use kiln_plan_document::Check;
use kiln_service::Error;
use kiln_value::{Class, Map, Value, value};
use serde::Serialize;

use super::{Answer, Body, Endpoint, Rule};
use crate::argument;
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ValidateTemplate",
    method: Method::POST,
    path: "/{tenant_id}/validate",
    rule: Rule::Of("stacks:validate_template"),
    tag: "templates",
    summary: "Validate a template and describe its parameters",
    query: &[("ignore_errors", "text"), ("show_nested", "bool"), ("preflight", "bool")],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

static BODY: Body = Body {
    name: "Validate",
    required: true,
    is_template: true,
    schema: || value!({ "type": "object", "properties": (schema::template()) }),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let show_nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let (template, content) = (body.required_template()?, body.content()?);
    let any = ignores_availability(call)?;
    let wants_preflight = call.query.boolean("preflight")?.unwrap_or(false);
    let (service, caller) = (call.service(), &call.caller);
    let validated = service.validate_template(caller, &template, content.clone(), show_nested, any).await;
    let validated = validated.map_err(|error| body.placed(refused(error)))?;
    let preflight = if wants_preflight {
        let checks = service.preflight_template(caller, &template, content).await;
        Some(checks.map_err(|error| body.placed(error))?)
    } else {
        None
    };
    let mut answer = validated.summary.to_map();
    answer.insert("Environment".to_owned(), validated.environment);
    Ok(match preflight {
        Some(preflight) => reply::json(&Checked { answer, preflight }),
        None => reply::json(&Value::Map(answer)),
    })
}

/// A valid template, and what its create would meet in the cloud.
#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    answer: Map,
    preflight: Vec<Check>,
}

/// Whether types without a service are accepted (`ignore_errors`); other errors cannot be ignored.
fn ignores_availability(call: &Call) -> Result<bool, ApiError> {
    const UNAVAILABLE: &str = "99001";
    let codes = call.query.get("ignore_errors").unwrap_or_default();
    let codes = argument::list(codes);
    let codes = || codes.iter().map(String::as_str).filter(|code| !code.is_empty());
    let unknown: Vec<&str> = codes().filter(|code| *code != UNAVAILABLE).collect();
    if unknown.is_empty() {
        return Ok(codes().any(|code| code == UNAVAILABLE));
    }
    let codes = kiln_value::text::repr(&unknown.into_iter().collect::<Value>());
    Err(ApiError::bad_request(format!("Invalid codes in ignore_errors : {codes}")))
}

/// Heat reports a failed validation as the text of a bad request here.
fn refused(error: Error) -> ApiError {
    let failed =
        matches!(error, Error::Invalid(_)) && error.class().is_some_and(|class| class == Class::StackValidationFailed);
    let text = error.to_string();
    let error = ApiError::from(error);
    if failed { ApiError { class: Class::HTTPBadRequest, message: Some(text), ..error } } else { error }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_valid_template_is_summarized_and_an_invalid_one_refused() {
        let app = App::new().await;
        let validate = async |body| app.json(Method::POST, "/v1/tenant1/validate", &body).await;
        let valid = validate(json!({"template": (random_string())})).await.json();
        assert_eq!((&valid["Description"], &valid["Parameters"]), (&"No description".into(), &json!({})), "{valid}");
        let template = json!({"heat_template_version": "2018-08-31", "resources": {"a": {"type": "OS::None"}}});
        let refused = validate(json!({"template": template})).await;
        assert!(refused.status.as_u16() >= 400 && refused.text.contains("OS::None"), "{refused:?}");
    }

    #[tokio::test]
    async fn a_preflight_is_a_part_of_the_answer_if_it_is_asked_for() {
        let app = App::new().await;
        let body = json!({"template": (random_string())});
        for (query, given) in [("", false), ("?preflight=false", false), ("?preflight=true", true)] {
            let answer = app.json(Method::POST, &format!("/v1/tenant1/validate{query}"), &body).await;
            assert_eq!((answer.status.as_u16(), answer.json().get("preflight").is_some()), (200, given), "{query}");
        }
    }
}
