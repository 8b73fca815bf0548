//! How the API behaves; names and defaults are those of Heat's options (semantics.md §23).

/// Limits. `None` is no limit (Heat's −1).
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body (`max_json_body_size`).
    pub body: usize,
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
        Self {
            body: 1_048_576,
            template: 524_288,
            stacks_per_project: Some(512),
            resources_per_stack: Some(1000),
            nested_depth: 5,
        }
    }
}

/// How the API behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits.
    pub limits: Limits,
    /// URL of the API as clients reach it, up to and with `/v1` (`heat_api_root`); `None`: as each request names it.
    pub root: Option<String>,
    /// Believe `X-Forwarded-Proto` and `X-Forwarded-Host` (`enable_proxy_headers_parsing`).
    pub proxy_headers: bool,
    /// Stacks with one of these tags are not listed unless asked for (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// The role of users that Kiln makes for stacks (`heat_stack_user_role`).
    pub stack_user_role: String,
    /// What `build_info` shows (`heat_revision`).
    pub revision: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            root: None,
            proxy_headers: false,
            hidden_stack_tags: vec!["data-processing-cluster".to_owned()],
            stack_user_role: "heat_stack_user".to_owned(),
            revision: "unknown".to_owned(),
        }
    }
}
