//! Renders the preview of a create or an update as a plan.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use kiln_value::{Map, Value, text};

/// The change of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Added,
    Updated,
    Replaced,
    Deleted,
    Refused,
    /// The change depends on values that are known only after other resources are changed.
    MayUpdate,
    MayReplace,
}

impl Kind {
    fn sign(self) -> &'static str {
        match self {
            Self::Added => "  +",
            Self::Updated => "  ~",
            Self::Replaced => "-/+",
            Self::Deleted => "  -",
            Self::Refused => "  !",
            Self::MayUpdate => " ?~",
            Self::MayReplace => "?-+",
        }
    }

    fn style(self) -> Style {
        let colour = match self {
            Self::Added => AnsiColor::Green,
            Self::Updated | Self::MayUpdate => AnsiColor::Yellow,
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace => AnsiColor::Red,
        };
        Style::new().fg_color(Some(colour.into()))
    }
}

/// The change of a resource in the plan.
#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    name: String,
    resource_type: String,
    stack: String,
    /// Details: changed properties, reasons, lost data.
    lines: Vec<String>,
}

/// A plan: the changes and the number of unchanged resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    unchanged: usize,
}

impl Plan {
    /// The plan of an update, from the answer of its preview. The list determines the maximum change.
    pub(super) fn of_update(changes: &Map) -> Self {
        let mut plan = Self::default();
        let lists = [
            ("added", Kind::Added),
            ("updated", Kind::Updated),
            ("replaced", Kind::Replaced),
            ("deleted", Kind::Deleted),
        ];
        for (list, kind) in lists {
            for entry in changes.get(list).and_then(Value::as_list).unwrap_or_default() {
                plan.steps.push(step(entry, kind));
            }
        }
        let unchanged = changes.get("unchanged").and_then(Value::as_list).unwrap_or_default();
        plan.unchanged = unchanged.len();
        let left_alone: Vec<Step> = unchanged.iter().map(|entry| step(entry, Kind::Updated)).collect();
        plan.drop_empty(&left_alone);
        plan
    }

    /// Removes updates of nested stacks in which nothing changes.
    fn drop_empty(&mut self, unchanged: &[Step]) {
        // From the innermost to the outermost stack.
        while let Some(at) = self.steps.iter().position(|step| {
            step.kind == Kind::Updated
                && step.lines.is_empty()
                && unchanged.iter().any(|inner| is_in(inner, step))
                && !self.steps.iter().any(|inner| is_in(inner, step))
        }) {
            self.steps.remove(at);
            self.unchanged += 1;
        }
    }

    /// The plan of a create, from the resources of its preview.
    pub(super) fn of_create(resources: &Value) -> Self {
        let mut plan = Self::default();
        add(&mut plan.steps, resources);
        plan
    }

    /// Number of resources that are or may be replaced or deleted.
    pub(super) fn destroyed(&self) -> usize {
        self.count(Kind::Replaced) + self.count(Kind::MayReplace) + self.count(Kind::Deleted)
    }

    fn count(&self, kind: Kind) -> usize {
        self.steps.iter().filter(|step| step.kind == kind).count()
    }

    /// Summary line with the number of changes.
    pub(super) fn summary(&self) -> String {
        let counts = [
            (self.count(Kind::Added), "to create"),
            (self.count(Kind::Updated), "to update"),
            (self.count(Kind::Replaced), "to replace"),
            (self.count(Kind::Deleted), "to delete"),
            (self.count(Kind::MayUpdate), "may be updated"),
            (self.count(Kind::MayReplace), "may be replaced"),
            (self.count(Kind::Refused), "refused"),
            (self.unchanged, "unchanged"),
        ];
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") }
    }

