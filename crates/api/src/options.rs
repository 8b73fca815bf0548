//! How the API behaves; names and defaults are those of Heat's options (docs/heat-behaviour.md §23).

/// How the API behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a request's body (`max_json_body_size`).
    pub max_body: usize,
    /// URL of the API as clients reach it, up to and with `/v1` (`heat_api_root`); `None`: as each request names it.
    pub root: Option<String>,
    /// Believe `X-Forwarded-Proto` and `X-Forwarded-Host` (`enable_proxy_headers_parsing`).
    pub proxy_headers: bool,
    /// Stacks with one of these tags are not listed unless asked for (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// What `build_info` shows (`heat_revision`).
    pub revision: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 1_048_576,
            root: None,
            proxy_headers: false,
            hidden_stack_tags: vec!["data-processing-cluster".to_owned()],
            revision: "unknown".to_owned(),
        }
    }
}
