//! `GET …/drift`: compares a stack with its objects. Heat has no such call.

use axum::response::Response;
use http::Method;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::Error;
use kiln_value::{Class, Diagnostic, Subject, Value, value};
use kiln_view::stack_drift::{Drift, Extent, ResourceDrift, StackDrift};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::link::Links;
use crate::view::instant::instant;
use crate::view::meaning;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "CompareStack",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/drift",
    rule: Rule::Kiln(&[DefaultRule { name: "drift:show", check: DefaultCheck::READER }]),
    tag: "stacks",
    summary: "Compare the resources of a stack with their objects",
    query: &[("resource_name", "list")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let names = call.query.all("resource_name");
    let stack = call.stack().await?;
    call.service().refuse_stack_user(&call.caller)?;
    // It shows what the attributes of the resources show.
    call.allow("resource:show")?;
    let compared = call.service().drift(stack, &names).await.map_err(refused)?;
    let mut resources = Vec::new();
    list(&compared, None, &call.links, &mut resources);
    let checked = instant(call.backends().clock.now());
    let not_checked = i64::try_from(compared.not_checked()).unwrap_or(i64::MAX);
    let Extent { resources: all, resources_checked, properties, properties_checked } = compared.extent();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(reply::json(&value!({ "drift": {
        "status": (compared.status()), "not_checked": not_checked, "checked_at": checked, "resources": resources,
        "extent": {
            "resources": (count(all)), "resources_checked": (count(resources_checked)),
            "properties": (count(properties)), "properties_checked": (count(properties_checked)),
        },
    } })))
}

/// The error, with the name of the missing resource as a field: a client may suggest another one.
pub(super) fn refused(error: Error) -> ApiError {
    let Error::NoResource { resource, .. } = &error else { return error.into() };
    let mut missing = Diagnostic::new(Class::ResourceNotFound, error.to_string());
    missing.subject = Some(Subject::Name(resource.clone()));
    ApiError { diagnostics: vec![missing], ..error.into() }
}

/// The resources of a stack, each followed by those of its nested stack.
fn list(compared: &StackDrift, parent: Option<&str>, links: &Links, resources: &mut Vec<Value>) {
    for one in &compared.resources {
        resources.push(entry(one, compared, parent, links));
        if let Some(nested) = &one.nested {
            list(nested, Some(&one.row.name), links, resources);
        }
    }
}

fn entry(one: &ResourceDrift, compared: &StackDrift, parent: Option<&str>, links: &Links) -> Value {
    let (status, reason) = one.drift.status();
    let properties = if let Drift::Modified(properties) = &one.drift { properties.as_slice() } else { &[] };
    let differences: Value = properties
        .iter()
        .map(|one| {
            let mut difference = value!({
                "property": (&one.name), "expected": (one.expected.clone()), "actual": (one.actual.clone()),
                "needs_replacement": (one.needs_replacement),
            });
            if let (Some(baseline), Some(difference)) = (&one.baseline, difference.as_map_mut()) {
                difference.insert("baseline".to_owned(), baseline.clone());
            }
            difference
        })
        .collect();
    let stack = &compared.stack;
    let mut entry = value!({
        "resource_name": (&one.row.name),
        "resource_type": (&one.row.resource_type),
        "physical_resource_id": (one.row.physical_id.clone().unwrap_or_default()),
        "stack_name": (&stack.name),
        "drift_status": status,
        "drift_status_reason": reason,
        "differences": differences,
        "not_checked": (one.not_checked.iter().collect::<Value>()),
        "not_applied": (one.not_applied.iter().collect::<Value>()),
        "ignored": (one.ignored.iter().collect::<Value>()),
        "names": (meaning::names(&one.meanings)),
        "links": [
            { "rel": "self", "href": (links.within(stack, &format!("/resources/{}", one.row.name))) },
            { "rel": "stack", "href": (links.stack(stack)) },
        ],
    });
    if let (Some(parent), Some(entry)) = (parent, entry.as_map_mut()) {
        entry.insert("parent_resource".to_owned(), parent.into());
    }
    entry
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_stack_is_compared_with_its_objects() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let drift = async |query: &str| app.json(Method::GET, &format!("{path}/drift{query}"), &Value::Null).await;
        let compared = drift("").await.json();
        assert_eq!(compared["drift"]["extent"]["resources"], 0, "{compared}");
        assert_eq!(compared["drift"]["resources"], json!([]), "no engine has made a resource: {compared}");
        let missing = drift("?resource_name=none").await;
        let error = &missing.json()["error"];
        assert_eq!((missing.status.as_u16(), &error["type"]), (404, &json!("ResourceNotFound")));
        assert_eq!(error["diagnostics"][0]["name"], "none", "a field, for clients: {error}");
    }
}
