//! `GET /template_versions/{version}/functions`.

use std::future::ready;

use axum::response::Response;
use http::Method;
use kiln_template::Release;
use kiln_value::{Class, Value, value};

use super::template_versions::{full_alias, full_name};
use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListTemplateFunctions",
    method: Method::GET,
    path: "/{tenant_id}/template_versions/{template_version}/functions",
    rule: Rule::Of("stacks:list_template_functions"),
    tag: "templates",
    summary: "List the functions of a version",
    query: &[("with_condition_func", "bool")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(ready(run(call))),
};

fn run(call: &Call) -> Result<Response, ApiError> {
    let with_conditions = match call.query.given("with_condition_func") {
        Some(text) => query::boolean("with_condition_func", &text.into())?,
        None => false,
    };
    let version = call.params.get("template_version");
    let named = |release: &Release| full_name(*release) == version || full_alias(*release).as_deref() == Some(version);
    let release = Release::ALL.into_iter().find(named);
    let release =
        release.ok_or_else(|| ApiError::new(Class::NotFound, format!("Template with version {version} not found")))?;
    let functions: Value = kiln_template::functions(release, with_conditions)
        .into_iter()
        .map(|function| value!({ "functions": (function.name), "description": (function.summary) }))
        .collect();
    Ok(reply::json(&value!({ "template_functions": functions })))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn functions_are_those_of_the_version() {
        let app = App::new().await;
        let list = async |version: &str| app.get(&format!("/v1/tenant1/template_versions/{version}/functions")).await;
        let functions = list("heat_template_version.2018-08-31").await.json()["template_functions"].clone();
        let names: Vec<_> =
            functions.as_array().unwrap().iter().map(|one| one["functions"].as_str().unwrap()).collect();
        assert!(names.contains(&"yaql") && !names.contains(&"equals"), "no conditions: {names:?}");
        let missing = list("heat_template_version.1900-01-01").await;
        assert_eq!(missing.status.as_u16(), 404, "{}", missing.text);
    }
}
