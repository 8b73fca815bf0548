//! Renders a tree as lines.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::tree::{Count, Node, Phase, Tree};
use crate::output::visible;

const TICKS: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Columns for the time and the spaces between the columns.
const ROOM: usize = 13;
/// Minimum width of a type; narrower types are omitted.
const LEAST_KIND: usize = 8;
/// Minimum width of a name with its frame.
const LEAST_HEAD: usize = 10;
/// Minimum width of a reason; narrower ones are omitted.
const LEAST_REASON: usize = 8;

/// Drawing options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Canvas {
    /// Whether to use colors.
    pub(super) colour: bool,
    /// Columns.
    pub(super) width: usize,
    /// Lines.
    pub(super) height: usize,
}

/// A line before the columns are aligned.
struct Line {
    /// Frame, symbol and name.
    head: String,
    phase: Phase,
    kind: String,
    word: String,
    time: String,
    reason: String,
    /// Whether the resource has resources below it.
    branch: bool,
}

/// The tree, limited to the height: completed resources are omitted first, then waiting ones.
pub(super) fn tree(tree: &Tree, now: Duration, canvas: Canvas) -> String {
    let mut lines = Vec::new();
    collect(tree, tree.root(), "", now, &mut lines);
    let count = tree.count();
    let (dropped, lines) = fitting(lines, canvas.height.saturating_sub(2));
    let status = if tree.status.is_empty() { "…" } else { &tree.status };
    let mut out = format!(
        "{} {} {}  {}",
        styled(&tree.name, Style::new().bold(), canvas.colour),
        styled(status, status_style(status), canvas.colour),
        seconds(now),
        summary(tree, count),
    );
    let widest = |column: fn(&Line) -> &str| lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0);
    let word = widest(|line| &line.word);
    // A name keeps some columns, however narrow the terminal is.
    let head = widest(|line| &line.head).min(canvas.width.saturating_sub(word + ROOM).max(LEAST_HEAD));
    // Types are shortened first, names last.
    let left = canvas.width.saturating_sub(head + word + ROOM);
    let kind = widest(|line| &line.kind).min(if left < LEAST_KIND { 0 } else { left });
    for line in &lines {
        out.push('\n');
        out.push_str(&written(line, (head, kind, word), canvas));
    }
    if dropped > 0 {
        _ = write!(out, "\n   … and {dropped} more");
    }
    out
}

/// The numbers of resources by their state. An update does not know in advance how many it changes.
pub(super) fn summary(tree: &Tree, count: Count) -> String {
    let mut parts = if tree.is_partly() {
        vec![format!("{} done", count.done)]
    } else {
        vec![format!("{} of {}", count.done, count.all)]
    };
    for (number, word) in [(count.running, "running"), (count.failed, "failed"), (count.untouched, "unchanged")] {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    if tree.is_partly() {
        parts.push(format!("{} in all", count.all));
    }
    parts.join(", ")
}

fn collect(tree: &Tree, stack: &str, frame: &str, now: Duration, lines: &mut Vec<Line>) {
    let nodes: Vec<&Node> = tree.of(stack).collect();
    let last = nodes.len().saturating_sub(1);
    for (i, node) in nodes.into_iter().enumerate() {
        let (branch, below) = if i == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.push(Line {
            head: format!("{frame}{branch}{} {}", sign(node.phase, now), visible(&node.name)),
            phase: node.phase,
            kind: node.kind.clone(),
            word: if node.is_untouched() && node.waits.is_empty() { "unchanged" } else { word(node) }.to_owned(),
            time: node.spent(now).map(seconds).unwrap_or_default(),
            reason: match node.phase {
                Phase::Failed => visible(&node.reason).into_owned(),
                _ if !node.waits.is_empty() => visible(&node.waits).into_owned(),
                Phase::Waiting if !node.is_untouched() => awaited(&tree.awaited(stack, node)),
                Phase::Waiting | Phase::Running | Phase::Done => String::new(),
            },
            branch: tree.of(node.inner()).next().is_some(),
        });
        collect(tree, node.inner(), &format!("{frame}{below}"), now, lines);
    }
}

/// `for net, subnet`: what a resource waits for.
fn awaited(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("for {}", visible(&names.join(", "))) }
}

