//! The span of an operation on a stack: for the lines of the log, and for traces.

use kiln_resource::{Action, State, Status};
use kiln_store::Stack;
use kiln_trace::Origin;
use tracing::Span;
use tracing::field::Empty;

use crate::lifecycle::work_id;
use crate::step::Job;

/// The span of the request that an actor works on. Every engine that works on it gives it the same ID in a trace, so that
/// the steps of all are below one span; the engine that ends the request shows it.
pub(super) struct OperationSpan {
    span: Span,
    /// The generation and the action.
    of: Option<(i64, Action)>,
    has_ended: bool,
}

impl Default for OperationSpan {
    fn default() -> Self {
        Self { span: Span::none(), of: None, has_ended: false }
    }
}

impl OperationSpan {
    /// A request begins, or goes on in this engine.
    pub(super) fn begin(&mut self, stack: &Stack) {
        let action = stack.state.action;
        let of = Some((stack.generation, action));
        if self.of == of {
            return;
        }
        if self.of.is_some() && !self.has_ended {
            self.span.record("error", "a newer request replaces it");
            self.has_ended = true;
        }
        let Origin { request, traceparent } = stack.details.origin.clone().unwrap_or_default();
        let span = tracing::info_span!(
            target: "kiln::trace",
            parent: None,
            "operation",
            title = format!("{action} stack"),
            operation = %stack.operation(),
            request = some(&request),
            user = stack.user_id,
            project = stack.project,
            traceparent,
            span_id = format!("{:016x}", work_id(stack, action).as_u64_pair().1),
            since_ms = stack.updated.unwrap_or(stack.created).as_millisecond(),
            stack = %stack.id,
            name = stack.name,
            root = %stack.root,
            generation = stack.generation,
            state = Empty,
            error = Empty,
            left = Empty,
        );
        (self.span, self.of, self.has_ended) = (span, of, false);
    }

    /// The span; without a request, one that shows nothing.
    pub(super) fn present(&self) -> Span {
        self.span.clone()
    }

    /// A step of the operation of a resource.
    pub(super) fn step(&self, job: &Job) -> Span {
        tracing::info_span!(
            target: "kiln::trace",
            parent: &self.span,
            "step",
            title = %format_args!("{} {}", job.running.operation.action(), job.name),
            resource = job.name,
            resource_type = job.facts.resource_type,
            attempt = job.running.attempt,
        )
    }

    /// The operation ends with this state.
    pub(super) fn end(&mut self, state: State, reason: &str) {
        self.has_ended = true;
        self.span.record("state", tracing::field::display(state));
        if state.status == Status::Failed {
            self.span.record("error", reason);
        }
    }
}

impl Drop for OperationSpan {
    fn drop(&mut self) {
        // The operation goes on in another engine.
        if !self.has_ended {
            self.span.record("left", true);
        }
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
