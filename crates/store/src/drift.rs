//! Drift that is watched: which stacks are compared with their objects regularly, and what the last comparison has found.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{StackId, words};
use kiln_value::{Value, value};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Author, Error, Stack};

/// How often the stacks of a project are compared, or one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftSchedule {
    /// Project ID.
    pub project: String,
    /// Only this root stack, for which the schedule of its project has no effect; `None`: the stacks of the project.
    pub stack: Option<StackId>,
    /// The time between comparisons; `None`: they are not compared.
    pub every: Option<Duration>,
    /// Whether drift is repaired where that has a low risk.
    pub repair: bool,
    /// Who set it.
    pub author: Author,
    /// When.
    pub created: Timestamp,
}

words! {
    /// The result of a comparison.
    DriftStatus {
        /// All objects are as the template says.
        InSync = "IN_SYNC",
        /// Others have changed or deleted objects.
        Drifted = "DRIFTED",
        /// Something could not be compared, and the rest agrees.
        NotChecked = "NOT_CHECKED",
    }
}

/// A resource whose object others have changed or deleted. It has no values, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DriftedResource {
    /// Its path: `group/0/server`.
    pub path: String,
    /// The changed properties; none: the object was deleted.
    pub properties: Vec<String>,
}

impl DriftedResource {
    /// As the API and webhooks show it.
    pub fn document(&self) -> Value {
        let status = if self.properties.is_empty() { "DELETED" } else { "MODIFIED" };
        value!({
            "resource_path": (self.path.as_str()),
            "status": status,
            "properties": (self.properties.iter().collect::<Value>()),
        })
    }
}

/// A repair that an engine has begun, or proposed as a plan, because of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftRepair {
    /// The path of the resource.
    pub path: String,
    /// The property; empty: of the whole object.
    pub property: String,
    /// When.
    pub time: Timestamp,
}

/// What a comparison of a stack has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftReport {
    /// The result.
    pub status: DriftStatus,
    /// What has drifted, as far as a report lists it. In a stored report of a stack that is not checked: what had drifted when it
    /// was compared last.
    pub resources: Vec<DriftedResource>,
    /// The number of all resources that have drifted.
    pub drifted: u64,
    /// Why nothing could be compared, in words for users.
    pub reason: Option<String>,
    /// The repairs of the last day, oldest first.
    pub repairs: Vec<DriftRepair>,
    /// What is not repaired any more, because it was too often.
    pub stopped: Vec<DriftedResource>,
}

impl DriftReport {
    /// Most resources that a report lists.
    pub const LISTED: usize = 100;

