//! A plan as Markdown, as merge requests show it: the highest risk first, and no longer than a comment may be.

use std::fmt::Write as _;

use kiln_plan_document::{Action, Risk};

use super::details::{Mark, lines, output};
use super::{Node, Plan};
use crate::output::visible;

/// The bytes of a page. A comment of GitHub has at most 65,536 characters.
const LIMIT: usize = 60_000;
/// The bytes of the note about what is left out.
const NOTE: usize = 400;

impl Plan<'_> {
    /// Markdown of at most 60 kB. What has no room is left out by whole resources, and counted.
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
        let mut nodes: Vec<&Node<'_>> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.entry.risk));
        let mut left = Left::default();
        let mut shown = None;
        for node in nodes {
            let risk = node.entry.risk;
            let title = if shown == Some(risk) { String::new() } else { format!("\n### {}\n", capital(risk.words())) };
            let room = LIMIT.saturating_sub(out.len() + NOTE);
            let head = format!("{title}\n{}\n", head(node));
            let block =
                block(lines(node.entry, node.kind).into_iter().map(|line| (line.mark, line.is_inner, line.text)));
            if head.len() + block.len() <= room {
                out += &head;
                out += &block;
            } else if head.len() <= room {
                out += &head;
                left.details += 1;
            } else {
                left.add(risk);
                continue;
            }
            shown = Some(risk);
        }
        let outputs = self.document.outputs.iter().map(|one| {
            let (kind, values) = output(one);
            let mark = match kind {
                super::Kind::Added => Mark::Added,
                super::Kind::Deleted => Mark::Removed,
                _ => Mark::Changed,
            };
            (mark, false, visible(&format!("{}: {values}", one.name)).into_owned())
        });
        let outputs = block(outputs);
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

/// What has no room.
#[derive(Default)]
struct Left {
    /// Resources that are shown without their properties.
    details: usize,
    /// Resources by their risk.
    resources: Vec<(Risk, usize)>,
    outputs: usize,
}

impl Left {
    fn add(&mut self, risk: Risk) {
        match self.resources.last_mut() {
            Some((last, count)) if *last == risk => *count += 1,
            _ => self.resources.push((risk, 1)),
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

/// The line with the name of a resource.
fn head(node: &Node<'_>) -> String {
    let entry = node.entry;
    let mut head = format!(
        "{} {} ({}): {}",
        code(node.kind.sign()),
        code(&entry.path),
        code(&entry.resource_type),
        node.kind.words().0
    );
    for lost in &entry.lost {
        _ = write!(head, ", **lost: {}**", code(&lost.what));
    }
    head
}

/// A block with lines that viewers color.
fn block(lines: impl Iterator<Item = (Mark, bool, String)>) -> String {
    let mut text = String::new();
    for (mark, is_inner, line) in lines {
        let sign = match mark {
            Mark::Plain => ' ',
            Mark::Added => '+',
            Mark::Removed => '-',
            Mark::Changed | Mark::Important => '!',
        };
        let indent = if is_inner { "  " } else { "" };
        // A value may have line breaks; none of its lines may look like the end of the block.
        for part in line.lines() {
            _ = writeln!(text, "{sign} {indent}{part}");
        }
    }
    if text.is_empty() {
        return text;
    }
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
