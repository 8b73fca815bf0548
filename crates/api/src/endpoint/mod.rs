//! The endpoints, one file each: the row that describes an endpoint, and its handler.
//!
//! Router, dispatch, policy and the OpenAPI document come from the rows.

mod action;
mod build_info;
mod delete_preview;
mod drift_plan;
mod drift_watch;
mod environment_show;
mod event_list;
mod event_show;
mod event_watch;
mod file_list;
mod guard;
mod import;
mod metadata_show;
mod operation;
mod original_show;
mod orphan;
mod output_list;
mod output_show;
mod plan;
mod quota;
mod refactor;
mod report_show;
mod resource_forget;
mod resource_list;
mod resource_mark;
mod resource_show;
mod resource_signal;
mod resource_type_list;
mod resource_type_show;
mod resource_type_template;
mod revision;
mod service_list;
mod snapshot_create;
mod snapshot_delete;
mod snapshot_list;
mod snapshot_restore;
mod snapshot_show;
mod software_config;
mod software_deployment;
mod stack_abandon;
mod stack_create;
mod stack_delete;
mod stack_detail;
mod stack_drift;
mod stack_export;
mod stack_list;
mod stack_lookup;
mod stack_preview;
mod stack_show;
mod stack_update;
mod template_functions;
mod template_show;
mod template_validate;
mod template_versions;
mod topology_type_list;
mod update_preview;
mod webhook;

pub(crate) use self::stack_create::created;
use axum::response::Response;
use futures::future::BoxFuture;
use http::Method;
use kiln_identity::{DefaultCheck, DefaultRule, Policy};
use kiln_value::Value;

use crate::call::Call;
use crate::error::ApiError;

/// An endpoint.
pub(crate) struct Endpoint {
    /// Its name in the OpenAPI document.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// The pattern of the path after `/v1`.
    pub(crate) path: &'static str,
    pub(crate) rule: Rule,
    /// The group in the OpenAPI document.
    pub(crate) tag: &'static str,
    /// What it does, in one line.
    pub(crate) summary: &'static str,
    /// Query parameters with their type: `bool`, `integer`, `seconds`, `list`, or text.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) body: Option<&'static Body>,
    pub(crate) answer: Answer,
    /// Handles a call that the rule allows.
    pub(crate) run: for<'a> fn(&'a Call) -> BoxFuture<'a, Result<Response, ApiError>>,
}

/// Which rule of the policy a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The rule of Heat with this name.
    Of(&'static str),
    /// The first of these rules, which Heat does not have. The handler asks for the others.
    Kiln(&'static [DefaultRule]),
    /// The handler asks: the rule depends on the body, or on another project than that of the path.
    Own,
}

/// The JSON object in a request.
pub(crate) struct Body {
    /// The name of its schema in the OpenAPI document.
    pub(crate) name: &'static str,
    /// Whether every request has one.
    pub(crate) required: bool,
    /// Whether it is a template with its files, or a package or document that becomes one.
    pub(crate) is_template: bool,
    pub(crate) schema: fn() -> Value,
}

/// A successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// JSON with this status.
    Json(u16),
    /// 202 with a page.
    Page,
    /// Events, as JSON or as a stream.
    Events,
    /// Text.
    Text,
    /// 204 without a body.
    Nothing,
    /// 302 to another path.
    Location,
}

impl Answer {
    /// The status.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Json(status) => status,
            Self::Page => 202,
            Self::Events | Self::Text => 200,
            Self::Nothing => 204,
            Self::Location => 302,
        }
    }
}

/// The lookup of a stack by its name, at many paths.
pub(crate) static LOOKUP: &Endpoint = &stack_lookup::ENDPOINT;

