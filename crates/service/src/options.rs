//! Options of the use cases, with the names and defaults of Heat (docs/heat-behaviour.md §23).

use std::time::Duration;

use crate::QuotasInUse;

/// Limits. `None` means no limit (Heat's −1).
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a template in bytes (`max_template_size`).
    pub template: usize,
    /// Maximum total size of the files of a `files_container` in bytes (`max_json_body_size`).
    pub container: usize,
    /// Maximum number of live root stacks of a project (`max_stacks_per_tenant`).
    pub stacks_per_project: Option<u64>,
    /// Maximum number of snapshots of a stack (`max_snapshots_per_stack`).
    pub snapshots_per_stack: Option<u64>,
    /// Maximum number of software configs of a project (`max_software_configs_per_tenant`).
    pub configs_per_project: Option<u64>,
    /// Maximum number of software deployments of a project (`max_software_deployments_per_tenant`).
    pub deployments_per_project: Option<u64>,
    /// Maximum number of saved plans and change sets of a project (`max_plans_per_project`).
    pub plans_per_project: Option<u64>,
    /// Maximum number of root stacks of a project with an operation in progress (`max_operations_per_project`).
    pub operations_per_project: Option<u64>,
    /// Maximum number of requests of a project that wait for events in one process (`max_event_streams_per_project`).
    pub streams_per_project: Option<u64>,
    /// Maximum number of resources of a root stack with all its nested stacks (`max_resources_per_stack`).
    pub resources_per_stack: Option<usize>,
    /// Maximum number of steps that the patterns, expressions and functions of a request take in all
    /// (`max_request_steps`).
    pub request_steps: usize,
    /// Maximum depth of nested stacks (`max_nested_stack_depth`).
    pub nested_depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            template: 524_288,
            container: 1_048_576,
            stacks_per_project: Some(512),
            snapshots_per_stack: Some(32),
            configs_per_project: Some(4096),
            deployments_per_project: Some(4096),
            plans_per_project: Some(1000),
            operations_per_project: None,
            streams_per_project: None,
            resources_per_stack: Some(1000),
            request_steps: kiln_value::steps::MOST,
            nested_depth: 5,
        }
    }
}

/// Options of the use cases.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Options {
    /// Limits.
    pub limits: Limits,
    /// Whether projects have quotas of their own, in place of these limits.
    pub quotas: QuotasInUse,
    /// The role of stack users (`heat_stack_user_role`).
    pub stack_user_role: String,
    /// Whether every update compares the resources with their objects first (`observe_on_update`).
    pub observe_on_update: bool,
    /// Whether stacks may be created from existing resources (`enable_stack_adopt`).
    pub adopt: bool,
    /// Whether stacks may be abandoned and exported (`enable_stack_abandon`).
    pub abandon: bool,
    /// There is no cloud: types that need one are rejected.
    pub no_cloud: bool,
    /// Whether changes need a saved plan (`plans`).
    pub plans_required: bool,
    /// The number of approvals that a saved plan needs (`plan_approvals`).
    pub plan_approvals: usize,
    /// Whether plans are checked in the cloud (`preflight`).
    pub preflight: bool,
    /// How long a saved plan can be executed (`plan_lifetime`).
    pub plan_lifetime: Duration,
    /// The country of the region, for blueprints that demand one: ISO 3166-1, two capital letters.
    pub jurisdiction: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            quotas: QuotasInUse::default(),
            stack_user_role: "heat_stack_user".to_owned(),
            observe_on_update: false,
            adopt: false,
            abandon: false,
            no_cloud: false,
            plans_required: false,
            plan_approvals: 0,
            preflight: true,
            plan_lifetime: Duration::from_hours(7 * 24),
            jurisdiction: None,
        }
    }
}
