//! The limits of the service itself.

use super::{Finding, Findings, Flight};

pub(super) fn check(flight: &Flight<'_>) -> Option<Findings> {
    let (most, total) = (flight.most_resources?, flight.work.total);
    let message = || format!("the stack would have {total} resources, and max_resources_per_stack is {most}");
    Some(if total > most { vec![Finding::fail(message(), Vec::new())] } else { Vec::new() })
}
