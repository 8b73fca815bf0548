//! Compares a plan with the requests that a recorder between engine and cloud has seen.

use std::collections::{BTreeMap, BTreeSet};

use kiln_plan_document::{Action, Decision, Entry, Property};
use kiln_store::{StackId, Store};
use kiln_view::plan_document::Plan;
use kiln_view::preview::Preview;

use super::Seen;
use crate::recorder::Recorded;

/// The objects in the cloud of a tree of stacks: the path of the resource of each ID, also of former rows.
pub(crate) type Owners = BTreeMap<String, String>;

/// Reads the objects of a tree.
pub(crate) async fn owners(store: &dyn Store, stack: StackId) -> Owners {
    let mut owners = Owners::new();
    let mut open = vec![(String::new(), stack)];
    while let Some((above, stack)) = open.pop() {
        for row in store.resources(stack).await.expect("read") {
            let path = format!("{above}{}", row.name);
            match (row.child, row.physical_id) {
                (Some(child), _) => open.push((format!("{path}/"), child)),
                (None, Some(id)) if SENDS.contains(&row.resource_type.as_str()) => _ = owners.insert(id, path),
                (None, _) => {}
            }
        }
    }
    owners
}

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Creates,
    Changes,
    Deletes,
}

/// The object that a request changes; `None`: it changes nothing, or was refused.
fn effect(call: &Recorded) -> Option<(String, Effect)> {
    // Somebody else may have deleted an object before.
    let is_done = (200..300).contains(&call.status) || (call.method == "DELETE" && call.status == 404);
    if call.method == "GET" || call.service == "identity" || !is_done {
        return None;
    }
    let segments: Vec<&str> = call.path.split('/').skip(1).collect();
    let inner = |body: &serde_json::Value, key: &str| {
        let object = body.as_object()?.values().next()?;
        Some(object.get(key)?.as_str()?.to_owned())
    };
    match (call.method.as_str(), segments.as_slice()) {
        // The copy of a volume that goes belongs to the volume.
        ("POST", ["backups"]) => Some((inner(&call.body, "volume_id").unwrap_or_default(), Effect::Changes)),
        ("POST", [_]) => Some((inner(&call.answer, "id").unwrap_or_default(), Effect::Creates)),
        ("DELETE", [_, id]) => Some(((*id).to_owned(), Effect::Deletes)),
        (_, [_, id, ..]) => Some(((*id).to_owned(), Effect::Changes)),
        _ => Some((call.path.clone(), Effect::Changes)),
    }
}

/// The errors of a plan about the requests of its update, and the number of these. After a failure (`is_whole` is false),
/// planned requests may be missing.
pub(crate) fn compare(
    preview: &Preview,
    before: &Seen,
    after: &Seen,
    calls: &[Recorded],
    is_whole: bool,
) -> (Vec<String>, usize) {
    let Plan(document) = Plan::of(preview, Action::Update);
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<&str, BTreeMap<Effect, BTreeSet<String>>> = BTreeMap::new();
    let mut count = 0;
    for call in calls {
        let Some((id, effect)) = effect(call) else { continue };
        count += 1;
        match after.owners.get(&id).or_else(|| before.owners.get(&id)) {
            Some(path) => _ = seen.entry(path).or_default().entry(effect).or_default().insert(id),
            None => wrong.push(format!("an object of no resource: {} {}{}", call.method, call.service, call.path)),
        }
    }
    let mut planned: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in &document.resources {
        planned.entry(&entry.path).or_default().push(entry);
    }
    let nothing = BTreeMap::new();
    // Whether it is in a stack whose content is known later: any resource may be created.
    let is_open = |path: &str| {
        let mut above = std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0)).skip(1);
        above.any(|above| planned.get(above).into_iter().flatten().any(|entry| entry.content.is_some()))
    };
    for (path, calls) in seen.iter().filter(|(path, _)| !planned.contains_key(*path) && !is_open(path)) {
        wrong.push(format!("{path}: {calls:?}, not in the plan"));
    }
    for (path, entries) in &planned {
        let calls = seen.get(path).unwrap_or(&nothing);
        let number = |effect| calls.get(&effect).map_or(0, BTreeSet::len);
        let (mut creates, mut deletes, mut may_change) = ((0, 0), (0, 0), false);
        for entry in entries {
            let object = entry.object.as_ref().filter(|id| before.owners.contains_key(*id) && !entry.retained);
            // Somebody else may have deleted it.
            let is_there = object.is_some_and(|id| before.objects.contains_key(id));
            let (least, most) = (entry.decision.at_least, entry.decision.at_most);
            let creates_one = |decision| usize::from(matches!(decision, Decision::Create | Decision::Replace));
            let goes = |decision| matches!(decision, Decision::Delete | Decision::Replace);
            creates = (creates.0 + creates_one(least), creates.1 + creates_one(most).max(usize::from(is_open(path))));
            deletes.0 += usize::from(is_there && goes(least));
            deletes.1 += usize::from(object.is_some() && goes(most));
            may_change |= !matches!(most, Decision::Keep | Decision::Refuse);
        }
        let is_object = SENDS.contains(&entries[0].resource_type.as_str());
        let within = |(least, most): (usize, usize), number: usize| {
            (!is_object || !is_whole || number >= least) && number <= most
        };
        if !within(creates, number(Effect::Creates)) || !within(deletes, number(Effect::Deletes)) {
            wrong.push(format!("{path}: {calls:?}, planned {creates:?} creates and {deletes:?} deletes: {entries:?}"));
        }
        if !may_change && number(Effect::Changes) > 0 {
            wrong.push(format!("{path}: {calls:?}, planned to stay: {entries:?}"));
        }
        // A value that is known later may turn out to be the current one.
        let is_known = |property: &Property| {
            property.after.as_ref().is_none_or(|after| !kiln_value::text::json(&after.value).contains("known_after"))
        };
        let is_update =
            |entry: &Entry| entry.decision.at_least == Decision::Update && entry.properties.iter().any(is_known);
        if is_whole && is_object && entries.iter().any(|entry| is_update(entry)) && number(Effect::Changes) == 0 {
            wrong.push(format!("{path}: no request of a planned update: {entries:?}"));
        }
    }
    (wrong, count)
}

/// The generated types that have objects in the cloud.
const SENDS: [&str; 5] =
    ["OS::Neutron::Net", "OS::Neutron::Subnet", "OS::Neutron::Port", "OS::Nova::Server", "OS::Cinder::Volume"];
