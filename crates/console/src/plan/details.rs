//! The lines of a plan about a resource: its properties, why it changes, what is lost.

use kiln_plan_document::{Decision, DeletedSnapshot, Downtime, Element, Entry, Property, Step};
use kiln_value::{Value, text};
use similar::{ChangeTag, TextDiff};

use super::kind::Kind;
use super::written;
use crate::output::visible;

/// Texts with more lines are not compared: the time grows with the square of the lines that differ.
const COMPARED: usize = 5_000;
/// The unchanged lines that are shown around changed ones.
const AROUND: usize = 2;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Something that there is, or that stays.
    Plain,
    /// A value that is added.
    Added,
    /// A value that is removed.
    Removed,
    /// A value that changes.
    Changed,
    /// A reason, a loss, a warning.
    Important,
}

/// A line about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) mark: Mark,
    /// Whether it is a part of what the line above it begins.
    pub(super) is_inner: bool,
    pub(super) text: String,
}

impl Line {
    fn new(mark: Mark, text: impl AsRef<str>) -> Self {
        Self { mark, is_inner: false, text: visible(text.as_ref()).into_owned() }
    }

    fn inner(mark: Mark, text: impl AsRef<str>) -> Self {
        Self { is_inner: true, ..Self::new(mark, text) }
    }
}

/// The lines about a resource.
pub(super) fn lines(entry: &Entry, kind: Kind) -> Vec<Line> {
    let moved = entry.moved_from.iter().map(|from| Line::new(Mark::Plain, format!("moved from {from}")));
    let mut lines: Vec<Line> = moved.collect();
    let is_whole = matches!(entry.decision.at_most, Decision::Create | Decision::Delete);
    for property in &entry.properties {
        if is_whole && kind != Kind::MayDelete {
            whole(property, &mut lines);
        } else if kind != Kind::MayDelete {
            changed(property, &mut lines);
        }
    }
    if kind == Kind::MayDelete || (lines.is_empty() && !kind.is_certain()) {
        let awaited = entry.awaited.iter().map(|one| format!("known after {}", one.known_after));
        lines.extend(awaited.map(|text| Line::new(Mark::Plain, text)));
    }
    if let Some(content) = &entry.content {
        lines.push(Line::new(Mark::Plain, format!("its resources are known after {}", content.known_after)));
    }
    if kind.is_certain() {
        let reasons = entry.reasons.iter().map(|reason| format!("because: {reason}"));
        lines.extend(reasons.map(|text| Line::new(Mark::Important, text)));
    }
    lines.extend(entry.guard.iter().map(|guard| Line::new(Mark::Important, format!("forbidden by {guard}"))));
    lines.extend(entry.ignored.iter().map(|one| {
        let what = if one.leaves { "stays as it is" } else { "ignored in drift" };
        Line::new(Mark::Plain, format!("{}: {what}, says {}", one.property, one.guard))
    }));
    if !entry.outside.is_empty() {
        lines.push(Line::new(Mark::Important, "changed outside of Kiln:"));
        lines.extend(entry.outside.iter().map(|change| {
            let before = change.baseline.as_ref().unwrap_or(&change.applied);
            let values = both(&written::value(before), &written::value(&change.live));
            Line::inner(Mark::Changed, format!("{}: {values} ({})", change.property, change.then.words()))
        }));
    }
    if entry.former {
        lines.push(Line::new(Mark::Plain, "former: another resource has its name now"));
    }
    if entry.retained {
        lines.push(Line::new(Mark::Plain, "kept: the object is not deleted"));
    }
    if matches!(entry.downtime, Downtime::Restart | Downtime::Rebuild) {
        lines.push(Line::new(Mark::Important, format!("downtime: {}", entry.downtime.word())));
    }
    lines.extend(entry.lost.iter().map(|lost| Line::new(Mark::Important, format!("lost: {}", lost.what))));
    lines
}

/// What follows the ID of a snapshot.
pub(super) fn snapshot_name(snapshot: &DeletedSnapshot) -> String {
    snapshot.name.as_ref().map(|name| format!("  ({name})")).unwrap_or_default()
}

/// The lines about the property of a new or a deleted resource.
fn whole(property: &Property, lines: &mut Vec<Line>) {
    let Some(side) = property.after.as_ref().or(property.before.as_ref()) else { return };
    match &side.value {
        Value::Str(content) if content.trim_end().contains('\n') => {
            lines.push(Line::new(Mark::Plain, format!("{}:", property.name)));
            lines.extend(content.lines().map(|line| Line::inner(Mark::Plain, line)));
        }
        _ => lines.push(Line::new(Mark::Plain, format!("{}: {}", property.name, written::side(&property.name, side)))),
    }
}

