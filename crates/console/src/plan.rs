//! Shows the plan of a change to a stack: as text, as Markdown for merge requests, as a page.

mod details;
mod kind;
mod markdown;
mod page;
mod text;
mod written;

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use kiln_plan_document::{Check, Entry, Estimate, PlanDocument, Risk, Verdict};

use crate::natural_order::natural_order;
use crate::timeline::duration;
use kind::Kind;

pub use text::Canvas;

/// A plan that can be shown.
pub struct Plan<'a> {
    document: &'a PlanDocument,
    /// The resources that change, as a tree: each one with those of its nested stack.
    nodes: Vec<Node<'a>>,
    /// The nodes of the stack itself.
    roots: Vec<usize>,
    unchanged: usize,
}

/// A resource that changes.
struct Node<'a> {
    entry: &'a Entry,
    kind: Kind,
    /// The highest risk of it and of the resources below it.
    risk: Risk,
    /// The nodes of its nested stack.
    inside: Vec<usize>,
    /// Its name, or its path if the resource above it does not change.
    name: &'a str,
}

impl<'a> Plan<'a> {
    /// What its pre-flight has found.
    fn found(&self) -> impl Iterator<Item = &'a Check> {
        self.document.preflight.iter().filter(|one| one.verdict != Verdict::Passed)
    }

    /// The plan of a document.
    pub fn of(document: &'a PlanDocument) -> Self {
        let mut nodes: Vec<Node<'a>> = Vec::new();
        let mut roots = Vec::new();
        let mut unchanged = 0;
        // Parents come first. What belongs to a former stack is below its former owner, if that is in the plan.
        let mut places: HashMap<(&str, bool), usize> = HashMap::new();
        let mut above: Vec<Option<usize>> = Vec::new();
        for entry in &document.resources {
            let Some(kind) = Kind::of(entry) else {
                unchanged += 1;
                continue;
            };
            let parent = entry.parent.as_deref();
            let owner = parent.and_then(|parent| {
                let of_same = places.get(&(parent, entry.former));
                of_same.or_else(|| places.get(&(parent, false))).copied()
            });
            let place = nodes.len();
            places.insert((&entry.path, entry.former), place);
            match owner.and_then(|owner| nodes.get_mut(owner)) {
                Some(owner) => owner.inside.push(place),
                None => roots.push(place),
            }
            above.push(owner);
            let name = if owner.is_some() { entry.name() } else { &entry.path };
            nodes.push(Node { entry, kind, risk: entry.risk, inside: Vec::new(), name });
        }
        for (place, owner) in above.iter().enumerate().rev() {
            if let Some(owner) = *owner {
                nodes[owner].risk = nodes[owner].risk.max(nodes[place].risk);
            }
        }
        let mut plan = Self { document, nodes, roots, unchanged };
        let mut lists: Vec<Vec<usize>> = plan.nodes.iter_mut().map(|node| std::mem::take(&mut node.inside)).collect();
        for list in &mut lists {
            plan.sort(list);
        }
        for (node, list) in plan.nodes.iter_mut().zip(lists) {
            node.inside = list;
        }
        let mut roots = std::mem::take(&mut plan.roots);
        plan.sort(&mut roots);
        Self { roots, ..plan }
    }

    /// Sorts siblings: what fails, then by risk, then by name.
    fn sort(&self, places: &mut [usize]) {
        let first = |place: &usize| {
            let node = &self.nodes[*place];
            (Reverse(node.kind == Kind::Refused), Reverse(node.risk))
        };
        places.sort_by(|a, b| first(a).cmp(&first(b)).then_with(|| self.by_name(*a, *b)));
    }

    fn by_name(&self, a: usize, b: usize) -> Ordering {
        natural_order(self.nodes[a].name, self.nodes[b].name)
    }

    /// Number of resources that are or may be replaced or deleted, or that lose something.
    pub fn destroyed(&self) -> usize {
        self.nodes.iter().filter(|node| node.entry.destroys()).count()
    }

    fn count(&self, kind: Kind) -> usize {
        self.nodes.iter().filter(|node| node.kind == kind).count()
    }

    /// The kinds of changes in the plan.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| self.count(*kind) > 0)
    }

    /// Summary line with the number of changes.
    pub fn summary(&self) -> String {
        let counts = Kind::ALL.map(|kind| (self.count(kind), kind.words().1));
        let counts = counts.into_iter().chain([(self.unchanged, "unchanged")]);
        let parts: Vec<String> =
            counts.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        let lost = self.document.snapshots.len();
        let lost = (lost > 0).then(|| format!("{lost} {} to delete", if lost == 1 { "snapshot" } else { "snapshots" }));
        let parts: Vec<String> = parts.into_iter().chain(lost).collect();
        if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") }
    }

    /// How long it takes, if that is known and takes a while.
    fn time(&self) -> Option<String> {
        let estimate = self.document.estimate.as_ref().filter(|estimate| estimate.seconds_at_most >= 1.0)?;
        let Estimate { seconds, seconds_at_most, operations, unknown } = &**estimate;
        let earlier =
            if *operations == 1 { "1 earlier operation" } else { &format!("{operations} earlier operations") };
        let (about, most) = (duration(*seconds), duration(*seconds_at_most));
        let unknown = match unknown.as_slice() {
            [] => String::new(),
            [one] => format!("; no earlier operations of {one}"),
            [first, more @ ..] => format!("; no earlier operations of {first} and of {} other types", more.len()),
        };
        Some(format!("about {about}, seldom more than {most} (from {earlier}){unknown}"))
    }

    /// The section of the template with which resources that are only renamed keep their objects.
    fn moves(&self) -> Option<String> {
        let renamed = &self.document.renamed;
        let entries: Vec<String> =
            renamed.iter().map(|one| format!("{{from: {}, to: {}}}", one.from, one.to)).collect();
        let what = match &renamed[..] {
            [] => return None,
            [one] => format!("{} has the definition of {}: to keep its object", one.to, one.from),
            many => format!("{} resources have the definitions of others: to keep their objects", many.len()),
        };
        Some(format!("{what}, add to the template  moved: [{}]", entries.join(", ")))
    }

    /// The number of resources that change by their risk, the highest first; `None`: nothing changes.
    fn risks(&self) -> Option<String> {
        let counts = Risk::ALL.map(|risk| (risk, self.document.totals.of(risk)));
        let changing = counts.into_iter().filter(|(risk, count)| *count > 0 && *risk != Risk::None);
        let risks: Vec<String> = changing.map(|(risk, count)| format!("{count} × {}", risk.words())).collect();
        (!risks.is_empty()).then(|| risks.join(", "))
    }
}

#[cfg(test)]
mod tests;
