//! A plan as one page of HTML, which needs no other file.

use std::fmt::Write as _;

use super::details::{Mark, lines, output, snapshot_name};
use super::{Kind, Plan};
use crate::output::markup;
use crate::page::page;

const STYLE: &str = "\
ul { list-style: none; padding-left: 1.5rem; }
body > ul { padding-left: 0; }
li { margin: .5rem 0; }
pre { font: 13px/1.45 ui-monospace, monospace; margin: .2rem 0 .2rem 2.5rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; }
small { opacity: .75; }
.sign { display: inline-block; min-width: 2.5rem; font-family: ui-monospace, monospace; font-weight: bold; }
.added, .plus { color: #1a7f37; }
.updated { color: #9a6700; }
.destroyed, .minus, .important { color: #cf222e; }
@media (prefers-color-scheme: dark) {
  .added, .plus { color: #3fb950; }
  .updated { color: #d29922; }
  .destroyed, .minus, .important { color: #ff7b72; }
}
";

impl Plan<'_> {
    /// A page with the plan. It makes no request and runs no script.
    pub fn page(&self) -> String {
        let title = markup(&format!("Plan of {}", self.document.stack));
        let mut out = String::new();
        _ = writeln!(out, "<p><strong>{}</strong></p>", markup(&self.summary()));
        let legend = self.kinds().map(|kind| {
            let class = kind.class();
            format!("<code class=\"{class}\">{}</code> {}", markup(kind.sign()), markup(kind.words().0))
        });
        let legend: Vec<String> = legend.collect();
        if !legend.is_empty() {
            _ = writeln!(out, "<p><small>{}</small></p>", legend.join(" · "));
        }
        if let Some(risks) = self.risks() {
            _ = writeln!(out, "<p>Risk: {risks}</p>");
        }
        if let Some(time) = self.time() {
            _ = writeln!(out, "<p>Time: {}</p>", markup(&time));
        }
        if let Some(moves) = self.moves() {
            _ = writeln!(out, "<p>Hint: {}</p>", markup(&moves));
        }
        self.tree(&mut out);
        if !self.document.outputs.is_empty() {
            out += "<h2>Outputs</h2>\n<ul>\n";
            for one in &self.document.outputs {
                let (kind, values) = output(one);
                sign(&mut out, kind);
                _ = writeln!(out, "<code>{}: {}</code></li>", markup(&one.name), markup(&values));
            }
            out += "</ul>\n";
        }
        if self.found().next().is_some() {
            out += "<h2>Pre-flight</h2>\n<ul>\n";
            for check in self.found() {
                _ = writeln!(out, "<li>{} <code>{}</code></li>", check.verdict.word(), markup(&check.text()));
            }
            out += "</ul>\n";
        }
        if !self.document.snapshots.is_empty() {
            out += "<h2>Snapshots</h2>\n<ul>\n";
            for one in &self.document.snapshots {
                sign(&mut out, Kind::Deleted);
                _ = writeln!(out, "<code>{}{}</code></li>", markup(&one.id), markup(&snapshot_name(one)));
            }
            out += "</ul>\n";
        }
        page(&title, STYLE, &out)
    }

    fn tree(&self, out: &mut String) {
        /// What is written next.
        enum Next {
            Node(usize),
            Text(&'static str),
        }
        let mut open = vec![Next::Text("</ul>\n")];
        open.extend(self.roots.iter().rev().map(|place| Next::Node(*place)));
        *out += "<ul>\n";
        while let Some(next) = open.pop() {
            let node = match next {
                Next::Text(text) => {
                    *out += text;
                    continue;
                }
                Next::Node(place) => &self.nodes[place],
            };
            sign(out, node.kind);
            _ = write!(
                out,
                "<strong>{}</strong> <code>{}</code>",
                markup(node.name),
                markup(&node.entry.resource_type)
            );
            if let Some(source) = &node.entry.source {
                let template = source.template.iter().map(|name| format!("{name}: "));
                _ = write!(out, " <small>{}{}</small>", markup(&template.collect::<String>()), markup(&source.path));
            }
            if !node.entry.waits_for.is_empty() {
                _ = write!(out, " <small>after {}</small>", markup(&node.entry.waits_for.join(", ")));
            }
            let details = lines(node.entry, node.kind);
            if !details.is_empty() {
                *out += "<pre>";
                for detail in details {
                    let (sign, class) = match detail.mark {
                        Mark::Plain | Mark::Changed => ("  ", ""),
                        Mark::Added => ("+ ", "plus"),
                        Mark::Removed => ("- ", "minus"),
                        Mark::Important => ("  ", "important"),
                    };
                    let indent = if detail.is_inner { "  " } else { "" };
                    _ = writeln!(out, "<span class=\"{class}\">{indent}{sign}{}</span>", markup(&detail.text));
                }
                *out += "</pre>";
            }
            if node.inside.is_empty() {
                *out += "</li>\n";
            } else {
                *out += "<ul>\n";
                open.push(Next::Text("</ul></li>\n"));
                open.extend(node.inside.iter().rev().map(|place| Next::Node(*place)));
            }
        }
    }
}

fn sign(out: &mut String, kind: Kind) {
    _ = write!(out, "<li><span class=\"sign {}\">{}</span>", kind.class(), markup(kind.sign()));
}