/// At most `height` lines, and the number of omitted lines.
fn fitting(mut lines: Vec<Line>, height: usize) -> (usize, Vec<Line>) {
    let all = lines.len();
    for phase in [Phase::Done, Phase::Waiting] {
        let mut excess = lines.len().saturating_sub(height);
        lines.retain(|line| {
            let drop = excess > 0 && line.phase == phase && !line.branch;
            excess -= usize::from(drop);
            !drop
        });
    }
    lines.truncate(height.max(1));
    (all - lines.len(), lines)
}

fn written(line: &Line, (head, kind, word): (usize, usize, usize), canvas: Canvas) -> String {
    let dim = Style::new().dimmed();
    let style = phase_style(line.phase);
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let plain = head + kind + word + 16;
    // A very narrow terminal has no room for reasons; they are in the message at the end.
    let room = canvas.width.saturating_sub(plain);
    let shown = cut(&line.kind, kind);
    let name = cut_end(&line.head, head);
    let types = if kind == 0 {
        String::new()
    } else {
        format!("{}{}  ", styled(&shown, dim, canvas.colour), pad(&shown, kind))
    };
    let mut out = format!(
        "{}{}  {types}{}{}  {:>6}",
        styled(&name, if line.phase == Phase::Failed { style } else { Style::new() }, canvas.colour),
        pad(&name, head),
        styled(&line.word, style, canvas.colour),
        pad(&line.word, word),
        line.time,
    );
    if !line.reason.is_empty() && room >= LEAST_REASON {
        let short = cut_end(line.reason.lines().next().unwrap_or_default(), room);
        out.push_str("  ");
        out.push_str(&styled(&short, style, canvas.colour));
    }
    out.trim_end().to_owned()
}

/// Shortens a text to a width.
fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Shortens a text to a width; types keep their end.
fn cut(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{kept}")
}

fn sign(phase: Phase, now: Duration) -> char {
    match phase {
        Phase::Waiting => '·',
        Phase::Running => {
            let tick = usize::try_from(now.as_millis() / 100).unwrap_or_default() % TICKS.len();
            TICKS.get(tick).copied().unwrap_or('•')
        }
        Phase::Done => '✔',
        Phase::Failed => '✘',
    }
}

/// The state in one word: `creating`, `created`.
pub(super) fn word(node: &Node) -> &'static str {
    let failed = node.phase == Phase::Failed;
    match (node.action.as_str(), node.phase) {
        (_, Phase::Waiting) => "waiting",
        _ if failed => "failed",
        ("REPLACE", Phase::Running) => "replacing",
        ("REPLACE", _) => "replaced",
        ("CREATE", Phase::Running) => "creating",
        ("CREATE", _) => "created",
        ("UPDATE", Phase::Running) => "updating",
        ("UPDATE", _) => "updated",
        ("DELETE", Phase::Running) => "deleting",
        ("DELETE", _) => "deleted",
        ("ROLLBACK", Phase::Running) => "rolling back",
        ("ROLLBACK", _) => "rolled back",
        ("SUSPEND", Phase::Running) => "suspending",
        ("SUSPEND", _) => "suspended",
        ("RESUME", Phase::Running) => "resuming",
        ("RESUME", _) => "resumed",
        ("CHECK", Phase::Running) => "checking",
        ("CHECK", _) => "checked",
        ("ADOPT", Phase::Running) => "adopting",
        ("ADOPT", _) => "adopted",
        (_, Phase::Running) => "running",
        _ => "done",
    }
}

