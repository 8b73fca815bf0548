//! Where two plans of the same change differ.

use std::collections::BTreeMap;

use crate::{Entry, PlanDocument};

/// The first resources in which a plan differs from a newer one of the same change, with what differs: the world has moved
/// between the two. At most `limit`.
pub fn differences(planned: &PlanDocument, now: &PlanDocument, limit: usize) -> Vec<String> {
    let key = |entry: &Entry| (entry.path.clone(), entry.former, entry.object.clone());
    let mut new: BTreeMap<_, &Entry> = now.resources.iter().map(|entry| (key(entry), entry)).collect();
    let mut found = Vec::new();
    for old in &planned.resources {
        let path = &old.path;
        let text = match new.remove(&key(old)) {
            None => Some(format!("{path} is not there any more")),
            Some(new) if is_same(old, new) => None,
            Some(new) => Some(format!("{path}: {}", difference(old, new))),
        };
        found.extend(text);
        if found.len() == limit {
            return found;
        }
    }
    found.extend(new.into_values().map(|entry| format!("{} is new", entry.path)));
    if found.is_empty() && planned.outputs != now.outputs {
        found.push("the outputs have other values".to_owned());
    }
    if planned.snapshots != now.snapshots {
        found.push("the stack has other snapshots".to_owned());
    }
    found.truncate(limit);
    found
}

/// Whether a plan does the same with a resource. The objects are compared with what was read, not by what it says of them, and
/// guards are heeded as they are when it is executed.
fn is_same(old: &Entry, new: &Entry) -> bool {
    let noted = |new: &Entry| Entry { outside: new.outside.clone(), guard: new.guard.clone(), ..old.clone() };
    old == new || (old.outside != new.outside || old.guard != new.guard) && noted(new) == *new
}

fn difference(old: &Entry, new: &Entry) -> String {
    if old.decision != new.decision {
        let word = |entry: &Entry| format!("{:?}", entry.decision.at_most).to_lowercase();
        return format!("the plan was {}, now it is {}", word(old), word(new));
    }
    let names = |entry: &Entry| entry.properties.iter().map(|property| property.name.clone()).collect::<Vec<_>>();
    let differing = new.properties.iter().find(|property| !old.properties.contains(property));
    let missing = names(old).into_iter().find(|name| !names(new).contains(name));
    match (differing.map(|property| property.name.clone()).or(missing), old.names != new.names) {
        (Some(property), _) => format!("{property} has another value, or a name in it means another object"),
        (None, true) => "a name in its properties means another object".to_owned(),
        (None, false) if old.lost != new.lost => "something else would be lost".to_owned(),
        (None, false) => "what it depends on has changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;
    use crate::{Action, Bounds, Decision, DeletedSnapshot, Property, Side};

    #[test]
    fn each_difference_is_named() {
        let entry = |path: &str| Entry::kept(path.to_owned(), "OS::Nova::Server".to_owned());
        let image = |id: &str| Property::new("image".to_owned(), None, Some(Side::from(value!(id))));
        let update = |path: &str, id: &str| Entry {
            decision: Bounds::certain(Decision::Update),
            properties: vec![image(id)],
            ..entry(path)
        };
        let plan = |entries: Vec<Entry>| PlanDocument::new(Action::Update, "s".to_owned(), entries, Vec::new());
        let old = plan(vec![entry("a"), entry("gone"), update("web", "1"), update("x", "1")]);
        assert!(differences(&old, &old, 9).is_empty());
        let new = plan(vec![entry("a"), entry("fresh"), update("web", "2"), entry("x")]);
        let expected = [
            "gone is not there any more",
            "web: image has another value, or a name in it means another object",
            "x: the plan was update, now it is keep",
            "fresh is new",
        ];
        assert_eq!(differences(&old, &new, 9), expected);
        assert_eq!(differences(&old, &new, 1), expected[..1]);
        let copied = DeletedSnapshot { id: "1".to_owned(), name: None };
        let new = PlanDocument { snapshots: vec![copied], ..old.clone() };
        assert_eq!(differences(&old, &new, 9), ["the stack has other snapshots"]);
    }
}
