//! Uploads: a package or a document of a topology language as the body (docs/topology.md). It becomes the JSON that a
//! client would have sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use http::request::Parts;
use kiln_topology::TypeFiles;
use kiln_topology::original::{self, Original};
use kiln_topology::upload::{self, Limits, Upload};
use kiln_value::{Map, Value, steps};
use kiln_web::{BodyError, Query};

use crate::error::ApiError;

/// Content types of uploads.
const UPLOADS: [&str; 10] = [
    "application/zip",
    "application/x-zip-compressed",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar",
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "application/vnd.oasis.csar",
];

/// A body with several parts: the upload, and the other parts of the request.
const FORM: &str = "multipart/form-data";

/// The other parts of a request, which are in the query or in parts of a form.
const FIELDS: [&str; 6] = ["stack_name", "disable_rollback", "timeout_mins", "tags", "parameters", "software"];

/// The part of a form with the upload.
const TEMPLATE: &str = "template";

/// Whether a content type is that of an upload.
pub(super) fn is_upload(content_type: &str) -> bool {
    let kind = essence(content_type);
    kind == FORM || UPLOADS.contains(&kind.as_str())
}

/// A content type without its parameters.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A package or document as the request to create, update, preview or validate a stack. Its other parts are in the query,
/// or in a form: `stack_name`, `parameters` (JSON), `disable_rollback`, `timeout_mins`, `tags`, and `software`, which is
/// `deployments` or `cloud-init`.
pub(super) async fn read(
    parts: &Parts,
    content_type: &str,
    body: Body,
    limit: usize,
    types: &Arc<TypeFiles>,
) -> Result<Value, ApiError> {
    let query = Query::parse(parts.uri.query());
    let asked = |name: &str| Some((name.to_owned(), query.get(name)?.to_owned()));
    let mut fields: BTreeMap<String, String> = FIELDS.into_iter().filter_map(asked).collect();
    let bytes = if essence(content_type) == FORM {
        read_form(content_type, body, limit, &mut fields).await?
    } else {
        read_whole(parts, body, limit).await?
    };
    let mut request = Map::new();
    for name in ["stack_name", "disable_rollback", "timeout_mins", "tags"] {
        if let Some(value) = fields.get(name) {
            request.insert(name.to_owned(), value.as_str().into());
        }
    }
    let mut given = Map::new();
    if let Some(text) = fields.get("parameters") {
        let parsed = kiln_yaml::json::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let Value::Map(parameters) = parsed else {
            return Err(ApiError::bad_request("The parameters of an upload must be a JSON object."));
        };
        given = parameters;
        request.insert("parameters".to_owned(), given.clone().into());
    }
    let cloud_init = match fields.get("software").map(String::as_str) {
        None | Some("deployments") => false,
        Some("cloud-init") => true,
        Some(_) => return Err(ApiError::bad_request("software must be deployments or cloud-init.")),
    };
    // As much as a client may send as JSON.
    let limits = Limits { archive_bytes: limit, bytes: limit.saturating_mul(16), ..Limits::default() };
    let made = upload::read(bytes, &given, cloud_init, &limits, types);
    steps::check().map_err(|exhausted| ApiError::from(exhausted.report()))?;
    let Upload { template, mut files, questions, original } = made.map_err(ApiError::of_several)?;
    if let Some(original) = original {
        let entry = Original::new(original).to_file(&template);
        files.insert(original::FILE.to_owned(), entry.into());
    }
    request.insert("template".to_owned(), template);
    request.insert("files".to_owned(), files.into());
    request.insert("questions".to_owned(), questions.into());
    Ok(request.into())
}

async fn read_whole(parts: &Parts, body: Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    kiln_web::read_body(parts, body, limit).await.map_err(|error| match error {
        BodyError::TooLarge(size) => {
            ApiError::limit(&format!("The upload ({size} bytes) exceeds maximum allowed size ({limit} bytes)."))
        }
        BodyError::Broken => ApiError::malformed(),
    })
}

/// Reads a form: the part `template`, and the other parts of the request, which count more than those in the query.
async fn read_form(
    content_type: &str,
    body: Body,
    limit: usize,
    fields: &mut BTreeMap<String, String>,
) -> Result<Vec<u8>, ApiError> {
    let boundary = multer::parse_boundary(content_type).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let size = multer::SizeLimit::new().whole_stream(limit as u64);
    let constraints = multer::Constraints::new().size_limit(size);
    let mut form = multer::Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
    let mut template = None;
    let broken = |error: multer::Error| match error {
        multer::Error::StreamSizeExceeded { .. } | multer::Error::FieldSizeExceeded { .. } => {
            ApiError::limit(&format!("The upload exceeds maximum allowed size ({limit} bytes)."))
        }
        other => ApiError::bad_request(other.to_string()),
    };
    while let Some(field) = form.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == TEMPLATE {
            template = Some(field.bytes().await.map_err(broken)?.to_vec());
        } else if FIELDS.contains(&name.as_str()) {
            fields.insert(name, field.text().await.map_err(broken)?);
        } else {
            let known = FIELDS.join(", ");
            return Err(ApiError::bad_request(format!(
                "Unknown part {name} of the form: there are {TEMPLATE}, {known}."
            )));
        }
    }
    template.ok_or_else(|| ApiError::bad_request(format!("The form has no part {TEMPLATE}.")))
}
