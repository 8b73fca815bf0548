//! The plan of a create or an update: what changes, why, and what is lost.

mod property;
mod step;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use kiln_client::Changes;
use kiln_value::Value;

use crate::natural_order::natural_order;
use crate::output::visible;
use step::Step;

/// The change of a resource or an output.
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
    MayDelete,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Added,
        Self::Updated,
        Self::Replaced,
        Self::Deleted,
        Self::MayUpdate,
        Self::MayReplace,
        Self::MayDelete,
        Self::Refused,
    ];

    fn sign(self) -> &'static str {
        match self {
            Self::Added => "  +",
            Self::Updated => "  ~",
            Self::Replaced => "-/+",
            Self::Deleted => "  -",
            Self::Refused => "  !",
            Self::MayUpdate => " ?~",
            Self::MayReplace => "?-+",
            Self::MayDelete => " ?-",
        }
    }

    /// The words of the legend and of the summary.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Added => ("create", "to create"),
            Self::Updated => ("update in place", "to update"),
            Self::Replaced => ("create a new one, then delete the old one", "to replace"),
            Self::Deleted => ("delete", "to delete"),
            Self::Refused => ("fail", "refused"),
            Self::MayUpdate => ("update in place or not, known later", "may be updated"),
            Self::MayReplace => ("replace or not, known later", "may be replaced"),
            Self::MayDelete => ("delete or not, known later", "may be deleted"),
        }
    }

    fn style(self) -> Style {
        let colour = match self {
            Self::Added => AnsiColor::Green,
            Self::Updated | Self::MayUpdate => AnsiColor::Yellow,
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace | Self::MayDelete => AnsiColor::Red,
        };
        Style::new().fg_color(Some(colour.into()))
    }
}

/// How a plan is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Canvas {
    /// Whether to use colors.
    pub colour: bool,
    /// The columns of the terminal, at which lines are cut; `None`: lines are complete.
    pub width: Option<usize>,
}

impl Canvas {
    /// For standard output.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout(), &console::Term::stdout())
    }

    /// For standard error.
    pub fn of_stderr() -> Self {
        Self::of(&std::io::stderr(), &console::Term::stderr())
    }

    fn of(stream: &impl anstream::stream::RawStream, terminal: &console::Term) -> Self {
        Self {
            colour: anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
            width: terminal.size_checked().map(|(_, width)| width.into()),
        }
    }
}

/// A plan: the changes and the number of unchanged resources.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    steps: Vec<Step>,
    /// Outputs with their values.
    outputs: Vec<(Kind, String, String)>,
    unchanged: usize,
}

impl Plan {
    /// The plan of an answer of the service. The list determines the maximum change.
    pub fn of(changes: &Changes) -> Self {
        let mut plan = Self::default();
        let lists = [
            ("unchanged", None),
            ("added", Some(Kind::Added)),
            ("updated", Some(Kind::Updated)),
            ("replaced", Some(Kind::Replaced)),
            ("deleted", Some(Kind::Deleted)),
        ];
        for (list, kind) in lists {
            for entry in changes.resources.get(list).and_then(Value::as_list).unwrap_or_default() {
                // Heat lists every nested stack as updated.
                let is_unchanged = entry.get("change").and_then(|change| change.str_at("kind")) == Some("unchanged");
                match kind.filter(|_| !is_unchanged) {
                    Some(kind) => plan.steps.push(Step::of(entry, kind)),
                    None => plan.unchanged += 1,
                }
            }
        }
        plan.steps.sort_by(|a, b| natural_order(a.name(), b.name()));
        plan.outputs = changes.outputs.iter().map(|(name, change)| output(name, change)).collect();
        plan.outputs.sort_by(|(_, a, _), (_, b, _)| natural_order(a, b));
        plan
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.outputs.is_empty()
    }

    /// Whether the operation would fail.
    pub fn is_refused(&self) -> bool {
        self.count(Kind::Refused) > 0
    }

