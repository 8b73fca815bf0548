//! The schemas of query parameters, and parts of the schemas of bodies.

use kiln_value::{Map, Value, value};

/// The schema of a query parameter.
pub(super) fn query(kind: &str) -> Value {
    match kind {
        "bool" => value!({ "type": "string", "enum": ["true", "false", "True", "False"] }),
        "integer" => value!({ "type": "integer", "minimum": 0 }),
        // Longer waits end after a minute.
        "seconds" => value!({ "type": "integer", "minimum": 0, "maximum": 60 }),
        "list" => value!({ "type": "array", "items": { "type": "string" } }),
        _ => text(),
    }
}

/// Any text.
pub(crate) fn text() -> Value {
    value!({ "type": "string" })
}

/// Any object.
pub(crate) fn object() -> Value {
    value!({ "type": "object" })
}

/// Any list.
pub(crate) fn list() -> Value {
    value!({ "type": "array", "items": {} })
}

/// The properties of a body with a template and its files.
pub(crate) fn template() -> Map {
    Map::from_iter([
        ("template".to_owned(), value!({ "type": ["object", "string"] })),
        ("template_url".to_owned(), text()),
        ("environment".to_owned(), value!({ "type": ["object", "string"] })),
        ("environment_files".to_owned(), value!({ "type": "array", "items": { "type": "string" } })),
        ("files".to_owned(), object()),
        ("files_container".to_owned(), text()),
        ("parameters".to_owned(), object()),
        ("questions".to_owned(), object()),
    ])
}

/// The properties of a body with the settings of a stack.
pub(crate) fn settings() -> [(String, Value); 4] {
    [
        ("timeout_mins".to_owned(), value!({ "type": "integer" })),
        ("disable_rollback".to_owned(), value!({ "type": "boolean" })),
        ("tags".to_owned(), text()),
        ("preflight".to_owned(), value!({ "type": "boolean" })),
    ]
}

/// The schema of errors.
pub(super) fn error() -> Value {
    value!({
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
    })
}
