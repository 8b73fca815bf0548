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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn a_version_has_its_language_and_its_alias() {
        let listed = App::new().await.get("/v1/tenant1/template_versions").await.json();
        let versions = listed["template_versions"].as_array().expect("a list");
        let named = |name: &str| versions.iter().find(|version| version["version"] == name).expect("a version");
        let rocky = named("heat_template_version.2018-08-31");
        assert_eq!((&rocky["type"], &rocky["aliases"]), (&json!("hot"), &json!(["heat_template_version.rocky"])));
        let cfn = named("AWSTemplateFormatVersion.2010-09-09");
        assert_eq!((&cfn["type"], &cfn["aliases"]), (&json!("cfn"), &json!([])));
    }
}
