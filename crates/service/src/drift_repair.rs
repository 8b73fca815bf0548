//! Repairs of drift because of a schedule: what an engine repairs by itself, and what it only proposes.
//!
//! An engine repairs properties that can be changed in place, if the plan has a low risk: no interruption, replacement or loss. It
//! uses the stored credentials of the stack. For deleted objects, and properties that need a replacement, it saves a plan once a
//! day, which waits for a user. A property that was repaired three times within a day is left: somebody else wants another value.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kiln_identity::Caller;
use kiln_plan_document::Risk;
use kiln_store::{DriftRepair, DriftedResource, PlanQuery, Stack};
use kiln_view::stack_drift::Drift;

use crate::{DriftWatch, Error, PlanStatus};

/// The description of the plans.
const DESCRIPTION: &str = "repair of drift by its schedule";
/// Repairs of a property within a day.
const MOST: usize = 3;
/// A day.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What is to be done about the drift of a stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Properties to repair: the path of the resource, and the property.
    repaired: BTreeSet<(String, String)>,
    /// Resources that only a user may repair, if nothing else is to be repaired.
    proposed: BTreeSet<String>,
    /// Properties that were repaired too often.
    stopped: BTreeSet<(String, String)>,
}

impl Wanted {
    /// Decides about resources by the repairs of the last day.
    pub(crate) fn of<'a>(
        drifted: impl Iterator<Item = (String, &'a Drift)>,
        earlier: &[DriftRepair],
        now: Timestamp,
    ) -> Self {
        let count = |path: &str, property: &str| {
            let same = |one: &&DriftRepair| one.path == path && one.property == property;
            earlier.iter().filter(|one| is_recent(one, now)).filter(same).count()
        };
        let mut wanted = Self::default();
        for (path, drift) in drifted {
            match drift {
                Drift::Modified(properties) if properties.iter().all(|property| !property.needs_replacement) => {
                    let of_it = properties.iter().map(|property| (path.clone(), property.name.clone()));
                    let is_left = |(path, property): &(String, String)| count(path, property) >= MOST;
                    let (left, open): (Vec<_>, Vec<_>) = of_it.partition(is_left);
                    // An update sets all properties of a resource.
                    if left.is_empty() {
                        wanted.repaired.extend(open);
                    }
                    wanted.stopped.extend(left);
                }
                _ if count(&path, "") == 0 => _ = wanted.proposed.insert(path),
                _ => {}
            }
        }
        if !wanted.repaired.is_empty() {
            // A repair makes other plans of the stack stale.
            wanted.proposed.clear();
        }
        wanted
    }

    /// The repairs of the last day with these.
    pub(crate) fn recorded(&self, earlier: &[DriftRepair], now: Timestamp) -> Vec<DriftRepair> {
        let repair = |path: &String, property: &str| DriftRepair {
            path: path.clone(),
            property: property.to_owned(),
            time: now,
        };
        let recent = earlier.iter().filter(|one| is_recent(one, now)).cloned();
        let repaired = self.repaired.iter().map(|(path, property)| repair(path, property));
        recent.chain(repaired).chain(self.proposed.iter().map(|path| repair(path, ""))).collect()
    }

    /// The properties that are left.
    pub(crate) fn stopped(&self) -> Vec<DriftedResource> {
        let mut resources: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (path, property) in &self.stopped {
            resources.entry(path).or_default().push(property.clone());
        }
        resources.into_iter().map(|(path, properties)| DriftedResource { path: path.clone(), properties }).collect()
    }

    /// The paths of the resources of the plan.
    fn paths(&self) -> Vec<String> {
        let repaired: BTreeSet<&String> = self.repaired.iter().map(|(path, _)| path).collect();
        repaired.into_iter().chain(&self.proposed).cloned().collect()
    }
}

fn is_recent(repair: &DriftRepair, now: Timestamp) -> bool {
    now.duration_since(repair.time) < DAY
}

