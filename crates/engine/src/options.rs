//! What an operator may set.

use std::time::Duration;

/// Settings of an engine. Heat's names of the options are given where it has them.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the host, for the list of services.
    pub hostname: String,
    /// How long a lease lasts without being renewed; a dead engine's stacks are taken over after it.
    pub lease: Duration,
    /// How often to look for work that no doorbell rang for.
    pub poll: Duration,
    /// How often an actor looks for news of its stack that no doorbell rang for.
    pub look: Duration,
    /// Stacks worked on at a time.
    pub max_stacks: usize,
    /// How long an action may take where the stack does not say (`stack_action_timeout`).
    pub action_timeout: Duration,
    /// How often a create or delete is tried again (`action_retry_limit`).
    pub action_retries: u32,
    /// How often an unanswered call is tried again (`client_retry_limit`); patient enough for a restart of the
    /// service unless it is set.
    pub call_retries: u32,
    /// The longest time that a call to the cloud can be under way, and what it makes can stay unseen. What a lost call
    /// was to create is not believed absent before.
    pub call_limit: Duration,
    /// The longest time that a service may not list what it has created.
    pub list_delay: Duration,
    /// How long a stopping engine waits for calls under way.
    pub drain: Duration,
    /// Rows and events per commit while a large stack is under way.
    pub batch: usize,
    /// Operations on resources under way in one stack at a time.
    pub max_operations: usize,
    /// How long deleted stacks are kept (`purge_deleted` of Heat's crons).
    pub keep_deleted: Duration,
    /// How deep stacks may be nested (`max_nested_stack_depth`).
    pub nested_depth: u32,
    /// Events kept of each stack (`max_events_per_stack`); 0 keeps all.
    pub max_events: u64,
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
            batch: 1_000,
            max_operations: 64,
            keep_deleted: Duration::from_hours(720),
            nested_depth: 5,
            max_events: 1_000,
        }
    }
}
