//! The change of a resource in a plan.

use crate::output::visible;
use kiln_value::{Value, text};

use super::{Kind, property};

/// The change of a resource.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    name: String,
    path: String,
    pub(super) resource_type: String,
    /// Details: properties, reasons, lost data.
    pub(super) lines: Vec<String>,
    /// Whether the object or its data is, or may be, destroyed.
    pub(super) destroys: bool,
}

impl Step {
    /// The step of an entry of the list of this kind.
    pub(super) fn of(entry: &Value, kind: Kind) -> Self {
        let none = Value::Null;
        let change = entry.get("change").unwrap_or(&none);
        let kind = match change.str_at("kind") {
            Some("refused") => Kind::Refused,
            Some("undecided") if kind == Kind::Replaced => Kind::MayReplace,
            Some("undecided") if kind == Kind::Deleted => Kind::MayDelete,
            Some("undecided") => Kind::MayUpdate,
            _ => kind,
        };
        let text_at = |value: &Value, key| value.str_at(key).unwrap_or_default().to_owned();
        let name = text_at(entry, "resource_name");
        let most = change.get("at_most").unwrap_or(change);
        let is_certain = !matches!(kind, Kind::MayUpdate | Kind::MayReplace | Kind::MayDelete);
        let mut lines = property::lines(most);
        if kind == Kind::MayDelete || (lines.is_empty() && !is_certain) {
            let awaited = change.get("awaited").and_then(Value::as_list).unwrap_or_default();
            lines.extend(awaited.iter().filter_map(|one| Some(format!("known after {}", one.str_at("known_after")?))));
        }
        let reasons = most.get("reasons").and_then(Value::as_list).unwrap_or_default();
        lines.extend(
            reasons.iter().filter(|_| is_certain).map(|reason| format!("because: {}", visible(&text::str(reason)))),
        );
        if change.get("retained").is_some_and(Value::is_truthy) {
            lines.push("kept: the object is not deleted (deletion_policy: Retain)".to_owned());
        }
        let lost = change.str_at("lost");
        lines.extend(lost.map(|what| format!("lost: {what}")));
        let path = change.str_at("path").map_or_else(|| name.clone(), str::to_owned);
        let destroys =
            lost.is_some() || matches!(kind, Kind::Replaced | Kind::MayReplace | Kind::Deleted | Kind::MayDelete);
        Self { kind, name, path, resource_type: text_at(entry, "resource_type"), lines, destroys }
    }

    /// The name of the resource.
    pub(super) fn name(&self) -> &str {
        #[cfg(test)]
        tests::count();
        &self.name
    }

    /// The path of the resource through the nested stacks: `group/0`.
    pub(super) fn path(&self) -> &str {
        #[cfg(test)]
        tests::count();
        &self.path
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// How often a step was read by its name or path.
        static READ: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        READ.set(READ.get() + 1);
    }

    /// How often steps were read meanwhile.
    pub(in super::super) fn reads(work: impl FnOnce()) -> usize {
        let before = READ.get();
        work();
        READ.get() - before
    }
}
