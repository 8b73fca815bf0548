//! The schemas that tell clients the attributes of an image.

use serde_json::{Value, json};

use super::images::{CONTAINER_FORMATS, DISK_FORMATS};
use crate::reply::{Outcome, Refusal, Reply};

/// `GET /schemas/image`.
pub(super) fn schema(name: &str) -> Outcome {
    if name != "image" {
        return Err(Refusal::no_route());
    }
    let text = json!({"type": ["null", "string"]});
    let fixed = |kind: &str| json!({"type": ["null", kind], "readOnly": true});
    let one_of = |names: &[&str]| {
        let all: Vec<Value> = std::iter::once(Value::Null).chain(names.iter().map(|name| Value::from(*name))).collect();
        json!({"type": ["null", "string"], "enum": all})
    };
    Ok(Reply::ok(json!({
        "name": "image",
        "properties": {
            "id": {"type": "string"}, "name": text, "owner": text, "status": fixed("string"), "checksum": fixed("string"),
            "size": fixed("integer"), "virtual_size": fixed("integer"), "created_at": fixed("string"),
            "updated_at": fixed("string"), "os_hash_algo": fixed("string"), "os_hash_value": fixed("string"),
            "visibility": {"type": "string", "enum": ["community", "public", "private", "shared"]},
            "disk_format": one_of(&DISK_FORMATS), "container_format": one_of(&CONTAINER_FORMATS),
            "min_ram": {"type": "integer"}, "min_disk": {"type": "integer"}, "protected": {"type": "boolean"},
            "os_hidden": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
            "self": fixed("string"), "file": fixed("string"), "schema": fixed("string"),
        },
        "additionalProperties": {"type": "string"},
        "links": [{"rel": "self", "href": "{self}"}, {"rel": "enclosure", "href": "{file}"}],
    })))
}
