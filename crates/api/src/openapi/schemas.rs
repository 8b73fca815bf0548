//! The schemas of query parameters and bodies.

use kiln_value::{Map, Value, value};

/// The schema of a query parameter.
pub(super) fn query_schema(kind: &str) -> Value {
    match kind {
        "bool" => value!({ "type": "string", "enum": ["true", "false", "True", "False"] }),
        "integer" => value!({ "type": "integer", "minimum": 0 }),
        // Longer waits end after a minute.
        "seconds" => value!({ "type": "integer", "minimum": 0, "maximum": 60 }),
        "list" => value!({ "type": "array", "items": { "type": "string" } }),
        _ => value!({ "type": "string" }),
    }
}

/// The schemas of bodies.
pub(super) fn schemas() -> Value {
    let text = || value!({ "type": "string" });
    let object = || value!({ "type": "object" });
    let content = || {
        let names = value!({ "type": "array", "items": { "type": "string" } });
        Map::from_iter([
            ("template".to_owned(), value!({ "type": ["object", "string"] })),
            ("template_url".to_owned(), text()),
            ("environment".to_owned(), value!({ "type": ["object", "string"] })),
            ("environment_files".to_owned(), names),
            ("files".to_owned(), object()),
            ("files_container".to_owned(), text()),
            ("parameters".to_owned(), object()),
            ("questions".to_owned(), object()),
        ])
    };
    let settings = || {
        [
            ("timeout_mins".to_owned(), value!({ "type": "integer" })),
            ("disable_rollback".to_owned(), value!({ "type": "boolean" })),
            ("tags".to_owned(), text()),
        ]
    };
    let (mut create, mut update) = (content(), content());
    create.extend(settings());
    create.insert("stack_name".to_owned(), value!({ "type": "string", "maxLength": 255 }));
    create.insert("adopt_stack_data".to_owned(), value!({ "type": ["object", "string"] }));
    update.extend(settings());
    update.insert("clear_parameters".to_owned(), value!({ "type": "array", "items": { "type": "string" } }));
    update.insert("existing".to_owned(), value!({ "type": "boolean" }));
    update.insert("converge".to_owned(), value!({ "type": "boolean" }));
    update.insert("if_version".to_owned(), value!({ "type": "string" }));
    let action = value!({ "type": ["object", "null", "string"] });
    let actions = ["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"];
    let actions: Map = actions.iter().map(|name| ((*name).to_owned(), action.clone())).collect();
    let list = || value!({ "type": "array", "items": {} });
    let deployment = || {
        let texts = ["config_id", "action", "status", "status_reason"].map(|name| (name.to_owned(), text()));
        texts.into_iter().chain([("input_values".to_owned(), object())])
    };
    let created: Map =
        deployment().chain(["server_id", "stack_user_project_id"].map(|name| (name.to_owned(), text()))).collect();
    let updated: Map = deployment().chain([("output_values".to_owned(), object())]).collect();
    value!({
        "CreateStack": { "type": "object", "required": ["stack_name"], "properties": create },
        "UpdateStack": { "type": "object", "properties": update },
        "Validate": { "type": "object", "properties": (content()) },
        "CreateSnapshot": { "type": "object", "properties": { "name": (text()) } },
        "Mark": {
            "type": "object",
            "required": ["mark_unhealthy"],
            "properties": {
                "mark_unhealthy": { "type": "boolean" },
                "resource_status_reason": (text()),
            },
        },
        "Signal": { "type": "object" },
        "Forget": { "type": "object", "properties": { "reason": (text()) } },
        "Act": { "type": "object", "minProperties": 1, "maxProperties": 1, "properties": actions },
        "Config": {
            "type": "object",
            "properties": {
                "name": (text()), "group": (text()), "config": {}, "inputs": (list()), "outputs": (list()),
                "options": (object()),
            },
        },
        "CreateDeployment": { "type": "object", "properties": created },
        "UpdateDeployment": { "type": "object", "properties": updated },
        "Error": {
            "type": "object",
            "properties": {
                "code": { "type": "integer" },
                "title": (text()),
                "explanation": (text()),
                "error": {
                    "type": "object",
                    "properties": { "type": (text()), "message": { "type": ["string", "null"] } },
                },
            },
        },
    })
}
