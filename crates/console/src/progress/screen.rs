//! Prints the progress.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kiln_value::value;

use super::draw::{self, Canvas};
use super::tree::{News, Tree};
use crate::output::visible;

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A tree on a terminal, else lines.
    #[default]
    Auto,
    /// One line per event.
    Plain,
    /// One JSON object per event.
    Json,
    /// Nothing.
    None,
}

/// The tree on the terminal, if there is one.
static TREE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes to standard error without disturbing the tree on the terminal.
pub fn beside(write: impl FnOnce()) {
    let tree = TREE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match tree {
        Some(bar) if !bar.is_finished() => bar.suspend(write),
        _ => write(),
    }
}

/// Prints progress to standard error.
#[derive(Debug)]
pub struct Screen {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Live { bar: ProgressBar, colour: bool },
    Plain,
    Json,
    None,
}

impl Screen {
    /// A screen with the given mode.
    pub fn new(mode: Mode) -> Self {
        let kind = match mode {
            Mode::Auto if stderr().is_terminal() && !is_dumb() => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(15));
                if let Ok(style) = ProgressStyle::with_template("{msg}") {
                    bar.set_style(style);
                }
                *TREE.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
                let colour = anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never;
                Kind::Live { bar, colour }
            }
            Mode::Auto | Mode::Plain => Kind::Plain,
            Mode::Json => Kind::Json,
            Mode::None => Kind::None,
        };
        Self { kind }
    }

    /// Whether the tree is redrawn continuously.
    pub fn is_live(&self) -> bool {
        matches!(self.kind, Kind::Live { .. })
    }

    /// Draws the tree.
    pub fn show(&self, tree: &Tree, now: Duration) {
        if let Kind::Live { bar, colour } = &self.kind {
            let (height, width) = console::Term::stderr().size();
            let canvas = Canvas { colour: *colour, width: width.into(), height: height.into() };
            // A wrapped line would count twice and would not be cleared.
            let fits = |line| console::truncate_str(line, canvas.width.saturating_sub(1), "…").into_owned();
            let lines: Vec<String> = draw::tree(tree, now, canvas).lines().map(fits).collect();
            bar.set_message(lines.join("\n"));
        }
    }

    /// Prints news about a resource.
    pub fn tell(&self, tree: &Tree, news: &News) {
        let Some(node) = tree.node(&news.stack, &news.name) else { return };
        let path = tree.path(&news.stack, &news.name);
        let time = draw::seconds(news.at);
        match &self.kind {
            Kind::Plain => {
                let took = node.ended.and(node.spent(news.at)).map(|t| format!(" in {}", draw::seconds(t)));
                let reason = if news.status.ends_with("_FAILED") { &news.reason } else { &node.waits };
                let reason = if reason.is_empty() { String::new() } else { format!(": {}", visible(reason)) };
                let (word, took) = (draw::word(node), took.unwrap_or_default());
                let kind = if node.kind.is_empty() { String::new() } else { format!(" ({})", node.kind) };
                let path = visible(&path);
                _ = writeln!(stderr(), "{time:>7}  {path}{kind} {word}{took}{reason}");
            }
            Kind::Json => json(&value!({
                "resource": path,
                "resource_type": &node.kind,
                "status": &news.status,
                "reason": &news.reason,
                "seconds": (news.at.as_secs_f64()),
            })),
            Kind::Live { .. } | Kind::None => {}
        }
    }

    /// Prints that a resource has another name than before.
    pub fn moved(&self, tree: &Tree, news: &News, from: &str) {
        let path = tree.path(&news.stack, &news.name);
        match &self.kind {
            Kind::Plain => {
                let time = draw::seconds(news.at);
                _ = writeln!(stderr(), "{time:>7}  {} moved from {}", visible(&path), visible(from));
            }
            Kind::Json => {
                json(&value!({ "resource": path, "moved_from": from, "seconds": (news.at.as_secs_f64()) }));
            }
            Kind::Live { .. } | Kind::None => {}
        }
    }

    /// Prints a note.
    pub fn note(&self, text: &str) {
        match &self.kind {
            Kind::Live { bar, .. } => bar.suspend(|| _ = writeln!(stderr(), "note: {text}")),
            Kind::Plain => _ = writeln!(stderr(), "note: {text}"),
            Kind::Json => json(&value!({"note": text})),
            Kind::None => {}
        }
    }

    /// Prints the new status of the stack.
    pub fn tell_status(&self, tree: &Tree, now: Duration) {
        match &self.kind {
            Kind::Plain => {
                let count = tree.count();
                let time = draw::seconds(now);
                let summary = draw::summary(tree, count);
                _ = writeln!(stderr(), "{time:>7}  {} {} ({summary})", tree.name, tree.status);
            }
            Kind::Json => {
                json(&value!({"stack": &tree.name, "status": &tree.status, "seconds": (now.as_secs_f64())}));
            }
            Kind::Live { .. } | Kind::None => {}
        }
    }

    /// Draws the final tree.
    pub fn finish(&self, tree: &Tree, now: Duration) {
        if let Kind::Live { bar, colour } = &self.kind {
            bar.finish_and_clear();
            let width = console::Term::stderr().size().1;
            let canvas = Canvas { colour: *colour, width: width.into(), height: usize::MAX };
            _ = writeln!(stderr(), "{}", draw::tree(tree, now, canvas));
        }
    }
}

/// Whether the terminal cannot move the cursor.
fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

fn json(line: &kiln_value::Value) {
    _ = writeln!(stderr(), "{}", kiln_value::text::json(line));
}