/// `0.4s`, `12.0s`, `3m05s`.
pub(super) fn seconds(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    if tenths < 600 {
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    let whole = time.as_secs();
    format!("{}m{:02}s", whole / 60, whole % 60)
}

fn phase_style(phase: Phase) -> Style {
    let colour = match phase {
        Phase::Waiting => return Style::new().dimmed(),
        Phase::Running => AnsiColor::Yellow,
        Phase::Done => AnsiColor::Green,
        Phase::Failed => AnsiColor::Red,
    };
    Style::new().fg_color(Some(colour.into()))
}

fn status_style(status: &str) -> Style {
    phase_style(match status {
        s if s.ends_with("_COMPLETE") => Phase::Done,
        s if s.ends_with("_FAILED") => Phase::Failed,
        _ => Phase::Running,
    })
}

pub(super) fn styled(text: &str, style: Style, colour: bool) -> String {
    if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::tree::News;
    use super::*;

    fn example() -> Tree {
        let mut tree = Tree::new("web", "s");
        let mut add = |stack: &str, name: &str, kind: &str, nested: &str, states: &[(&str, u64)]| {
            for (status, at) in states {
                let news = News {
                    stack: stack.into(),
                    name: name.into(),
                    kind: kind.into(),
                    status: (*status).into(),
                    reason: if status.ends_with("FAILED") { "NoFlavor: m9".into() } else { String::new() },
                    nested: nested.into(),
                    physical: String::new(),
                    required_by: if name == "net" || name == "group" { vec!["ip".into()] } else { vec![] },
                    at: Duration::from_millis(*at),
                };
                tree.learn(&news);
                tree.apply(&news);
            }
        };
        add("s", "net", "OS::Neutron::Net", "", &[("CREATE_IN_PROGRESS", 0), ("CREATE_COMPLETE", 400)]);
        add("s", "group", "OS::Heat::ResourceGroup", "n", &[("CREATE_IN_PROGRESS", 500)]);
        add("n", "0", "OS::Nova::Server", "", &[("CREATE_IN_PROGRESS", 600), ("CREATE_FAILED", 2100)]);
        add("s", "ip", "OS::Neutron::FloatingIP", "", &[("INIT_COMPLETE", 0)]);
        tree.status = "CREATE_IN_PROGRESS".into();
        tree
    }

    #[test]
    fn a_tree_with_nested_stacks() {
        let canvas = Canvas { colour: false, width: 120, height: 40 };
        let drawn = tree(&example(), Duration::from_millis(2500), canvas);
        let expected = "\
web CREATE_IN_PROGRESS 2.5s  1 of 4, 1 running, 1 failed
├─ ⠴ group  OS::Heat::ResourceGroup  creating    2.0s
│  └─ ✘ 0   OS::Nova::Server         failed      1.5s  NoFlavor: m9
├─ · ip     OS::Neutron::FloatingIP  waiting           for group
└─ ✔ net    OS::Neutron::Net         created     0.4s";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn sixty_columns_suffice() {
        let canvas = Canvas { colour: false, width: 40, height: 40 };
        let drawn = tree(&example(), Duration::from_millis(2500), canvas);
        assert!(drawn.lines().skip(1).all(|line| line.chars().count() <= 40), "{drawn}");
        assert!(drawn.contains("…rceGroup  creating") && drawn.contains("group"), "{drawn}");
        let canvas = Canvas { width: 30, ..canvas };
        let drawn = tree(&example(), Duration::from_millis(2500), canvas);
        assert!(drawn.contains("├─ ⠴ group  creating    2.0s"), "{drawn}");
    }

    #[test]
    fn what_is_done_makes_room_first() {
        let canvas = Canvas { colour: false, width: 120, height: 4 };
        let drawn = tree(&example(), Duration::from_millis(2500), canvas);
        let heads: Vec<&str> =
            drawn.lines().skip(1).map(|line| line.trim_start_matches(['├', '│', '└', '─', ' '])).collect();
        assert!(heads.iter().all(|line| !line.contains("net ")), "{drawn}");
        assert!(drawn.contains("failed") && drawn.ends_with("and 2 more"), "{drawn}");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(Duration::from_millis(4_449)), "4.4s");
        assert_eq!(seconds(Duration::from_secs(185)), "3m05s");
    }
}