    /// Renders the plan.
    pub(super) fn drawn(&self, stack: &str, colour: bool) -> String {
        let mut out = String::new();
        let roots: Vec<&Step> = self.steps.iter().filter(|step| self.parent(step).is_none()).collect();
        for step in sorted(roots) {
            self.draw(step, 0, colour, &mut out);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        _ = writeln!(out, "{stack}: {}", self.summary());
        out
    }

    fn draw(&self, step: &Step, depth: usize, colour: bool, out: &mut String) {
        // Deeper than any service nests; stops at cycles in the answer.
        const DEEPEST: usize = 32;
        let indent = "    ".repeat(depth);
        let head = format!("{} {}", step.kind.sign(), step.name);
        let head = if colour { format!("{0}{head}{0:#}", step.kind.style()) } else { head };
        _ = writeln!(out, "{indent}{head}  ({})", step.resource_type);
        for line in &step.lines {
            _ = writeln!(out, "{indent}        {line}");
        }
        if depth < DEEPEST {
            let inside = self.steps.iter().filter(|other| self.parent(other).is_some_and(|of| std::ptr::eq(of, step)));
            for inner in sorted(inside.collect()) {
                self.draw(inner, depth + 1, colour, out);
            }
        }
    }

    /// The step of the resource that owns the nested stack of a step.
    fn parent(&self, step: &Step) -> Option<&Step> {
        let around = self.steps.iter().filter(|other| is_in(step, other));
        around.max_by_key(|other| other.stack.len() + other.name.len())
    }
}

/// Whether a step is in the nested stack of another step's resource. The name of a nested stack starts with the name of
/// the parent stack and the resource.
fn is_in(step: &Step, around: &Step) -> bool {
    let prefix = format!("{}-{}", around.stack, around.name);
    step.stack.strip_prefix(&prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Sorted by name; numeric names are sorted by number.
fn sorted(mut steps: Vec<&Step>) -> Vec<&Step> {
    steps.sort_by(|a, b| match (a.name.parse::<u64>(), b.name.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.name.cmp(&b.name),
    });
    steps
}

fn step(entry: &Value, kind: Kind) -> Step {
    let change = entry.get("change");
    let kind = match change.and_then(|change| change.str_at("kind")) {
        Some("refused") => Kind::Refused,
        Some("undecided") if kind == Kind::Replaced => Kind::MayReplace,
        Some("undecided") => Kind::MayUpdate,
        _ => kind,
    };
    let text_at = |key| entry.str_at(key).unwrap_or_default().to_owned();
    let resource_type = text_at("resource_type");
    let awaited = awaited(change);
    let most = change.and_then(|change| change.get("at_most")).or(change);
    let mut lines = differences(most, &awaited);
    if let (Kind::MayUpdate | Kind::MayReplace, true) = (kind, lines.is_empty()) {
        lines.extend(awaited.iter().map(|(_, place)| format!("known after {place}")));
    }
    let certain = !matches!(kind, Kind::MayUpdate | Kind::MayReplace);
    let reasons = change
        .filter(|_| certain)
        .and_then(|change| change.get("reasons"))
        .and_then(Value::as_list)
        .unwrap_or_default();
    lines.extend(reasons.iter().map(|reason| format!("because: {}", text::str(reason))));
    lines.extend(lost(&resource_type, kind, change).map(|what| format!("lost: {what}")));
    Step { kind, name: text_at("resource_name"), resource_type, stack: text_at("stack_name"), lines }
}

/// The properties whose values are not known yet, with the resources that determine them.
fn awaited(change: Option<&Value>) -> Vec<(&str, &str)> {
    let list = change.and_then(|change| change.get("awaited")).and_then(Value::as_list).unwrap_or_default();
    list.iter().filter_map(|one| Some((one.str_at("property")?, one.str_at("known_after")?))).collect()
}

/// The changes of properties: old and new values if the service returns them, else the names.
fn differences(change: Option<&Value>, awaited: &[(&str, &str)]) -> Vec<String> {
    let part = |key| change.and_then(|change| change.get(key)).and_then(Value::as_map);
    let (Some(before), Some(after)) = (part("before"), part("after")) else {
        let names = change.and_then(|change| change.get("properties")).and_then(Value::as_list).unwrap_or_default();
        return names.iter().map(|name| format!("{}: changes", text::str(name))).collect();
    };
    let mut names: Vec<&String> =
        before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect();
    names.sort();
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "(none)".to_owned(),
        Some(value) => short(value),
    };
    let new = |name: &str| match awaited.iter().find(|(property, _)| *property == name) {
        Some((_, place)) => format!("(known after {place})"),
        None => shown(after.get(name)),
    };
    let line = |name: &&String| format!("{name}: {} → {}", shown(before.get(*name)), new(name));
    names.iter().map(line).collect()
}

/// A value in one line.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = text::json(value);
    if text.chars().count() <= LONGEST {
        return text;
    }
    let kept: String = text.chars().take(LONGEST).collect();
    format!("{kept}…")
}

/// Data that is lost.
fn lost(resource_type: &str, kind: Kind, change: Option<&Value>) -> Option<&'static str> {
    let rebuilt = || {
        let after = change.and_then(|change| change.get("after")).and_then(Value::as_map);
        let names = change.and_then(|change| change.get("properties")).and_then(Value::as_list).unwrap_or_default();
        after.is_some_and(|after| after.contains_key("image"))
            || names.iter().any(|name| name.as_str() == Some("image"))
    };
    match (resource_type, kind) {
        ("OS::Nova::Server", Kind::Replaced | Kind::Deleted) => Some("the server's own disk"),
        ("OS::Nova::Server", Kind::Updated) if rebuilt() => Some("the server's own disk, which is rebuilt"),
        ("OS::Cinder::Volume", Kind::Replaced | Kind::Deleted) => Some("the volume's data"),
        ("OS::Trove::Instance" | "OS::Trove::Cluster", Kind::Replaced | Kind::Deleted) => Some("the database's data"),
        ("OS::Swift::Container", Kind::Replaced | Kind::Deleted) => Some("the container's objects"),
        ("OS::Nova::KeyPair" | "OS::Barbican::Secret", Kind::Replaced | Kind::Deleted) => Some("the key or secret"),
        _ => None,
    }
}

