//! How the use cases behave; names and defaults are those of Heat's options (docs/heat-behaviour.md §23).

/// Limits. `None` is no limit (Heat's −1).
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a template (`max_template_size`).
    pub template: usize,
    /// Live root stacks of a project (`max_stacks_per_tenant`).
    pub stacks_per_project: Option<u64>,
    /// Resources of a root stack with all its nested ones (`max_resources_per_stack`).
    pub resources_per_stack: Option<usize>,
    /// How deep stacks nest (`max_nested_stack_depth`).
    pub nested_depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { template: 524_288, stacks_per_project: Some(512), resources_per_stack: Some(1000), nested_depth: 5 }
    }
}

/// How the use cases behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits.
    pub limits: Limits,
    /// The role of users that Kiln makes for stacks (`heat_stack_user_role`).
    pub stack_user_role: String,
    /// There is no cloud: types that need one are refused.
    pub no_cloud: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: Limits::default(), stack_user_role: "heat_stack_user".to_owned(), no_cloud: false }
    }
}
