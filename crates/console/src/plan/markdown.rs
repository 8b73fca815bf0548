//! A plan as Markdown, as merge requests show it: the highest risk first, and no longer than a comment may be.

use std::fmt::Write as _;

use kiln_plan_document::{Action, Check, Risk};

use super::details::{Line, Mark, lines, output, snapshot_name};
use super::{Node, Plan};
use crate::output::visible;

/// The bytes of a page. A comment of GitHub has at most 65,536 characters.
const LIMIT: usize = 60_000;
/// The bytes of the note about what is left out.
const NOTE: usize = 400;
/// The snapshots that are named.
const SNAPSHOTS: usize = 50;
/// The end of a line that was cut.
const CUT: &str = "…\n";
/// The bytes of a line below which nothing of it is shown.
const SHORT: usize = 20;

impl Plan<'_> {
    /// Markdown of at most 60 kB. What has no room is left out, and counted: first the properties of the resources with the
    /// longest ones, then whole resources, those of the lowest risk first.
    pub fn markdown(&self) -> String {
        let action = match self.document.action {
            Action::Create => "create",
            Action::Update => "update",
            Action::Delete => "delete",
        };
        let mut out = format!("## Plan: {action} {}\n\n**{}**\n", code(&self.document.stack), self.summary());
        if let Some(risks) = self.risks() {
            _ = writeln!(out, "\nRisk: {risks}");
        }
        if let Some(time) = self.time() {
            _ = writeln!(out, "\nTime: {}", visible(&time));
        }
        if let Some(moves) = self.moves() {
            _ = writeln!(out, "\nHint: {}", code(&moves));
        }
        if self.found().next().is_some() {
            let text = |check: &Check| visible(&format!("{:<8}{}", check.verdict.word(), check.text())).into_owned();
            let lines = self.found().map(|check| Line { mark: Mark::Important, is_inner: false, text: text(check) });
            _ = write!(out, "\n### Pre-flight\n{}", block(&block_lines(lines.collect())));
        }
        if !self.document.snapshots.is_empty() {
            let shown = self.document.snapshots.iter().take(SNAPSHOTS);
            let shown = shown.map(|one| visible(&format!("{}{}", one.id, snapshot_name(one))).into_owned());
            let more = self.document.snapshots.len().saturating_sub(SNAPSHOTS);
            let more = (more > 0).then(|| format!("and {more} more"));
            let lines = shown.chain(more).map(|text| Line { mark: Mark::Removed, is_inner: false, text });
            _ = write!(out, "\n### Snapshots\n{}", block(&block_lines(lines.collect())));
        }
        let mut nodes: Vec<&Node<'_>> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.entry.risk));
        let mut shown = None;
        let mut heads: Vec<String> = nodes.iter().map(|node| head(node, shown.replace(node.entry.risk))).collect();
        let mut left = Left::default();
        for class in nodes.chunk_by(|a, b| a.entry.risk == b.entry.risk) {
            let lower = heads.split_off(class.len());
            let room = LIMIT.saturating_sub(out.len() + NOTE);
            let mut used = 0;
            heads.retain(|head| {
                used += head.len();
                used <= room
            });
            left.add(class[0].entry.risk, class.len() - heads.len());
            // The lower risks have names too.
            let free = room - heads.iter().map(String::len).sum::<usize>();
            let kept = lower.iter().map(String::len).sum::<usize>().min(free / 2);
            let blocks: Vec<Vec<(Mark, String)>> =
                class.iter().zip(&heads).map(|(node, _)| block_lines(lines(node.entry, node.kind))).collect();
            let share = fair_share(blocks.iter().map(|lines| length(lines)).collect(), free - kept);
            for (head, mut lines) in heads.iter().zip(blocks) {
                out += head;
                if length(&lines) > share {
                    cut(&mut lines, share);
                    left.details += 1;
                }
                out += &block(&lines);
            }
            heads = lower;
        }
        let outputs = self.document.outputs.iter().map(|one| {
            let (kind, values) = output(one);
            let mark = match kind {
                super::Kind::Added => Mark::Added,
                super::Kind::Deleted => Mark::Removed,
                _ => Mark::Changed,
            };
            Line { mark, is_inner: false, text: visible(&format!("{}: {values}", one.name)).into_owned() }
        });
        let outputs = block(&block_lines(outputs.collect()));
        if !outputs.is_empty() {
            let outputs = format!("\n### Outputs\n{outputs}");
            if outputs.len() <= LIMIT.saturating_sub(out.len() + NOTE) {
                out += &outputs;
            } else {
                left.outputs = self.document.outputs.len();
            }
        }
        out += &left.note();
        out
    }
}

