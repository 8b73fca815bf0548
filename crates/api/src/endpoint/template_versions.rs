//! `GET /template_versions`.

use std::future::ready;

use axum::response::Response;
use http::Method;
use kiln_template::Release;
use kiln_template::version::Dialect;
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListTemplateVersions",
    method: Method::GET,
    path: "/{tenant_id}/template_versions",
    rule: Rule::Of("stacks:list_template_versions"),
    tag: "templates",
    summary: "List the versions of the template language",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |_| Box::pin(ready(Ok(run()))),
};

fn run() -> Response {
    let versions: Value = Release::ALL.into_iter().map(entry).collect();
    reply::json(&value!({ "template_versions": versions }))
}

/// A release's full name: `heat_template_version.2018-08-31`.
pub(super) fn full_name(release: Release) -> String {
    format!("{}.{}", release.dialect().version_key(), release.name())
}

/// The full name of its alias.
pub(super) fn full_alias(release: Release) -> Option<String> {
    release.alias().map(|alias| format!("{}.{alias}", release.dialect().version_key()))
}

fn entry(release: Release) -> Value {
    let kind = match release.dialect() {
        Dialect::Hot => "hot",
        Dialect::Cfn | Dialect::HeatCfn => "cfn",
    };
    let aliases: Vec<String> = full_alias(release).into_iter().collect();
    value!({ "version": (full_name(release)), "type": kind, "aliases": aliases })
}
