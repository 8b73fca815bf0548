//! A plan as text.

use std::fmt::Write as _;

use super::details::{Mark, lines, output, snapshot_name};
use super::{Kind, Plan};
use crate::output::visible;

/// How a plan is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Canvas {
    /// Whether to use colors.
    pub colour: bool,
    /// The columns of the terminal, at which lines are continued; `None`: lines are as long as they are.
    pub width: Option<usize>,
}

impl Canvas {
    /// That of standard output.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout(), &console::Term::stdout())
    }

    /// That of standard error.
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

/// Longer indents leave too little of a line.
const DEEPEST: usize = 24;

impl Plan<'_> {
    /// A legend, the resources below those that own their stacks, the outputs, and a summary.
    pub fn text(&self, canvas: Canvas) -> String {
        let mut out = String::new();
        let legend: Vec<String> = self.kinds().map(|kind| format!("{} {}", kind.sign(), kind.words().0)).collect();
        if !legend.is_empty() {
            line(&mut out, canvas, 0, "", &format!("Legend: {}", legend.join(", ")));
            out.push('\n');
        }
        let mut open: Vec<(usize, usize)> = self.roots.iter().rev().map(|place| (*place, 0)).collect();
        while let Some((place, indent)) = open.pop() {
            let node = &self.nodes[place];
            head(
                &mut out,
                canvas,
                indent,
                node.kind,
                node.name,
                &format!("  ({})", visible(&node.entry.resource_type)),
            );
            for detail in lines(node.entry, node.kind) {
                let sign = match detail.mark {
                    Mark::Added => "+ ",
                    Mark::Removed => "- ",
                    _ if detail.is_inner => "  ",
                    _ => "",
                };
                let indent = indent + if detail.is_inner { 10 } else { 8 };
                line(&mut out, canvas, indent, sign, &detail.text);
            }
            let below = (indent + 4).min(DEEPEST);
            open.extend(node.inside.iter().rev().map(|place| (*place, below)));
        }
        if !self.document.outputs.is_empty() {
            out.push_str(if self.nodes.is_empty() { "Outputs:\n" } else { "\nOutputs:\n" });
            for one in &self.document.outputs {
                let (kind, values) = output(one);
                head(&mut out, canvas, 0, kind, &one.name, &format!(": {}", visible(&values)));
            }
        }
        if !self.document.snapshots.is_empty() {
            out.push_str(if out.is_empty() { "Snapshots:\n" } else { "\nSnapshots:\n" });
            for one in &self.document.snapshots {
                head(&mut out, canvas, 0, Kind::Deleted, &one.id, &snapshot_name(one));
            }
        }
        if self.found().next().is_some() {
            out.push_str(if out.is_empty() { "Pre-flight:\n" } else { "\nPre-flight:\n" });
            for check in self.found() {
                let sign = format!("  {:<8}", check.verdict.word());
                line(&mut out, canvas, 0, &sign, &visible(&check.text()));
            }
        }
        if !out.is_empty() {
            out.push('\n');
        }
        line(&mut out, canvas, 0, "", &format!("{}: {}", self.document.stack, self.summary()));
        if let Some(time) = self.time() {
            line(&mut out, canvas, 0, "", &format!("Time: {}", visible(&time)));
        }
        if let Some(moves) = self.moves() {
            line(&mut out, canvas, 0, "", &format!("Hint: {}", visible(&moves)));
        }
        out
    }
}

/// A line with the sign of a change.
fn head(out: &mut String, canvas: Canvas, indent: usize, kind: Kind, name: &str, rest: &str) {
    let start = out.len();
    let sign = format!("{:>3} ", kind.sign());
    let name = visible(name);
    line(out, canvas, indent, &sign, &format!("{name}{rest}"));
    let first = format!("{:indent$}{sign}{name}", "");
    if canvas.colour && out[start..].starts_with(&first) {
        let style = kind.style();
        out.replace_range(start + indent..start + first.len(), &format!("{style}{sign}{name}{style:#}"));
    }
}

/// A line, which is continued below its text if it is longer than the terminal.
fn line(out: &mut String, canvas: Canvas, indent: usize, sign: &str, text: &str) {
    // What others have named must not look like a line of the plan.
    let text = &text.replace('\n', "\\n");
    let begin = indent + sign.len();
    let room = canvas.width.map_or(usize::MAX, |width| width.saturating_sub(begin).max(20));
    let mut rest = text.as_str();
    let mut lead = format!("{:indent$}{sign}", "");
    loop {
        let (shown, more) = divided(rest, room);
        _ = writeln!(out, "{}", format!("{lead}{shown}").trim_end());
        if more.is_empty() {
            return;
        }
        rest = more;
        lead = " ".repeat(begin);
    }
}

/// The part of a text that has room, and the rest.
fn divided(text: &str, room: usize) -> (&str, &str) {
    if room == usize::MAX {
        return (text, "");
    }
    let (mut width, mut end, mut space) = (0, 0, None);
    for (place, character) in text.char_indices() {
        width += console::measure_text_width(character.encode_utf8(&mut [0; 4]));
        if width > room {
            // At a space, unless the line would be half empty.
            let at = space.filter(|space| *space > end / 2).unwrap_or(end.max(1));
            let at = if text.is_char_boundary(at) { at } else { place + character.len_utf8() };
            return (&text[..at], text[at..].trim_start());
        }
        end = place + character.len_utf8();
        if character == ' ' {
            space = Some(end);
        }
    }
    (text, "")
}
