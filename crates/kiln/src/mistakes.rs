//! Errors in the files of a stack, from the service and from checks without one.

use std::sync::Arc;

use kiln_authoring::offline::{MAX_DEPTH, examine};
use kiln_client::{Bundle, Client, Error, ErrorLocation, NestedLocation};
pub(crate) use kiln_console::mistakes::Sent;
use kiln_console::mistakes::files;
use kiln_plan::{ResourceTypes, Sources};
use kiln_template::environment::{self, Environment};
use kiln_value::{Diagnostic, Map, Subject};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// The failure of a request: the errors of the service, and those that it did not come to, each in its file.
pub(crate) async fn refused(connection: &Connection, bundle: &Bundle, given: &Map, error: Error) -> Failure {
    let wrong = matches!(&error, Error::Refused(refusal) if refusal.status == 400 && !refusal.places.is_empty());
    let failure = Failure::from(error);
    if !wrong {
        return failure;
    }
    let Ok(catalog) = connection.settings.catalog().await else { return failure };
    let sent = Sent { bundle, given, catalog: Some(&catalog) };
    let others = others(&connection.client, sent, &catalog, failure.places()).await;
    failure.and(others).in_files(sent)
}

/// The errors that a check without the cloud finds and the service did not report, because it stops at the first one.
async fn others(
    client: &Client,
    sent: Sent<'_>,
    catalog: &ResourceTypes,
    told: &[ErrorLocation],
) -> Vec<ErrorLocation> {
    let bundle = sent.bundle;
    // Files in a container are not known here.
    if bundle.template.is_none() || bundle.container.is_some() {
        return Vec::new();
    }
    let Ok(sources) = sources(bundle, sent.given) else { return Vec::new() };
    let mut found = examine(&sources, catalog, MAX_DEPTH).1;
    // The service may have other types than this command.
    if found.iter().any(|error| matches!(error.subject, Some(Subject::ResourceType(_)))) {
        let Ok(types) = client.resource_types(&vec![], false).await else { return Vec::new() };
        found.retain(|error| match &error.subject {
            Some(Subject::ResourceType(name)) => types.iter().all(|this| this.as_str() != Some(name)),
            _ => true,
        });
    }
    let found = found.iter().map(location);
    found.filter(|error| !told.iter().any(|told| told.message == error.message && told.path == error.path)).collect()
}

/// The failure for one or more errors that were found without a service.
pub(crate) fn wrong(errors: &[Diagnostic], sent: Sent<'_>) -> Failure {
    let message = errors.first().map(Diagnostic::to_string).unwrap_or_default();
    Failure::new(message).and(errors.iter().map(location).collect()).in_files(sent)
}

/// Template, environment and files of a bundle.
pub(crate) fn sources(bundle: &Bundle, given: &Map) -> Outcome<Sources> {
    let sent = Sent { bundle, given, catalog: None };
    let environment = environment::from_request(Some(&bundle.environment.clone().into()), given)
        .and_then(|sections| Environment::from_sections(&sections))
        .map_err(|error| wrong(&[error], sent))?;
    Ok(Sources {
        template: Arc::new(bundle.template.clone().unwrap_or_default()),
        environment: Arc::new(environment),
        files: Arc::new(files(bundle)),
    })
}

/// An error as the service returns it.
fn location(error: &Diagnostic) -> ErrorLocation {
    let nested = error.nested.as_ref().map(|nested| NestedLocation {
        file: nested.file.clone(),
        path: nested.path.to_string(),
        message: nested.message.clone(),
    });
    ErrorLocation {
        message: error.to_string(),
        path: error.path.to_string(),
        line: error.span.map(|span| span.start.line.into()),
        column: error.span.map(|span| span.start.column.into()),
        hints: error.hints.clone(),
        parameter: error.parameter().map(str::to_owned),
        name: error.unknown_name().map(str::to_owned),
        nested,
    }
}
