//! Definitions that the change would refuse: an image, a key pair or a security group that does not exist, a property that
//! must not change.

use super::{Finding, Findings, Flight};

pub(super) fn check(flight: &Flight<'_>) -> Findings {
    let refused = flight.work.refused.iter();
    refused.map(|(path, reason)| Finding::fail(format!("{path}: {reason}"), vec![path.clone()])).collect()
}
