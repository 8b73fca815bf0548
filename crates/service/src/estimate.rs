//! How long a plan takes: the longest way through its resources, with the times of earlier operations of their types.

use std::collections::{BTreeSet, HashMap};

use kiln_plan_document::{Decision, Entry, Estimate, PlanDocument};
use kiln_resource::Action;
use kiln_store::{Durations, Operation};

use crate::saved_plan::Content;
use crate::{Error, Service};

/// The shares of the earlier operations that [`Estimate::seconds`] and [`Estimate::seconds_at_most`] are not below.
const HALF: f64 = 0.5;
/// See [`HALF`].
const NEARLY_ALL: f64 = 0.9;

impl Service {
    /// Adds to a plan how long it takes.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn estimate(&self, plan: &mut PlanDocument) -> Result<(), Error> {
        let is_known = |name: &str| self.backends.resource_types.types.get(name).is_some();
        let changing =
            plan.resources.iter().filter(|entry| !entry.decision.is_kept() && is_known(&entry.resource_type));
        let types: BTreeSet<String> = changing.map(|entry| entry.resource_type.clone()).collect();
        plan.estimate = estimate(&plan.resources, &self.backends.store.durations(&types).await?).map(Box::new);
        Ok(())
    }

    /// How long the plan of an operation was to take; `None`: it has no plan, or that does not exist any more.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn estimate_of(&self, operation: &Operation) -> Result<Option<Box<Estimate>>, Error> {
        let Some(id) = operation.plan else { return Ok(None) };
        let plan = self.backends.store.plan(&operation.project, id).await?;
        let content = plan.map(|plan| Content::of_body(&plan.body)).transpose()?;
        Ok(content.and_then(|content| content.document?.estimate))
    }
}

/// How long the changes of these resources take; `None` if nothing is known of them. Parents come first.
fn estimate(entries: &[Entry], durations: &Durations) -> Option<Estimate> {
    let network = Network::of(entries);
    let (mut operations, mut unknown, mut used) = (0, BTreeSet::new(), BTreeSet::new());
    for (place, entry) in entries.iter().enumerate() {
        if network.inside[place].is_empty() {
            for action in actions(entry.decision.at_most) {
                match durations.get(&(entry.resource_type.clone(), *action)) {
                    Some(histogram) if used.insert((&entry.resource_type, *action)) => operations += histogram.total(),
                    Some(_) => {}
                    None => drop(unknown.insert(entry.resource_type.clone())),
                }
            }
        }
    }
    if operations == 0 {
        return None;
    }
    let time = |share: f64, action: Action, entry: &Entry| {
        let histogram = durations.get(&(entry.resource_type.clone(), action));
        histogram.and_then(|histogram| histogram.quantile(share)).unwrap_or_default()
    };
    let all = |share: f64, decision: fn(&Entry) -> Decision| {
        let seconds = network.longest(|entry| match decision(entry) {
            Decision::Create => (time(share, Action::Create, entry), 0.0),
            Decision::Update => (time(share, Action::Update, entry), 0.0),
            Decision::Delete => (time(share, Action::Delete, entry), 0.0),
            // The old object goes when those that use it have the new one.
            Decision::Replace => (time(share, Action::Create, entry), time(share, Action::Delete, entry)),
            Decision::Keep | Decision::Refuse => (0.0, 0.0),
        });
        (seconds * 100.0).round() / 100.0
    };
    let seconds = all(HALF, |entry| entry.decision.at_least);
    let seconds_at_most = all(NEARLY_ALL, |entry| entry.decision.at_most).max(seconds);
    Some(Estimate { seconds, seconds_at_most, operations, unknown: unknown.into_iter().collect() })
}

/// What is done with an object.
fn actions(decision: Decision) -> &'static [Action] {
    match decision {
        Decision::Create => &[Action::Create],
        Decision::Update => &[Action::Update],
        Decision::Delete => &[Action::Delete],
        Decision::Replace => &[Action::Create, Action::Delete],
        Decision::Keep | Decision::Refuse => &[],
    }
}

/// The resources of a plan, by what they wait for.
struct Network<'a> {
    entries: &'a [Entry],
    /// The places of the resources that a resource waits for.
    before: Vec<Vec<usize>>,
    /// The place of the resource that owns its stack.
    parent: Vec<Option<usize>>,
    /// The places of the resources of its nested stack.
    inside: Vec<Vec<usize>>,
}

/// The begin or the end of a resource.
#[derive(Clone, Copy)]
enum Moment {
    Begin(usize),
    End(usize),
}