/// The bytes that each block may have, so that all have room together: short blocks leave theirs to long ones.
fn fair_share(mut lengths: Vec<usize>, mut room: usize) -> usize {
    lengths.sort_unstable();
    for (index, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - index);
        if *length > share {
            return share;
        }
        room -= length;
    }
    room
}

/// What has no room.
#[derive(Default)]
struct Left {
    /// Resources that are shown without all of their properties.
    details: usize,
    /// Resources by their risk.
    resources: Vec<(Risk, usize)>,
    outputs: usize,
}

impl Left {
    fn add(&mut self, risk: Risk, count: usize) {
        if count > 0 {
            self.resources.push((risk, count));
        }
    }

    fn note(&self) -> String {
        let resources = self.resources.iter().map(|(risk, count)| format!("{count} resources ({})", risk.words()));
        let details = (self.details > 0).then(|| format!("the properties of {} resources", self.details));
        let outputs = (self.outputs > 0).then(|| format!("{} outputs", self.outputs));
        let parts: Vec<String> = details.into_iter().chain(resources).chain(outputs).collect();
        if parts.is_empty() {
            return String::new();
        }
        format!(
            "\n> **Left out**, because a comment has no more room: {}. `kiln stack plan` shows all.\n",
            parts.join(", ")
        )
    }
}

/// The line with the name of a resource, after a title if the resource before it has another risk.
fn head(node: &Node<'_>, before: Option<Risk>) -> String {
    let entry = node.entry;
    let title = format!("\n### {}\n", capital(entry.risk.words()));
    let mut head = format!(
        "{}\n{} {} ({}): {}",
        if before == Some(entry.risk) { "" } else { &title },
        code(node.kind.sign()),
        code(&entry.path),
        code(&entry.resource_type),
        node.kind.words().0
    );
    for lost in &entry.lost {
        _ = write!(head, ", **lost: {}**", code(&lost.what));
    }
    head.push('\n');
    head
}

/// The lines of a block. A value may have line breaks; none of its lines may look like the end of the block.
fn block_lines(lines: Vec<Line>) -> Vec<(Mark, String)> {
    let mut parts = Vec::new();
    for Line { mark, is_inner, text } in lines {
        let sign = match mark {
            Mark::Plain => ' ',
            Mark::Added => '+',
            Mark::Removed => '-',
            Mark::Changed | Mark::Important => '!',
        };
        let indent = if is_inner { "  " } else { "" };
        parts.extend(text.lines().map(|part| (mark, format!("{sign} {indent}{part}\n"))));
    }
    parts
}

/// The bytes of a block.
fn length(lines: &[(Mark, String)]) -> usize {
    block(lines).len()
}

/// Removes the ends of long lines, and lines, until a block has room; a reason and a loss go last.
fn cut(lines: &mut Vec<(Mark, String)>, room: usize) {
    for goes in [|mark: Mark| mark != Mark::Important, |_| true] {
        let mut surplus = length(lines).saturating_sub(room);
        while let Some(last) = lines.iter().rposition(|(mark, _)| surplus > 0 && goes(*mark)) {
            let line = &mut lines[last].1;
            let end = line.floor_char_boundary(line.len().saturating_sub(surplus + CUT.len()));
            if end > SHORT {
                line.truncate(end);
                line.push_str(CUT);
                surplus = 0;
            } else {
                surplus = surplus.saturating_sub(lines.remove(last).1.len());
            }
        }
    }
}

/// A block with lines that viewers color.
fn block(lines: &[(Mark, String)]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let text: String = lines.iter().map(|(_, line)| line.as_str()).collect();
    let fence = fence(&text, 3);
    format!("{fence}diff\n{text}{fence}\n")
}

/// A text as code in a line.
fn code(text: &str) -> String {
    let text = visible(text).replace('\n', " ");
    let fence = fence(&text, 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// More backticks than the text has in a row.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat((longest + 1).max(least))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