impl DriftWatch {
    /// Makes the plan of a repair, and executes it if it has a low risk. Else it waits for a user.
    pub(crate) async fn repair(&self, stack: &Stack, wanted: &Wanted) -> Result<(), Error> {
        let paths = wanted.paths();
        if paths.is_empty() {
            return Ok(());
        }
        let service = &self.service;
        let caller = service.caller_of(stack).await?;
        self.forget_repairs(stack).await?;
        let saved = service.repair_plan(&caller, stack.clone(), &paths, false, DESCRIPTION).await?;
        let Some(saved) = saved else { return Ok(()) };
        let (plan, digest) = (saved.plan.id, saved.plan.digest.clone());
        let document = service.plan_document(&saved).await?;
        let risk = document.map_or(Risk::DataLoss, |document| document.risk());
        let id = stack.id.to_string();
        let (project, name) = (&stack.project, &stack.name);
        if wanted.repaired.is_empty() || risk > Risk::Change {
            tracing::info!(stack = id, name, project, %plan, ?risk, "the plan of a repair waits for a user");
            return Ok(());
        }
        match service.execute_plan(&caller, saved, Some(&digest), None).await {
            Ok(_) => tracing::info!(stack = id, name, project, %plan, "drift is repaired"),
            Err(error @ (Error::Unapproved { .. } | Error::UnderGuard { .. })) => {
                tracing::info!(stack = id, name, project, %plan, %error, "the plan of a repair waits for a user");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl DriftWatch {
    /// Deletes the plans of earlier repairs that nobody has approved or executed: a new one takes their place.
    async fn forget_repairs(&self, stack: &Stack) -> Result<(), Error> {
        let (project, stack) = (stack.project.clone(), Some(stack.id));
        let query = PlanQuery { project, stack, ..PlanQuery::default() };
        for saved in self.service.plans(&query).await? {
            let waits = matches!(saved.status, PlanStatus::Ready | PlanStatus::Stale);
            if waits
                && saved.description() == DESCRIPTION
                && self.service.backends.store.approvals(saved.plan.id).await?.is_empty()
            {
                self.service.delete_plan(&saved).await?;
            }
        }
        Ok(())
    }
}

impl crate::Service {
    /// The user for whom the stored credentials of a stack act, without a token: for what its schedule asks for. Of the types whose
    /// use depends on roles, none is allowed.
    async fn caller_of(&self, stack: &Stack) -> Result<Caller, Error> {
        let stored = match stack.credentials {
            Some(id) => Some(self.backends.store.credentials(id).await?),
            None => None,
        };
        let user = stored.and_then(|stored| self.identity.user_of(&stored));
        let user = user.unwrap_or_else(|| stack.user_id.clone());
        Ok(Caller::without_token(user, stack.username.clone(), stack.project.clone()))
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::Value;
    use kiln_view::stack_drift::PropertyDrift;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

    /// Resources that differ in these properties; those in capitals need a replacement, none: the object is deleted.
    fn drifted(resources: &[(&str, &[&str])]) -> Vec<(String, Drift)> {
        let property = |name: &&str| PropertyDrift {
            name: (*name).to_owned(),
            expected: Value::Null,
            baseline: None,
            actual: Value::Null,
            needs_replacement: name.starts_with(char::is_uppercase),
        };
        let resource = |(name, properties): &(&str, &[&str])| {
            let drift = match properties {
                [] => Drift::Deleted,
                some => Drift::Modified(some.iter().map(property).collect()),
            };
            ((*name).to_owned(), drift)
        };
        resources.iter().map(resource).collect()
    }

    fn repairs(of: &[(&str, i64)]) -> Vec<DriftRepair> {
        let repair = |(place, hours): &(&str, i64)| {
            let (path, property) = place.split_once('.').unwrap_or((place, ""));
            let time = NOW - SignedDuration::from_hours(*hours);
            DriftRepair { path: path.to_owned(), property: property.to_owned(), time }
        };
        of.iter().map(repair).collect()
    }

    #[test]
    fn low_risk_is_repaired_and_the_rest_proposed_once_a_day() {
        type Case<'a> = (&'a [(&'a str, &'a [&'a str])], &'a [(&'a str, i64)], &'a str, &'a str);
        let table: [Case<'_>; 10] = [
            (&[], &[], "", ""),
            (&[("net", &["name", "mtu"])], &[], "net.mtu net.name", ""),
            // What needs a replacement, or is deleted, waits for a user.
            (&[("net", &["name", "Cidr"])], &[], "net.", ""),
            (&[("net", &[])], &[], "net.", ""),
            (&[("net", &[])], &[("net", 23)], "", ""),
            (&[("net", &[])], &[("net", 24)], "net.", ""),
            // First what an engine may do: its repair would make a plan of the rest stale.
            (&[("gone", &[]), ("net", &["name"])], &[], "net.name", ""),
            (&[("net", &["name"])], &[("net.name", 1), ("net.name", 2), ("net.mtu", 1)], "net.name", ""),
            (&[("net", &["name"])], &[("net.name", 1), ("net.name", 2), ("net.name", 25)], "net.name", ""),
            // The update of a resource would also set the property that is left.
            (
                &[("net", &["mtu", "name"]), ("port", &["name"])],
                &[("net.name", 1), ("net.name", 2), ("net.name", 3)],
                "port.name",
                "net.name",
            ),
        ];
        for (resources, earlier, done, stopped) in table {
            let drift = drifted(resources);
            let drift = drift.iter().map(|(path, drift)| (path.clone(), drift));
            let wanted = Wanted::of(drift, &repairs(earlier), NOW);
            let recorded = wanted.recorded(&repairs(earlier), NOW);
            let new = recorded.iter().filter(|one| one.time == NOW).map(|one| format!("{}.{}", one.path, one.property));
            assert_eq!(new.collect::<Vec<_>>().join(" "), done, "{resources:?} {earlier:?}");
            let recent = earlier.iter().filter(|(_, hours)| *hours < 24).count();
            assert_eq!(recorded.iter().filter(|one| one.time != NOW).count(), recent, "{resources:?} {earlier:?}");
            let left = wanted.stopped().into_iter().map(|one| format!("{}.{}", one.path, one.properties.join(" ")));
            assert_eq!(left.collect::<Vec<_>>().join(", "), stopped, "{resources:?} {earlier:?}");
        }
    }
}
