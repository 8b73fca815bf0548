//! `…/imports`: objects that exist become a stack. Heat has no such calls.

use std::collections::BTreeMap;

use axum::response::Response;
use http::Method;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{Door, ImportPlan, ImportStack, Inventory, ObjectToImport, Selection};
use kiln_value::{Map, Value, value};
use kiln_view::import::{ComparedObject, FoundObject, ObjectKey, WrittenResource};

use super::plan::paths;
use super::stack_create::{BODY, created};
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static SCAN: Endpoint = Endpoint {
    name: "ScanProject",
    method: Method::GET,
    path: "/{tenant_id}/imports",
    rule: Rule::Kiln(&[DefaultRule { name: "imports:scan", check: DefaultCheck::READER }]),
    tag: "imports",
    summary: "List the objects of the project that can become resources, and the stacks that have them already",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(scan(call)),
};

pub(super) static WRITE: Endpoint = Endpoint {
    name: "WriteImport",
    method: Method::POST,
    path: "/{tenant_id}/imports/template",
    rule: Rule::Kiln(&[DefaultRule { name: "imports:write", check: DefaultCheck::READER }]),
    tag: "imports",
    summary: "Write a template for objects of the project",
    query: &[],
    body: Some(&SELECTED),
    answer: Answer::Json(200),
    run: |call| Box::pin(write(call)),
};

pub(super) static COMMIT: Endpoint = Endpoint {
    name: "ImportStack",
    method: Method::POST,
    path: "/{tenant_id}/imports",
    rule: Rule::Kiln(&[DefaultRule { name: "imports:create", check: DefaultCheck::MEMBER }]),
    tag: "imports",
    summary: "Create a stack that takes over objects, if they are as its template says",
    query: &[("dry_run", "bool")],
    body: Some(&IMPORTED),
    answer: Answer::Json(201),
    run: |call| Box::pin(commit(call)),
};

static SELECTED: Body = Body {
    name: "WriteImport",
    required: true,
    is_template: false,
    schema: || {
        let object = value!({ "type": "object", "required": ["resource_type", "physical_resource_id"], "properties": {
            "resource_type": (schema::text()),
            "physical_resource_id": (schema::text()),
            "resource_name": (schema::text()),
        } });
        value!({ "type": "object", "required": ["objects"], "properties": {
            "objects": { "type": "array", "items": object },
            "related": { "type": "boolean" },
        } })
    },
};

static IMPORTED: Body = Body {
    name: "ImportStack",
    required: true,
    is_template: true,
    schema: || {
        let mut schema = (BODY.schema)();
        let object = value!({ "type": "object", "required": ["type", "resource_id"], "properties": {
            "type": (schema::text()), "resource_id": (schema::text()),
        } });
        let properties = schema.as_map_mut().and_then(|schema| schema.get_mut("properties")?.as_map_mut());
        if let Some(properties) = properties {
            properties.shift_remove("adopt_stack_data");
            properties.insert("objects".to_owned(), value!({ "type": "object", "additionalProperties": object }));
            properties.insert("confirmed".to_owned(), value!({ "type": "array", "items": (schema::text()) }));
        }
        schema
    },
};

async fn scan(call: &Call) -> Result<Response, ApiError> {
    let Inventory { scan, owners } = call.service().inventory(&call.caller).await?;
    let object = |one: &FoundObject| {
        let owner = owners.get(&one.key).map(|owner| {
            value!({
                "stack_name": (&owner.stack), "stack_id": (owner.stack_id.to_string()),
                "resource_name": (&owner.resource),
            })
        });
        // The name and the tags of an object of a stack may be hidden values.
        let is_shown = owner.is_none();
        let name = if is_shown { one.name.as_str() } else { "" };
        value!({
            "resource_type": (&one.key.resource_type),
            "physical_resource_id": (&one.key.id),
            "name": name,
            "tags": (one.tags.iter().filter(|_| is_shown).collect::<Value>()),
            "uses": (one.uses.iter().map(|used| Value::from(used.id.as_str())).collect::<Value>()),
            "owner": owner,
        })
    };
    let unlisted: Value = scan
        .unlisted
        .iter()
        .map(|(resource_type, reason)| value!({ "resource_type": resource_type, "reason": reason }))
        .collect();
    let objects: Value = scan.objects.iter().map(object).collect();
    Ok(reply::json(&value!({ "objects": objects, "unlisted": unlisted })))
}

