//! The OpenAPI document of the API, generated from the rows of the endpoints: `GET /openapi.json`, without a token.

pub(crate) mod schema;

use std::sync::LazyLock;

use http::Method;
use kiln_value::{Map, Value, value};

use crate::endpoint::{Answer, ENDPOINTS, Endpoint, LOOKUP};
use crate::http::route;

/// The path of the document.
pub(crate) const PATH: &str = "/openapi.json";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| kiln_value::text::json(&document()));

/// The document as JSON.
pub(crate) fn json() -> &'static str {
    &DOCUMENT
}

fn document() -> Value {
    let mut paths: Map = Map::new();
    for (path, method, endpoint) in route::all() {
        let path = format!("/v1{path}");
        let operation = operation(&path, &method, endpoint);
        let entry = paths.entry(path).or_insert_with(|| Value::Map(Map::new()));
        if let Some(entry) = entry.as_map_mut() {
            entry.insert(method.as_str().to_ascii_lowercase(), operation);
        }
    }
    value!({
        "openapi": "3.1.0",
        "info": {
            "title": "Orchestration",
            "version": (env!("CARGO_PKG_VERSION")),
            "description": "The REST API v1 of Kiln, which is that of OpenStack Heat. Paths with only the name of a stack \
                            redirect to those with its name and ID.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "apiKey", "in": "header", "name": "X-Auth-Token" } },
            "schemas": (schemas()),
            "responses": {
                "Error": {
                    "description": "An error, with its class and text.",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
                },
            },
        },
    })
}

/// The schemas of bodies by their names.
fn schemas() -> Map {
    let bodies = ENDPOINTS.iter().filter_map(|endpoint| endpoint.body);
    let mut schemas: Map = bodies.map(|body| (body.name.to_owned(), (body.schema)())).collect();
    schemas.insert("Error".to_owned(), schema::error());
    schemas
}

fn operation(path: &str, method: &Method, endpoint: &Endpoint) -> Value {
    let Endpoint { summary, query, body, tag, answer, .. } = *endpoint;
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names
        .map(|name| {
            value!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" }, "description": (described(name)) })
        })
        .collect();
    parameters.extend(query.iter().map(|(name, schema)| {
        value!({ "name": (*name), "in": "query", "required": false, "schema": (schema::query(schema)) })
    }));
    let success = match answer {
        Answer::Nothing => value!({ "description": "Done." }),
        Answer::Location => value!({
            "description": "The path with the name and the ID of the stack.",
            "headers": { "Location": { "schema": { "type": "string" } } },
        }),
        Answer::Page => value!({
            "description": "Accepted; the body is a page in the format that is accepted.",
            "content": {
                "application/json": { "schema": { "type": "object" } },
                "text/html": { "schema": { "type": "string" } },
                "text/plain": { "schema": { "type": "string" } },
            },
        }),
        Answer::Events => value!({
            "description": "Events; as a stream if it is accepted.",
            "content": {
                "application/json": { "schema": { "type": "object" } },
                "text/event-stream": { "schema": { "type": "string" } },
            },
        }),
        Answer::Text => value!({
            "description": "The report.",
            "content": { "text/plain": { "schema": { "type": "string" } } },
        }),
        Answer::Json(_) => value!({
            "description": "Done, or accepted.",
            "content": { "application/json": { "schema": {} } },
        }),
    };
    let mut operation = value!({
        "operationId": (operation_id(path, method, endpoint)),
        "summary": summary,
        "tags": [tag],
        "parameters": parameters,
        "responses": {
            (answer.status().to_string()): success,
            "default": { "$ref": "#/components/responses/Error" },
        },
    });
    if let (Some(body), Some(operation)) = (body, operation.as_map_mut()) {
        let schema = value!({ "$ref": (format!("#/components/schemas/{}", body.name)) });
        let body = value!({ "required": (body.required), "content": { "application/json": { "schema": schema } } });
        operation.insert("requestBody".to_owned(), body);
    }
    operation
}