impl<'a> Network<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut places: HashMap<(&str, bool), usize> = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            places.entry((&entry.path, entry.former)).or_insert(place);
        }
        let find =
            |path: &str, former: bool| places.get(&(path, former)).or_else(|| places.get(&(path, !former))).copied();
        let mut network =
            Self { entries, before: Vec::new(), parent: Vec::new(), inside: vec![Vec::new(); entries.len()] };
        for (place, entry) in entries.iter().enumerate() {
            let parent = entry.parent.as_deref().and_then(|parent| find(parent, entry.former));
            if let Some(parent) = parent {
                network.inside[parent].push(place);
            }
            network.parent.push(parent);
            let waits = entry.waits_for.iter().filter_map(|path| find(path, entry.former));
            network.before.push(waits.filter(|other| *other != place).collect());
        }
        network
    }

    /// The end of the last resource, in seconds. `time`: what a resource needs itself, and what comes after all others.
    fn longest(&self, time: impl Fn(&Entry) -> (f64, f64)) -> f64 {
        let count = self.entries.len();
        // Begins, then ends. NaN: it is being computed, so that a cycle ends.
        let mut known: Vec<Option<f64>> = vec![None; 2 * count];
        let place_of = |moment: &Moment| match moment {
            Moment::Begin(place) => *place,
            Moment::End(place) => count + *place,
        };
        let (mut last, mut afterwards) = (0.0_f64, 0.0_f64);
        let mut open = Vec::new();
        for place in 0..count {
            open.push((Moment::End(place), false));
            while let Some((moment, is_ready)) = open.pop() {
                let at = place_of(&moment);
                if !is_ready {
                    if known[at].is_none() {
                        known[at] = Some(f64::NAN);
                        open.push((moment, true));
                        open.extend(self.needs(moment).map(|needed| (needed, false)));
                    }
                    continue;
                }
                // `max` ignores NaN.
                let needs = self.needs(moment).filter_map(|needed| known[place_of(&needed)]);
                let begin = needs.fold(0.0_f64, f64::max);
                known[at] = Some(match moment {
                    Moment::End(place) if self.inside[place].is_empty() => begin + time(&self.entries[place]).0,
                    _ => begin,
                });
            }
            last = last.max(known[count + place].unwrap_or_default());
            if self.inside[place].is_empty() {
                afterwards = afterwards.max(time(&self.entries[place]).1);
            }
        }
        last + afterwards
    }

    /// The moments that come before one.
    fn needs(&self, moment: Moment) -> impl Iterator<Item = Moment> {
        let (begin, begins, ends): (_, Option<usize>, &[usize]) = match moment {
            Moment::Begin(place) => (None, self.parent[place], &self.before[place]),
            Moment::End(place) => (Some(place), None, &self.inside[place]),
        };
        let begins = begin.into_iter().chain(begins).map(Moment::Begin);
        begins.chain(ends.iter().copied().map(Moment::End))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kiln_plan_document::Bounds;
    use kiln_store::Histogram;

    use super::*;

    fn entry(path: &str, decision: Decision, waits_for: &[&str]) -> Entry {
        Entry {
            decision: Bounds::certain(decision),
            waits_for: waits_for.iter().map(|path| (*path).to_owned()).collect(),
            ..Entry::kept(path.to_owned(), "Server".to_owned())
        }
    }

    /// Eight creates that took 10 s and two that took 100 s, and a delete of 3 s.
    fn durations() -> Durations {
        let mut creates = Histogram::default();
        for seconds in [10; 8].into_iter().chain([100; 2]) {
            creates.add(Duration::from_secs(seconds));
        }
        let mut deletes = Histogram::default();
        deletes.add(Duration::from_secs(3));
        let of = |action| ("Server".to_owned(), action);
        Durations::from([(of(Action::Create), creates), (of(Action::Delete), deletes)])
    }

    /// The seconds, and those at most, in units of a create.
    fn creates(entries: &[Entry]) -> (f64, f64) {
        let found = estimate(entries, &durations()).unwrap();
        let one = estimate(&[entry("one", Decision::Create, &[])], &durations()).unwrap();
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        (rounded(found.seconds / one.seconds), rounded(found.seconds_at_most / one.seconds_at_most))
    }

    #[test]
    fn what_waits_for_others_comes_after_them() {
        use Decision::{Create, Keep};
        let one = estimate(&[entry("one", Create, &[])], &durations()).unwrap();
        assert!((8.0..12.0).contains(&one.seconds) && (80.0..120.0).contains(&one.seconds_at_most), "{one:?}");
        assert_eq!((one.operations, one.unknown.len()), (10, 0));
        assert_eq!(creates(&[entry("a", Create, &[]), entry("b", Create, &[])]), (1.0, 1.0));
        let chain = [entry("a", Create, &["b"]), entry("b", Keep, &["c"]), entry("c", Create, &[])];
        assert_eq!(creates(&chain), (2.0, 2.0), "through one that is kept");
        // Of no plan.
        assert_eq!(creates(&[entry("a", Create, &["b", "none"]), entry("b", Create, &["a"])]), (2.0, 2.0));
    }

    #[test]
    fn a_nested_stack_takes_as_long_as_what_is_in_it() {
        use Decision::{Create, Update};
        let group = || entry("group", Update, &["net"]);
        let entries = [
            entry("after", Create, &["group"]),
            group(),
            entry("group/0", Create, &[]),
            entry("group/1", Create, &["group/0"]),
            entry("net", Create, &[]),
        ];
        assert_eq!(creates(&entries), (4.0, 4.0), "net, 0, 1, after");
        // Its content is not known yet.
        let found = estimate(&[entry("net", Create, &[]), group()], &durations()).unwrap();
        assert_eq!(found.unknown, ["Server"], "there are no updates");
    }

    #[test]
    fn old_objects_go_at_the_end_and_bounds_give_a_spread() {
        use Decision::{Create, Keep, Replace};
        let found = estimate(&[entry("a", Replace, &[])], &durations()).unwrap();
        assert!((11.0..16.0).contains(&found.seconds), "{found:?}");
        let may = Entry { decision: Bounds { at_least: Keep, at_most: Create }, ..entry("a", Keep, &[]) };
        let found = estimate(&[may], &durations()).unwrap();
        assert!(found.seconds < 0.01 && found.seconds_at_most > 80.0, "{found:?}");
        assert_eq!(estimate(&[entry("a", Keep, &[])], &durations()), None);
        assert_eq!(estimate(&[entry("a", Create, &[])], &Durations::new()), None);
    }

    #[test]
    fn a_long_chain_is_linear() {
        let paths: Vec<String> = (0..100_000).map(|number| format!("r{number:06}")).collect();
        let chain: Vec<Entry> = paths.windows(2).map(|two| entry(&two[0], Decision::Create, &[&two[1]])).collect();
        let found = estimate(&chain, &durations()).unwrap();
        assert!(found.seconds > 800_000.0, "{found:?}");
    }
}