/// Adds the resources of a stack to create; a list in place of a resource contains those of its nested stack.
fn add(steps: &mut Vec<Step>, resources: &Value) {
    for entry in resources.as_list().unwrap_or_default() {
        if entry.as_list().is_some() {
            // The preview has no entry for the resource that owns the nested stack.
            if let Some(step) = facade(entry) {
                steps.push(step);
            }
            add(steps, entry);
            continue;
        }
        let text_at = |key| entry.str_at(key).unwrap_or_default().to_owned();
        let properties = entry.get("properties").and_then(Value::as_map);
        let given = properties.into_iter().flatten().filter(|(_, value)| !value.is_null());
        steps.push(Step {
            kind: Kind::Added,
            name: text_at("resource_name"),
            resource_type: text_at("resource_type"),
            stack: text_at("stack_name"),
            lines: given.map(|(name, value)| format!("{name}: {}", short(value))).collect(),
        });
    }
}

/// The resource that owns the nested stack, derived from the resources in it.
fn facade(nested: &Value) -> Option<Step> {
    let plain = nested.as_list()?.iter().find(|entry| entry.as_map().is_some())?;
    let name = plain.str_at("parent_resource")?;
    let stack = plain.str_at("stack_name")?.strip_suffix(&format!("-{name}"))?;
    let (name, stack) = (name.to_owned(), stack.to_owned());
    Some(Step { kind: Kind::Added, name, resource_type: "nested stack".to_owned(), stack, lines: Vec::new() })
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn an_update_is_shown_with_what_changes_why_and_what_is_lost() {
        let entry = |name: &str, kind: &str, stack: &str, change: Value| value!({"resource_name": name, "resource_type": kind, "stack_name": stack, "change": change});
        let changes = value!({
            "unchanged": [{}, {}],
            "added": [(entry("10", "OS::Nova::Server", "web-group-xyz", value!({"kind": "added"})))],
            "updated": [
                (entry("group", "OS::Heat::ResourceGroup", "web", value!({
                    "kind": "updated", "properties": ["count"], "before": {"count": 1}, "after": {"count": 2},
                }))),
                (entry("no", "OS::Neutron::Net", "web", value!({"kind": "refused", "reasons": ["not so"]}))),
            ],
            "replaced": [(entry("server", "OS::Nova::Server", "web", value!({
                "kind": "replaced", "reasons": ["networks changed"], "before": {"networks": []}, "after": {},
            })))],
            "deleted": [(entry("9", "OS::Neutron::Port", "web-group-xyz", value!({"kind": "deleted"})))],
        });
        let plan = Plan::of_update(changes.as_map().unwrap());
        let expected = "  ~ group  (OS::Heat::ResourceGroup)
        count: 1 → 2
      - 9  (OS::Neutron::Port)
      + 10  (OS::Nova::Server)
  ! no  (OS::Neutron::Net)
        because: not so
-/+ server  (OS::Nova::Server)
        networks: [] → (none)
        because: networks changed
        lost: the server's own disk

web: 1 to create, 1 to update, 1 to replace, 1 to delete, 1 refused, 2 unchanged
";
        assert_eq!(plan.drawn("web", false), expected);
        assert_eq!(plan.destroyed(), 2);
    }

    #[test]
    fn what_is_not_known_yet_is_said() {
        let changes = value!({"replaced": [{
            "resource_name": "w", "resource_type": "OS::Heat::RandomString", "stack_name": "web",
            "change": {
                "kind": "undecided",
                "at_least": {"kind": "unchanged"},
                "at_most": {"kind": "replaced", "reasons": ["…"], "before": {"salt": "a"}, "after": {"salt": null}},
                "awaited": [{"property": "salt", "known_after": "v.value"}],
            },
        }]});
        let plan = Plan::of_update(changes.as_map().unwrap());
        let expected = "?-+ w  (OS::Heat::RandomString)
        salt: \"a\" → (known after v.value)

web: 1 may be replaced
";
        assert_eq!(plan.drawn("web", false), expected);
        assert_eq!(plan.destroyed(), 1);
    }

    #[test]
    fn a_create_shows_nested_resources_under_their_parent() {
        let resources = value!([
            {"resource_name": "net", "resource_type": "OS::Neutron::Net", "stack_name": "web", "properties": {"name": "n", "mtu": null}},
            [{"resource_name": "0", "resource_type": "OS::Heat::Value", "stack_name": "web-group", "parent_resource": "group"}],
        ]);
        let expected = "  + group  (nested stack)
      + 0  (OS::Heat::Value)
  + net  (OS::Neutron::Net)
        name: \"n\"

web: 3 to create
";
        assert_eq!(Plan::of_create(&resources).drawn("web", false), expected);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Plan::of_update(&Map::new()).drawn("web", false), "web: no changes\n");
    }
}
