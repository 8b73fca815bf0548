//! `GET …/environment`: as it is in force, values of hidden parameters masked.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::Response;
use kiln_engine::load;
use kiln_template::{Files, Template, source};
use kiln_value::Value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

const MASK: &str = "******";

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:environment")?;
    let stack = call.stack_or_deleted().await?;
    let texts = call.store().desired(&stack.desired).await?;
    let sources = load::sources(&texts)?;
    let hidden = hidden_names(sources.template, &sources.files)?;
    let mut environment = sources.environment.to_stored();
    for section in ["parameters", "parameter_defaults"] {
        let values =
            environment.as_map_mut().and_then(|sections| sections.get_mut(section)).and_then(Value::as_map_mut);
        for (name, value) in values.into_iter().flatten() {
            if hidden.contains(name) {
                *value = MASK.into();
            }
        }
    }
    Ok(reply::json(&environment))
}

/// The hidden parameters of a template and of all templates among the files. Where one template hides a name, it is
/// hidden in all: defaults in an environment are for every template.
fn hidden_names(template: Arc<Value>, files: &Files) -> Result<BTreeSet<String>, ApiError> {
    let hidden = |template: &Template| {
        let schemata = template.parameter_schemata().unwrap_or_default();
        schemata.into_iter().filter(|(_, schema)| schema.hidden).map(|(name, _)| name).collect::<Vec<_>>()
    };
    let mut names: BTreeSet<String> = hidden(&Template::from_value(template)?).into_iter().collect();
    for (name, text) in &files.0 {
        // What is no template is some other file.
        let nested = source::parse(text, name, usize::MAX).ok();
        let nested = nested.and_then(|document| Template::from_value(document.value).ok());
        names.extend(nested.iter().flat_map(hidden));
    }
    Ok(names)
}