    /// The report to store after an earlier one: what cannot be compared now keeps what had drifted before.
    pub(crate) fn after(&self, earlier: Option<&Self>) -> Self {
        match earlier.filter(|_| self.status == DriftStatus::NotChecked) {
            Some(Self { resources, drifted, .. }) => {
                Self { resources: resources.clone(), drifted: *drifted, ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// What has changed since the report that was stored before, as a word of the event about it; `None`: nothing that matters.
    pub(crate) fn news_since(&self, earlier: Option<&Self>) -> Option<&'static str> {
        let was = earlier.filter(|earlier| earlier.drifted > 0);
        match (self.status, was) {
            (DriftStatus::Drifted, None) => Some("found"),
            (DriftStatus::Drifted, Some(was)) if was.resources != self.resources || was.drifted != self.drifted => {
                Some("changed")
            }
            (DriftStatus::Drifted, Some(was)) if was.stopped != self.stopped && !self.stopped.is_empty() => {
                Some("changed")
            }
            (DriftStatus::InSync, Some(_)) => Some("resolved"),
            // What cannot be read may still have drifted.
            _ => None,
        }
    }
}

/// A stack that is compared regularly.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedStack {
    /// The root stack.
    pub stack: StackId,
    /// Its name.
    pub name: String,
    /// Project ID.
    pub project: String,
    /// What the last comparison has found; `None`: there was none yet.
    pub report: Option<DriftReport>,
    /// When that comparison began.
    pub checked: Option<Timestamp>,
    /// Since when the status is the same.
    pub since: Option<Timestamp>,
    /// When the next one is due; `None`: this is being decided.
    pub due: Option<Timestamp>,
}

/// Which stacks to list.
#[derive(Clone, Debug, Default)]
pub struct WatchedQuery {
    /// Only those of a project.
    pub project: Option<String>,
    /// Only those with this result.
    pub status: Option<DriftStatus>,
    /// Only those behind this one, in the order of IDs.
    pub marker: Option<StackId>,
    /// How many at most.
    pub limit: u64,
}

/// A comparison that this process is to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftCheck {
    /// The root stack.
    pub stack: StackId,
    /// Identifies the claim.
    pub mark: Uuid,
    /// The time until the next comparison.
    pub every: Duration,
    /// Whether its schedule says that drift is repaired.
    pub repair: bool,
    /// The repairs that its last report has.
    pub repairs: Vec<DriftRepair>,
}

/// Which stacks are watched, and what was found. All times are judged by the database's clock.
#[async_trait]
pub trait DriftStore: Send + Sync {
    /// Sets a schedule, instead of the one of the same project and stack.
    async fn schedule_drift(&self, schedule: &DriftSchedule) -> Result<(), Error>;
    /// Removes a schedule; returns whether there was one.
    async fn unschedule_drift(&self, project: &str, stack: Option<StackId>) -> Result<bool, Error>;
    /// The schedules of a project: its own first, then those of its stacks in the order of IDs.
    async fn drift_schedules(&self, project: &str) -> Result<Vec<DriftSchedule>, Error>;
    /// Decides for some stacks when they are compared first, and stops watching those without a schedule. `usual`: the schedule of
    /// projects without one. Stacks that had drifted and were updated since are due. Returns whether there may be more.
    async fn plan_drift_checks(&self, usual: Option<Duration>) -> Result<bool, Error>;
    /// Claims a comparison that is due for `ttl`. What others have claimed, or is no longer watched, is not returned.
    async fn claim_drift_check(
        &self,
        mark: Uuid,
        ttl: Duration,
        usual: Option<Duration>,
    ) -> Result<Option<DriftCheck>, Error>;
    /// Ends a claim without a result: it is due again after a delay.
    async fn postpone_drift_check(&self, check: &DriftCheck, delay: Duration) -> Result<(), Error>;
    /// Writes the result of a claimed comparison that began at a time, and tells webhooks and the message bus if something has
    /// changed. Returns whether the claim was still valid.
    async fn end_drift_check(
        &self,
        check: &DriftCheck,
        stack: &Stack,
        report: &DriftReport,
        began: Timestamp,
    ) -> Result<bool, Error>;
    /// Whether engines may repair by themselves: not in maintenance.
    async fn may_repair(&self) -> Result<bool, Error>;
    /// Stacks that are watched, in the order of IDs.
    async fn watched_stacks(&self, query: &WatchedQuery) -> Result<Vec<WatchedStack>, Error>;
}

/// The delay until the first comparison of a stack: its place in the period follows from its ID, so that stacks are not all
/// compared at once. With a schedule of its own: at once.
pub(crate) fn first_delay(stack: StackId, every: Duration, is_its_own: bool) -> Duration {
    if is_its_own {
        return Duration::ZERO;
    }
    let [.., high, low] = stack.0.into_bytes();
    every.mul_f64(f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> DriftedResource {
        DriftedResource { path: path.to_owned(), properties: vec!["name".to_owned()] }
    }

    fn report(status: DriftStatus, paths: &[&str]) -> DriftReport {
        let resources: Vec<_> = paths.iter().map(|path| resource(path)).collect();
        let (repairs, stopped) = (Vec::new(), Vec::new());
        DriftReport { status, drifted: resources.len() as u64, resources, reason: None, repairs, stopped }
    }

    #[test]
    fn only_changes_are_news() {
        use DriftStatus::{Drifted, InSync, NotChecked};
        let (none, one, other) = (report(InSync, &[]), report(Drifted, &["a"]), report(Drifted, &["b"]));
        let unknown = report(NotChecked, &[]);
        // The engine stops to repair it.
        let stopped = DriftReport { stopped: vec![resource("a")], ..one.clone() };
        for (earlier, now, news) in [
            (None, &none, None),
            (None, &one, Some("found")),
            (Some(&none), &one, Some("found")),
            (Some(&unknown), &one, Some("found")),
            (Some(&one), &one, None),
            (Some(&one), &other, Some("changed")),
            (Some(&one), &stopped, Some("changed")),
            (Some(&stopped), &stopped, None),
            (Some(&stopped), &one, None),
            (Some(&one), &none, Some("resolved")),
            (Some(&one), &unknown, None),
            (Some(&unknown), &none, None),
        ] {
            assert_eq!(now.news_since(earlier), news, "{earlier:?} → {now:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_for_a_while_is_news_neither_before_nor_after() {
        use DriftStatus::{Drifted, InSync, NotChecked};
        let (none, one, other) = (report(InSync, &[]), report(Drifted, &["a"]), report(Drifted, &["b"]));
        for (first, last, news) in [
            (&one, &one, None),
            (&one, &other, Some("changed")),
            (&one, &none, Some("resolved")),
            (&none, &none, None),
            (&none, &one, Some("found")),
        ] {
            let mut stored = first.clone();
            for _ in 0..2 {
                let unknown = report(NotChecked, &[]);
                assert_eq!(unknown.news_since(Some(&stored)), None, "{stored:?}");
                stored = unknown.after(Some(&stored));
                assert_eq!((stored.status, stored.drifted), (NotChecked, first.drifted));
            }
            assert_eq!(last.news_since(Some(&stored)), news, "{first:?} → {last:?}");
            assert_eq!(last.after(Some(&stored)), *last);
        }
    }

    #[test]
    fn first_comparisons_are_spread_over_the_period() {
        let day = Duration::from_hours(24);
        let stack = |place: u128| StackId(Uuid::from_u128(place));
        assert_eq!(first_delay(stack(0), day, false), Duration::ZERO);
        assert_eq!(first_delay(stack(u128::MAX), day, false), day);
        assert_eq!(first_delay(stack(u128::MAX), day, true), Duration::ZERO);
    }
}