    /// Number of resources that are or may be replaced or deleted, or that lose data.
    pub fn destroyed(&self) -> usize {
        self.steps.iter().filter(|step| step.destroys).count()
    }

    fn count(&self, kind: Kind) -> usize {
        self.steps.iter().filter(|step| step.kind == kind).count()
    }

    /// Summary line with the number of changes.
    pub fn summary(&self) -> String {
        let counts = Kind::ALL.map(|kind| (self.count(kind), kind.words().1));
        let counts = counts.into_iter().chain([(self.unchanged, "unchanged")]);
        let parts: Vec<String> =
            counts.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") }
    }

    /// Renders the plan: a legend, the resources below those that own their stacks, the outputs, and a summary.
    pub fn drawn(&self, stack: &str, canvas: Canvas) -> String {
        let mut out = String::new();
        let used = Kind::ALL.into_iter().filter(|kind| self.count(*kind) > 0);
        let legend: Vec<String> = used.map(|kind| format!("{} {}", kind.sign().trim_start(), kind.words().0)).collect();
        if !legend.is_empty() {
            line(&mut out, canvas, "", &format!("Legend: {}", legend.join(", ")));
            out.push('\n');
        }
        let paths: HashSet<&str> = self.steps.iter().map(Step::path).collect();
        let mut inside: HashMap<&str, Vec<&Step>> = HashMap::new();
        for step in &self.steps {
            let around = step.path().rsplit_once('/').map(|(around, _)| around).filter(|around| paths.contains(around));
            inside.entry(around.unwrap_or_default()).or_default().push(step);
        }
        draw(&mut inside, "", "", canvas, &mut out);
        if !self.outputs.is_empty() {
            out.push_str(if self.steps.is_empty() { "Outputs:\n" } else { "\nOutputs:\n" });
            for (kind, name, values) in &self.outputs {
                head(&mut out, canvas, "", *kind, name, &format!(": {values}"));
            }
        }
        if !self.is_empty() {
            out.push('\n');
        }
        _ = writeln!(out, "{stack}: {}", self.summary());
        out
    }
}

/// Draws the resources of a stack, which are taken from the map, and those below them.
fn draw<'a>(inside: &mut HashMap<&'a str, Vec<&'a Step>>, path: &str, indent: &str, canvas: Canvas, out: &mut String) {
    for step in inside.remove(path).unwrap_or_default() {
        head(out, canvas, indent, step.kind, step.name(), &format!("  ({})", visible(&step.resource_type)));
        for text in &step.lines {
            line(out, canvas, indent, &format!("        {text}"));
        }
        draw(inside, step.path(), &format!("{indent}    "), canvas, out);
    }
}

/// A line with the sign of a change.
fn head(out: &mut String, canvas: Canvas, indent: &str, kind: Kind, name: &str, rest: &str) {
    let style = kind.style();
    let head = format!("{} {}", kind.sign(), visible(name));
    let head = if canvas.colour { format!("{style}{head}{style:#}") } else { head };
    line(out, canvas, indent, &format!("{head}{rest}"));
}

fn line(out: &mut String, canvas: Canvas, indent: &str, text: &str) {
    let whole = format!("{indent}{text}");
    let shown = match canvas.width {
        Some(width) => console::truncate_str(&whole, width, "…"),
        None => whole.as_str().into(),
    };
    _ = writeln!(out, "{shown}");
}

fn output(name: &str, change: &Value) -> (Kind, String, String) {
    let (before, after) = (change.get("before"), change.get("after"));
    let kind = match (before, after) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Deleted,
        _ => Kind::Updated,
    };
    let shown = |value: Option<&Value>| value.map(property::text);
    let values: Vec<String> = shown(before).into_iter().chain(shown(after)).collect();
    (kind, name.to_owned(), values.join(" → "))
}

#[cfg(test)]
mod tests;