/// The others. If two paths match, the first one decides, in Heat's order.
pub(crate) static ENDPOINTS: &[&Endpoint] = &[
    &template_validate::ENDPOINT,
    &resource_type_list::ENDPOINT,
    &resource_type_show::ENDPOINT,
    &resource_type_template::ENDPOINT,
    &topology_type_list::ENDPOINT,
    &template_versions::ENDPOINT,
    &template_functions::ENDPOINT,
    &stack_list::ENDPOINT,
    &stack_create::ENDPOINT,
    &stack_preview::ENDPOINT,
    &stack_detail::ENDPOINT,
    &stack_show::ENDPOINT,
    &stack_update::PUT,
    &stack_update::PATCH,
    &stack_delete::ENDPOINT,
    &template_show::ENDPOINT,
    &original_show::ENDPOINT,
    &environment_show::ENDPOINT,
    &file_list::ENDPOINT,
    &update_preview::PUT,
    &update_preview::PATCH,
    &delete_preview::ENDPOINT,
    &stack_drift::ENDPOINT,
    &drift_plan::REPAIR,
    &drift_plan::ACCEPT,
    &import::SCAN,
    &import::WRITE,
    &import::COMMIT,
    &refactor::CREATE,
    &stack_abandon::ENDPOINT,
    &stack_export::ENDPOINT,
    &operation::LIST,
    &operation::SHOW,
    &revision::LIST,
    &revision::SHOW,
    &snapshot_create::ENDPOINT,
    &snapshot_list::ENDPOINT,
    &snapshot_show::ENDPOINT,
    &snapshot_delete::ENDPOINT,
    &snapshot_restore::ENDPOINT,
    &output_list::ENDPOINT,
    &output_show::ENDPOINT,
    &resource_list::ENDPOINT,
    &resource_show::ENDPOINT,
    &resource_mark::ENDPOINT,
    &metadata_show::ENDPOINT,
    &resource_signal::ENDPOINT,
    &resource_forget::ENDPOINT,
    &event_list::OF_STACK,
    &event_list::OF_RESOURCE,
    &event_show::ENDPOINT,
    &action::ENDPOINT,
    &event_watch::ENDPOINT,
    &plan::CREATE,
    &plan::LIST,
    &plan::SHOW,
    &plan::DELETE,
    &plan::EXECUTE,
    &plan::APPROVE,
    &plan::RENEW,
    &plan::REJECT,
    &guard::ADD,
    &guard::LIST,
    &guard::SHOW,
    &guard::LIFT,
    &quota::OWN,
    &quota::SHOW,
    &quota::SET,
    &quota::RESET,
    &drift_watch::LIST,
    &drift_watch::SCHEDULE,
    &drift_watch::SCHEDULES,
    &drift_watch::UNSCHEDULE,
    &webhook::CREATE,
    &webhook::LIST,
    &webhook::SHOW,
    &webhook::CHANGE,
    &webhook::DELETE,
    &webhook::ROTATE,
    &webhook::TEST,
    &webhook::DELIVERIES,
    &webhook::REDELIVER,
    &orphan::LIST,
    &orphan::DELETE,
    &build_info::ENDPOINT,
    &software_config::LIST,
    &software_config::CREATE,
    &software_config::SHOW,
    &software_config::DELETE,
    &software_deployment::LIST,
    &software_deployment::CREATE,
    &software_deployment::METADATA,
    &software_deployment::SHOW,
    &software_deployment::UPDATE,
    &software_deployment::DELETE,
    &service_list::ENDPOINT,
    &report_show::ENDPOINT,
];

/// Requests that are no GET, but change nothing.
const READING: [&str; 5] = ["PreviewPatch", "PreviewStack", "PreviewUpdate", "ValidateTemplate", "WriteImport"];
/// What servers, their agents and alarms send or read.
const OF_GUESTS: [&str; 4] = ["DeploymentMetadata", "MarkUnhealthy", "SignalResource", "UpdateDeployment"];

impl Endpoint {
    /// Whether it changes something, apart from what guests send.
    pub(crate) fn is_change(&self) -> bool {
        self.method != Method::GET && !READING.contains(&self.name) && !self.is_of_guests()
    }

    /// Whether servers, their agents or alarms use it: it is never refused because of too many requests.
    pub(crate) fn is_of_guests(&self) -> bool {
        OF_GUESTS.contains(&self.name)
    }

    /// Whether it answers with a new stack.
    pub(crate) fn creates_stack(&self) -> bool {
        self.name == stack_create::ENDPOINT.name
    }

    /// Runs a call.
    pub(crate) async fn run(&self, call: &Call) -> Result<Response, ApiError> {
        if let Some(rule) = self.rule() {
            call.allow(rule)?;
        }
        (self.run)(call).await
    }