/// The lines about a property that changes.
fn changed(property: &Property, lines: &mut Vec<Line>) {
    let name = &property.name;
    match (&property.before, &property.after) {
        (Some(before), Some(after)) => {
            if let (Value::Str(old), Value::Str(new), None) = (&before.value, &after.value, &before.tried)
                && (old.trim_end().contains('\n') || new.trim_end().contains('\n'))
                && old != new
            {
                lines.push(Line::new(Mark::Changed, format!("{name}:")));
                texts(old, new, lines);
            } else if property.elements.is_empty() || before.tried.is_some() {
                lines.push(Line::new(
                    Mark::Changed,
                    format!("{name}: {}", both(&written::side(name, before), &written::side(name, after))),
                ));
            } else {
                lines.extend(property.elements.iter().map(|element| one(property, element)));
            }
        }
        (Some(side), None) => lines.push(Line::new(Mark::Removed, format!("{name}: {}", written::side(name, side)))),
        (None, Some(side)) => lines.push(Line::new(Mark::Added, format!("{name}: {}", written::side(name, side)))),
        (None, None) => lines.push(Line::new(Mark::Changed, format!("{name}: changes"))),
    }
}

/// A value before and after. If they look the same, a hidden part differs, or one that is null.
fn both(before: &str, after: &str) -> String {
    if before == after { format!("{before}, changes") } else { format!("{before} → {after}") }
}

/// The line about a part of a property.
fn one(property: &Property, element: &Element) -> Line {
    let side = |part: &Option<_>, side: &Option<_>| Some(written::part(side.as_ref()?, part.as_ref()?));
    let before = side(&element.before, &property.before);
    let after = side(&element.after, &property.after);
    match (before, after) {
        (Some(before), Some(after)) => {
            Line::new(Mark::Changed, format!("{}: {}", place(property, &element.at), both(&before, &after)))
        }
        // What names it is a part of the value.
        (Some(value), None) => Line::new(Mark::Removed, format!("{}: {value}", list(property, &element.at))),
        (None, Some(value)) => Line::new(Mark::Added, format!("{}: {value}", list(property, &element.at))),
        (None, None) => Line::new(Mark::Changed, format!("{}: the order changes", place(property, &element.at))),
    }
}

/// The place of an element: `rules[protocol: tcp].remote_ip_prefix`.
fn place(property: &Property, steps: &[Step]) -> String {
    let mut place = property.name.clone();
    for step in steps {
        if let Step::Key(_) = step {
            place.push('.');
        }
        place.push_str(&step.to_string());
    }
    place
}

/// The list that an element belongs to, or the place of a key.
fn list(property: &Property, steps: &[Step]) -> String {
    match steps.split_last() {
        Some((Step::Index(_) | Step::Named(_), steps)) => place(property, steps),
        _ => place(property, steps),
    }
}

/// The lines that differ in two texts.
fn texts(old: &str, new: &str, lines: &mut Vec<Line>) {
    let count = |text: &str| text.lines().count();
    if count(old).max(count(new)) > COMPARED {
        lines.push(Line::inner(Mark::Changed, format!("{} → {} lines, too many to compare", count(old), count(new))));
        return;
    }
    let difference = TextDiff::from_lines(old, new);
    let mut shown = 0;
    for group in difference.grouped_ops(AROUND) {
        let start = group.first().map_or(0, |op| op.old_range().start);
        skipped(start - shown, lines);
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Equal => Mark::Plain,
                ChangeTag::Delete => Mark::Removed,
                ChangeTag::Insert => Mark::Added,
            };
            let ending = if change.missing_newline() { " (no line break at the end)" } else { "" };
            lines.push(Line::inner(mark, format!("{}{ending}", change.value().trim_end_matches(['\n', '\r']))));
        }
        shown = group.last().map_or(start, |op| op.old_range().end);
    }
    skipped(difference.old_slices().len() - shown, lines);
}

fn skipped(count: usize, lines: &mut Vec<Line>) {
    if count > 0 {
        let what = if count == 1 { "line" } else { "lines" };
        lines.push(Line::inner(Mark::Plain, format!("({count} {what} unchanged)")));
    }
}

/// The line about an output: its values.
pub(super) fn output(output: &kiln_plan_document::Output) -> (Kind, String) {
    match (&output.before, &output.after) {
        (None, Some(value)) => (Kind::Added, written::value(value)),
        (Some(value), None) => (Kind::Deleted, written::value(value)),
        (Some(before), Some(after)) => (Kind::Updated, both(&written::value(before), &written::value(after))),
        (None, None) => (Kind::Updated, text::json(&Value::Null)),
    }
}