async fn write(call: &Call) -> Result<Response, ApiError> {
    let body = call.body.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
    let related = body.get("related").is_some_and(Value::is_truthy);
    let objects = body.get("objects").and_then(Value::as_list).unwrap_or_default();
    let objects: Option<BTreeMap<ObjectKey, Option<String>>> = objects
        .iter()
        .map(|object| {
            let key = ObjectKey {
                resource_type: object.str_at("resource_type")?.to_owned(),
                id: object.str_at("physical_resource_id")?.to_owned(),
            };
            Some((key, object.str_at("resource_name").map(str::to_owned)))
        })
        .collect();
    let objects = objects.ok_or_else(|| {
        ApiError::bad_request("Each of the objects needs a resource_type and a physical_resource_id.")
    })?;
    if objects.is_empty() {
        return Err(ApiError::bad_request("No objects are given."));
    }
    let written = call.service().write_import(&call.caller, &Selection { objects, related }).await?;
    let resource = |one: &WrittenResource| {
        value!({
            "resource_name": (&one.name),
            "resource_type": (&one.key.resource_type),
            "physical_resource_id": (&one.key.id),
            "object_name": (&one.object_name),
            "left_out": (one.left_out.iter().collect::<Value>()),
        })
    };
    let resources: Value = written.resources.iter().map(resource).collect();
    Ok(reply::json(&value!({ "template": (written.template), "resources": resources })))
}

async fn commit(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:create")?;
    let fields = call.body.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
    if fields.get("adopt_stack_data").is_some_and(|data| !data.is_null()) {
        return Err(ApiError::bad_request("An import has objects, and no adopt_stack_data."));
    }
    let objects = fields.get("objects").and_then(Value::as_map).cloned().unwrap_or_default();
    let objects: Option<BTreeMap<String, ObjectToImport>> = objects
        .iter()
        .map(|(name, object)| {
            let (resource_type, physical_id) =
                (object.str_at("type")?.to_owned(), object.str_at("resource_id")?.to_owned());
            Some((name.clone(), ObjectToImport { resource_type, physical_id }))
        })
        .collect();
    let objects =
        objects.ok_or_else(|| ApiError::bad_request("Each of the objects needs a type and a resource_id."))?;
    let confirmed = paths(&fields, "confirmed")?;
    let dry_run = call.query.boolean("dry_run")?.unwrap_or(false);
    let body = call.instantiation().await?;
    let import = ImportStack { new: body.create()?, objects, confirmed };
    if dry_run {
        let plan = call.service().plan_import(&call.caller, import).await.map_err(|error| body.placed(error))?;
        return Ok(reply::json(&value!({ "import": (view(&plan.into_shown(Door::Import))) })));
    }
    let stack = call.service().import_stack(&call.caller, import).await.map_err(|error| body.placed(error))?;
    Ok(created(call, &stack))
}

fn view(plan: &ImportPlan) -> Value {
    let object = |one: &ComparedObject| {
        let differences = one.differing.iter().map(|property| {
            value!({
                "property": (&property.name),
                "expected": (property.expected.clone()),
                "actual": (property.actual.clone()),
            })
        });
        value!({
            "resource_name": (&one.resource),
            "resource_type": (&one.resource_type),
            "physical_resource_id": (&one.physical_id),
            "differences": (differences.collect::<Value>()),
            "unread": (one.unread.iter().collect::<Value>()),
            "failure": (one.failure.clone()),
        })
    };
    let resources: Value = plan.objects.iter().map(object).collect();
    let unconfirmed: Value = plan.unconfirmed.iter().collect();
    Map::from([
        ("is_empty".to_owned(), plan.is_empty().into()),
        ("unconfirmed".to_owned(), unconfirmed),
        ("resources".to_owned(), resources),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn without_a_cloud_there_is_nothing_to_import() {
        let app = App::new().await;
        let scanned = app.get("/v1/tenant1/imports").await;
        assert_eq!((scanned.status.as_u16(), &scanned.json()["objects"]), (200, &json!([])));
        let of = async |body| app.json(Method::POST, "/v1/tenant1/imports/template", &body).await;
        let refused = of(json!({"objects": []})).await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("No objects are given"), "{refused:?}");
        let object = json!({"resource_type": "OS::Neutron::Net", "physical_resource_id": "n"});
        let refused = of(json!({"objects": [object]})).await;
        assert_eq!(refused.status.as_u16(), 409, "{refused:?}");
        assert!(refused.text.contains("the project has no such object"), "{refused:?}");
    }

    #[tokio::test]
    async fn an_import_names_an_object_for_each_resource() {
        let app = App::new().await;
        let commit = async |body| app.json(Method::POST, "/v1/tenant1/imports", &body).await;
        let refused = commit(json!({"stack_name": "s", "template": (random_string())})).await;
        assert!(refused.status.as_u16() == 409 && refused.text.contains("no object is given for it"), "{refused:?}");
        let refused = commit(json!({"stack_name": "s", "adopt_stack_data": {}})).await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("no adopt_stack_data"), "{refused:?}");
        let objects = json!({"random": {"type": "OS::Heat::RandomString", "resource_id": "r"}});
        let refused = commit(json!({"stack_name": "s", "template": (random_string()), "objects": objects})).await;
        assert_eq!(refused.status.as_u16(), 409, "{refused:?}");
        assert_eq!(app.get("/v1/tenant1/stacks").await.json()["stacks"], json!([]));
    }
}
