//! Validation without a service.

use kiln_authoring::offline::{MAX_DEPTH, examine};
use kiln_plan::ResourceTypes;
use kiln_value::Map;

use crate::Verdict;
use crate::record::Record;
use crate::request::GatheredRequest;

/// Checks that a template that the service accepts has no errors, without values for its parameters.
pub(crate) fn judge(
    record: &Record,
    request: &GatheredRequest,
    catalog: &ResourceTypes,
) -> Option<(&'static str, Verdict)> {
    record.field("validate").get("body")?;
    let errors = match request.sources(Map::new()) {
        Ok(sources) => examine(&sources, catalog, MAX_DEPTH).1,
        Err(error) => vec![error],
    };
    let told: Vec<String> = errors.iter().map(|error| format!("{}: {error}", error.path)).collect();
    Some(("offline", (!told.is_empty()).then(|| told.join("\n"))))
}
