//! Plans for the trusts of stacks, which are stored first so that every trust can be found again.

use jiff::Timestamp;
use kiln_value::Secret;
use serde::{Deserialize, Serialize};

use crate::Caller;

/// The current format.
const FORMAT: u32 = 1;

/// Seconds of a hundred years: trusts of Kiln never expire in practice.
const CENTURY: i64 = 86_400 * 36_524;
/// Marks lie within this number of centuries; databases support years with four digits.
const CENTURIES: u64 = 70;

/// The trust that [`crate::Identity::delegate`] will create. It contains no secret, but the users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationPlan {
    format: u32,
    /// ID of the trustor.
    pub trustor: String,
    /// ID of the project.
    pub project: String,
    /// Names of the delegated roles.
    pub roles: Vec<String>,
    /// The expiry, which identifies the trust if the response with its ID is lost: trusts have no name, but their
    /// expiry is unique.
    pub mark: Timestamp,
}

/// A stored plan cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is not a plan.
    #[error("the plan of the credentials is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A newer version of Kiln wrote it.
    #[error("the plan of the credentials has format {0}, from a newer version of Kiln")]
    Newer(u32),
}

impl DelegationPlan {
    /// A plan for a caller. `seed` is random: plans with different seeds have different marks.
    pub(crate) fn new(caller: &Caller, roles: Vec<String>, now: Timestamp, seed: u64) -> Self {
        let (trustor, project) = (caller.user_id.clone(), caller.project_id.clone());
        Self { format: FORMAT, trustor, project, roles, mark: mark(now, caller.trust_end, seed) }
    }

    /// The text to store.
    pub fn to_stored(&self) -> Secret<String> {
        // Strings and numbers can always be serialized to JSON.
        Secret::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// The reverse of [`DelegationPlan::to_stored`]; `None` for credentials without a plan (`{}`).
    pub fn from_stored(text: &str) -> Result<Option<Self>, PlanError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        if value.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(None);
        }
        let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or_default();
        match u32::try_from(format) {
            Ok(format) if format <= FORMAT => Ok(Some(serde_json::from_value(value)?)),
            format => Err(PlanError::Newer(format.unwrap_or(u32::MAX))),
        }
    }
}

/// A time at least a hundred years ahead, in whole seconds, because Keystone drops fractions. A trust that is created
/// through another one must not expire later than that one (`limit`).
fn mark(now: Timestamp, limit: Option<Timestamp>, seed: u64) -> Timestamp {
    let mut first = now.as_second().saturating_add(CENTURY);
    let mut range = CENTURY.unsigned_abs() * CENTURIES;
    if let Some(limit) = limit.map(Timestamp::as_second) {
        if limit <= first {
            first = now.as_second();
        }
        let left = u64::try_from(limit.saturating_sub(first)).unwrap_or_default();
        range = range.min(left).max(1);
    }
    let more = i64::try_from(seed % range).unwrap_or_default();
    Timestamp::from_second(first.saturating_add(more)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> DelegationPlan {
        let mark = mark("2026-01-01T00:00:00.0001Z".parse().unwrap(), None, 7);
        DelegationPlan { format: 1, trustor: "u".into(), project: "p".into(), roles: vec!["member".into()], mark }
    }

    #[test]
    fn stored_plans_are_read() {
        let plan = plan();
        assert_eq!(DelegationPlan::from_stored(plan.to_stored().expose()).unwrap(), Some(plan.clone()));
        assert_eq!(DelegationPlan::from_stored("{}").unwrap(), None, "credentials from before plans existed");
        assert!(matches!(DelegationPlan::from_stored("[]"), Err(PlanError::Damaged(_))));
        let newer = plan.to_stored().expose().replace("\"format\":1", "\"format\":2");
        assert!(matches!(DelegationPlan::from_stored(&newer), Err(PlanError::Newer(2))));
    }

    #[test]
    fn a_trust_created_through_a_trust_expires_first() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for limit in ["2026-01-01T00:00:09Z", "2126-01-01T00:00:09Z", "2500-01-01T00:00:00Z"] {
            let limit: Timestamp = limit.parse().unwrap();
            for seed in [0, 1, 77, u64::from(u32::MAX), u64::MAX] {
                let mark = mark(now, Some(limit), seed);
                assert!(mark >= now && mark < limit, "{limit} {seed}: {mark}");
            }
        }
    }

    #[test]
    fn marks_are_far_in_the_future_and_differ() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(plan().mark.to_string(), "2126-01-01T00:00:07Z");
        let seeds = [0, 1, 2, u64::from(u32::MAX), u64::MAX];
        let marks: std::collections::BTreeSet<Timestamp> = seeds.iter().map(|seed| mark(now, None, *seed)).collect();
        assert_eq!(marks.len(), seeds.len());
        let last: Timestamp = "9999-01-01T00:00:00Z".parse().unwrap();
        assert!(marks.iter().all(|mark| mark.as_second() - now.as_second() >= CENTURY && *mark < last));
        assert_eq!(mark(Timestamp::MAX, None, u64::MAX), Timestamp::MAX);
    }
}