    /// The name of the rule that a call needs.
    fn rule(&self) -> Option<&'static str> {
        match self.rule {
            Rule::Of(name) => Some(name),
            Rule::Kiln(rules) => rules.first().map(|rule| rule.name),
            Rule::Own => None,
        }
    }

    /// Whether the body is a template with its files, or a package or document that becomes one.
    pub(crate) fn takes_template(&self) -> bool {
        self.body.is_some_and(|body| body.is_template)
    }
}

/// The default policy: the rules of Heat, and the rules of the endpoints that Heat does not have.
/// `enforce_new_defaults` is the option in `[oslo_policy]`.
pub fn policy(enforce_new_defaults: bool) -> Policy {
    Policy::new(enforce_new_defaults, rules_of_kiln())
}

/// The rules of the endpoints that Heat does not have.
fn rules_of_kiln() -> impl Iterator<Item = &'static DefaultRule> {
    let rules = ENDPOINTS.iter().filter_map(|endpoint| match endpoint.rule {
        Rule::Kiln(rules) => Some(rules),
        Rule::Of(_) | Rule::Own => None,
    });
    rules.flatten()
}

/// A rule of the policy, with what it decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// Its name.
    pub name: String,
    /// Its default.
    pub check: DefaultCheck,
    /// What it allows, in one line; empty if other rules refer to it.
    pub summary: &'static str,
    /// The requests that it decides about: method and path.
    pub operations: Vec<(String, String)>,
}

/// All rules with their defaults: those of Heat by name, then those that Heat does not have.
pub fn policy_rules() -> Vec<PolicyRule> {
    let mut of_kiln: Vec<_> = rules_of_kiln().map(|rule| (rule.name.to_owned(), rule.check)).collect();
    of_kiln.sort_by(|a, b| a.0.cmp(&b.0));
    of_kiln.dedup_by(|a, b| a.0 == b.0);
    let rule = |(name, check): (String, DefaultCheck)| {
        let endpoints: Vec<_> = ENDPOINTS.iter().filter(|endpoint| endpoint.rule() == Some(&name)).collect();
        let operation = |endpoint: &&&Endpoint| (endpoint.method.to_string(), format!("/v1{}", endpoint.path));
        let summary = endpoints.first().map_or("", |endpoint| endpoint.summary);
        PolicyRule { name, check, summary, operations: endpoints.iter().map(operation).collect() }
    };
    kiln_identity::rules_of_heat().into_iter().chain(of_kiln).map(rule).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_a_default() {
        let of_heat: BTreeSet<String> = Policy::default().names().into_iter().collect();
        let (mut kiln, mut bodies) = (BTreeSet::new(), BTreeSet::new());
        for endpoint in ENDPOINTS.iter().chain([&LOOKUP]) {
            let name = endpoint.name;
            match endpoint.rule {
                Rule::Of(rule) => {
                    assert!(of_heat.contains(rule), "{name}: Heat has no rule {rule}: use Rule::Kiln, with a default");
                }
                Rule::Kiln(rules) => {
                    assert!(!rules.is_empty(), "{name}: without a rule, everybody is allowed");
                    for rule in rules {
                        assert!(!of_heat.contains(rule.name), "{name}: {} is a rule of Heat: use Rule::Of", rule.name);
                        assert!(kiln.insert(rule.name), "{name}: {} has two defaults", rule.name);
                    }
                }
                Rule::Own => {}
            }
            bodies.extend(endpoint.body.map(|body| (body.name, std::ptr::from_ref(body))));
        }
        let names: BTreeSet<&str> = bodies.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), bodies.len(), "two schemas with one name");
    }

    #[test]
    fn every_file_is_a_module_with_tests() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/endpoint");
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let entry = entry.expect("an entry");
            let file = entry.file_name().into_string().expect("UTF-8");
            let name = file.trim_end_matches(".rs");
            let text = std::fs::read_to_string(entry.path()).expect("text");
            assert!(text.contains("mod tests {"), "endpoint/{file}: add a test of what a client sees");
            let is_declared = include_str!("mod.rs").contains(&format!("mod {name};\n"));
            assert!(
                name == "mod" || is_declared,
                "endpoint/{file}: declare it and add its rows to ENDPOINTS in mod.rs"
            );
        }
    }
}
