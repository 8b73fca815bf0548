//! Options of an engine.

use std::time::Duration;

/// Options of an engine, with Heat's option names where they exist.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host name, for the list of services.
    pub hostname: String,
    /// Duration of a lease; the stacks of a failed engine are taken over after it.
    pub lease: Duration,
    /// Polling interval for work, in case a ring is lost.
    pub poll: Duration,
    /// Polling interval of an actor for news about its stack, in case a ring is lost.
    pub look: Duration,
    /// Maximum number of stacks with running calls. Stacks that only wait do not count.
    pub max_stacks: usize,
    /// Default timeout of an action (`stack_action_timeout`).
    pub action_timeout: Duration,
    /// Maximum number of retries of a create or delete (`action_retry_limit`).
    pub action_retries: u32,
    /// Maximum number of retries of a call without a response (`client_retry_limit`); the default covers a restart of
    /// the service.
    pub call_retries: u32,
    /// Maximum time until the effect of a call is visible in the cloud. Before that, the object of a lost create does
    /// not count as missing.
    pub call_limit: Duration,
    /// Maximum time until a service lists an object that it created.
    pub list_delay: Duration,
    /// How long a stopping engine waits for running calls.
    pub drain: Duration,
    /// Rows and events per commit for large stacks.
    pub batch: usize,
    /// Maximum number of concurrent operations in one stack.
    pub max_operations: usize,
    /// How long deleted stacks are kept (`keep_deleted`; Heat has a cron job for it).
    pub keep_deleted: Duration,
    /// Maximum depth of nested stacks (`max_nested_stack_depth`).
    pub nested_depth: u32,
    /// Maximum number of resources of a tree of stacks (`max_resources_per_stack`), for groups that grow without a
    /// request to their stack; `None`: no limit.
    pub resources_per_stack: Option<u64>,
    /// Servers and volumes get hints for the scheduler that name their stack (`stack_scheduler_hints`).
    pub scheduler_hints: bool,
    /// Maximum number of events per stack (`max_events_per_stack`); 0 keeps all.
    pub max_events: u64,
    /// Maximum number of operations per stack (`max_operations_per_stack`); 0 keeps all.
    pub kept_operations: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hostname: "localhost".to_owned(),
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(1),
            look: Duration::from_secs(15),
            max_stacks: 1_000,
            action_timeout: Duration::from_hours(1),
            action_retries: 5,
            call_retries: 6,
            call_limit: Duration::from_secs(75),
            list_delay: Duration::from_secs(10),
            drain: Duration::from_secs(75),
            // 768 resources with two events each fill statements of 256 rows.
            batch: 3 * 768,
            max_operations: 64,
            keep_deleted: Duration::from_hours(720),
            nested_depth: 5,
            resources_per_stack: Some(1_000),
            scheduler_hints: false,
            max_events: 1_000,
            kept_operations: 1_000,
        }
    }
}