/// A unique name: that of the endpoint, with method and subpath for the many paths of lookups.
fn operation_id(path: &str, method: &Method, endpoint: &Endpoint) -> String {
    let name = endpoint.name;
    if !std::ptr::eq(endpoint, LOOKUP) {
        return name.to_owned();
    }
    let last = path.rsplit('/').next().filter(|last| !last.starts_with('{')).unwrap_or("stack");
    format!("{name}_{}_{last}", method.as_str().to_ascii_lowercase())
}

fn described(name: &str) -> &'static str {
    match name {
        "tenant_id" => "ID of the project.",
        "stack_name" => "Name of the stack; without a stack_id also its ID or ARN.",
        "stack_id" => "ID of the stack.",
        "resource_name" => "Name of the resource.",
        "snapshot_id" => "ID of the snapshot.",
        "event_id" => "ID of the event.",
        "output_key" => "Name of the output.",
        "type_name" => "Name of the resource type.",
        "template_version" => "Version of the template language.",
        "operation_id" => "ID of the operation.",
        "plan_id" => "ID of the plan.",
        "revision" => "Number of the revision.",
        "guard_id" => "ID of the guard.",
        "webhook_id" => "ID of the webhook.",
        "delivery_id" => "ID of the delivery.",
        "orphan_id" => "ID of the entry.",
        "config_id" => "ID of the software config.",
        "deployment_id" => "ID of the software deployment.",
        "server_id" => "ID of the server.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fmt::Write as _;

    use serde_json::Value;

    use crate::endpoint::Rule;
    use crate::http::route;

    fn document() -> Value {
        serde_json::from_str(super::json()).expect("JSON")
    }

    fn reference() -> Value {
        serde_json::from_str(include_str!("../tests/data/rest_api.json")).expect("JSON")
    }

    /// The words of a list; none for what is not a list.
    fn names(list: &Value) -> BTreeSet<&str> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The keys of the body of an operation.
    fn keys<'a>(document: &'a Value, operation: &Value) -> BTreeSet<&'a str> {
        let schema = operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str);
        let keys = schema.and_then(|schema| document.pointer(&schema[1..])?["properties"].as_object());
        keys.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The paths of the reference, without patterns; those with a choice of subpaths as several.
    fn plain(path: &str) -> Vec<String> {
        let path = path.replace(r"{stack_name:arn\x3A.*}", "{stack_name}");
        match path.split_once("{path:") {
            None => vec![path],
            Some((start, choice)) => {
                choice.trim_end_matches('}').split('|').map(|subpath| format!("{start}{subpath}")).collect()
            }
        }
    }

    #[test]
    fn every_route_of_the_reference() {
        let reference = reference();
        let document = document();
        let routes = reference["routes"].as_array().expect("routes");
        assert_eq!(routes.len(), 61);
        for route in routes {
            let method = route["method"].as_str().expect("a method").to_ascii_lowercase();
            for path in plain(route["path"].as_str().expect("a path")) {
                let operation = &document["paths"][&path][&method];
                assert!(operation.is_object(), "{method} {path}");
                let status = route["observed"]["status"].as_u64().unwrap_or(200).to_string();
                assert!(operation["responses"][&status].is_object(), "{method} {path}: {status}");
                let parameters = operation["parameters"].as_array().expect("parameters");
                for name in names(&route["query"]) {
                    let has = parameters.iter().any(|one| one["name"] == *name && one["in"] == "query");
                    assert!(has, "{method} {path}: {name}");
                }
                let keys = keys(&document, operation);
                for name in names(&route["body"]) {
                    assert!(keys.contains(&name), "{method} {path}: {name}");
                }
            }
        }
    }

    /// The two tables of the manual: the calls that Heat does not have, and the parameters and keys of other calls.
    fn tables() -> [String; 2] {
        let (reference, document) = (reference(), document());
        let mut heat = BTreeMap::new();
        for route in reference["routes"].as_array().expect("routes") {
            for path in plain(route["path"].as_str().expect("a path")) {
                heat.insert((route["method"].as_str().expect("a method"), path), (&route["query"], &route["body"]));
            }
        }
        let mut calls = "| call of Kiln | | query and body | policy |\n| --- | --- | --- | --- |\n".to_owned();
        let mut fields: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (path, method, endpoint) in route::all() {
            let path = format!("/v1{path}");
            let query: BTreeSet<&str> = endpoint.query.iter().map(|(name, _)| *name).collect();
            let body = keys(&document, &document["paths"][&path][method.as_str().to_ascii_lowercase()]);
            let call = format!("`{method} {}`", path.replace("/{stack_name}/{stack_id}", "/…"));
            let Some((known_query, known_body)) = heat.get(&(method.as_str(), path)) else {
                let rules: Vec<String> = match endpoint.rule {
                    Rule::Of(rule) => vec![format!("`{rule}`")],
                    Rule::Kiln(rules) => {
                        rules.iter().map(|rule| format!("`{}` (`{}`)", rule.name, rule.check)).collect()
                    }
                    Rule::Own => panic!("{call} has no rule of its own"),
                };
                let fields: Vec<String> = query.iter().chain(&body).map(|name| format!("`{name}`")).collect();
                _ = writeln!(calls, "| {call} | {} | {} | {} |", endpoint.summary, fields.join(" "), rules.join(", "));
                continue;
            };
            for (place, own) in [("query", &query - &names(known_query)), ("body", &body - &names(known_body))] {
                for name in own {
                    fields.entry((name, place)).or_default().push(call.clone());
                }
            }
        }
        let mut added = "| field of Kiln | in | calls |\n| --- | --- | --- |\n".to_owned();
        for ((name, place), calls) in fields {
            _ = writeln!(added, "| `{name}` | {place} | {} |", calls.join("<br>"));
        }
        [calls, added]
    }

    #[test]
    fn the_manual_lists_what_heat_does_not_have() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
        let mut page = std::fs::read_to_string(file).expect("the page");
        for table in tables() {
            let head = table.lines().next().expect("a head");
            let begin = page.find(head).unwrap_or_else(|| panic!("no table {head}"));
            let end = page[begin..].find("\n\n").map_or(page.len(), |length| begin + length + 1);
            if std::env::var_os("KILN_UPDATE_DATA").is_some() {
                page.replace_range(begin..end, &table);
                std::fs::write(file, &page).expect("the page is written");
            } else {
                assert_eq!(
                    page[begin..end],
                    table,
                    "KILN_UPDATE_DATA=1 .ci/tests kiln-api:lib manual writes the table"
                );
            }
        }
    }

    /// The rules of OpenAPI 3.1 that a generator can break.
    #[test]
    fn the_document_is_valid() {
        let document = document();
        assert_eq!(document["openapi"], "3.1.0");
        let mut ids = BTreeSet::new();
        let mut shapes = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().expect("paths") {
            let shape: Vec<_> = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect();
            assert!(shapes.insert(shape.join("/")), "two templates of one path: {path}");
            for (method, operation) in operations.as_object().expect("operations") {
                let at = format!("{method} {path}");
                let id = operation["operationId"].as_str().expect("an ID").to_owned();
                assert!(ids.insert(id), "{at}: the ID is not unique");
                assert!(!operation["summary"].as_str().expect("a summary").is_empty(), "{at}");
                let mut named = BTreeSet::new();
                for one in operation["parameters"].as_array().expect("parameters") {
                    assert!(one["schema"].is_object(), "{at}");
                    assert!(named.insert((one["in"].to_string(), one["name"].to_string())), "{at}: {one}");
                }
                let declared = named.iter().filter(|(place, _)| place == "\"path\"").count();
                assert_eq!(declared, path.matches('{').count(), "{at}");
                for response in operation["responses"].as_object().expect("responses").values() {
                    assert!(response["description"].is_string() || response["$ref"].is_string(), "{at}");
                }
                if let Some(reference) =
                    operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str)
                {
                    assert!(document.pointer(&reference[1..]).is_some(), "{at}: {reference}");
                    assert!(!matches!(method.as_str(), "get" | "delete"), "{at}: a body");
                }
            }
        }
    }
}
