//! `kiln template fmt` and `upgrade`: rewrite a template without changing its meaning.

use clap::Args;
use kiln_authoring::format;
use kiln_authoring::upgrade::{Note, Upgrade, upgrade};
use kiln_console::output::print;
use serde_json::json;

use super::text::{Text, each};
use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Format a template; comments are kept
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a file, as told"))]
#[command(after_help = "\
Examples:
  kiln template fmt web.yaml               rewrite the file
  kiln template fmt --check *.yaml         list unformatted files; exit code 1 if there are any
  kiln template fmt - < web.yaml           read standard input, write standard output

Indentation, spaces and empty lines are formatted, and the sections are sorted (version, \
description, parameter_groups, parameters, conditions, resources, outputs). Comments stay with \
their section; values and line breaks do not change. Entries in a layout that cannot be changed \
safely are left as they are.")]
pub(crate) struct FmtArgs {
    /// Templates: paths; - for standard input
    #[arg(value_name = "TEMPLATE", required = true)]
    templates: Vec<String>,
    /// List the files that would change, without changing them
    #[arg(long)]
    check: bool,
}

impl FmtArgs {
    pub(super) async fn run(self, _: &Global) -> Outcome {
        let (changes, formatted) =
            each(&self.templates, "could not be formatted", async |name| self.format(name)).await;
        formatted?;
        match changes.iter().filter(|has_changed| **has_changed).count() {
            1 if self.check => Err(Failure::new("1 file is not formatted")),
            count if self.check && count > 0 => Err(Failure::new(format!("{count} files are not formatted"))),
            _ => Ok(()),
        }
    }

    /// Formats one file, or prints its name; gives whether it changes.
    fn format(&self, name: &str) -> Outcome<bool> {
        let text = Text::read(name)?;
        let formatted =
            format::format(&text.content).map_err(|error| Failure::new(format!("{}: {error}", text.name)))?;
        let has_changed = formatted != text.content;
        if !self.check && (has_changed || name == "-") {
            text.write(&formatted)?;
        } else if self.check && has_changed {
            print(&format!("{}\n", text.name))?;
        }
        Ok(has_changed)
    }
}

/// Convert an old template (HOT or CFN) to the latest HOT version
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a file, as told"))]
#[command(after_help = "\
Examples:
  kiln template upgrade old.yaml > new.yaml
  kiln template upgrade --in-place old.yaml
  kiln template upgrade cfn.template -f json        print template, notes and comparison as JSON

The result is written only if both templates resolve to the same stack. Every resource, output and \
parameter is compared, with default parameters and all other values that conditions depend on.")]
pub(crate) struct UpgradeArgs {
    /// Template: path; - for standard input
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// Rewrite the file
    #[arg(short, long)]
    in_place: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

impl UpgradeArgs {
    pub(super) fn run(self) -> Outcome {
        let text = Text::read(&self.template)?;
        let page = text.page()?;
        let told = |note: &Note| {
            let start = note.span.start;
            format!("{}:{}:{}: {}: {}", text.name, start.line, start.column, note.path, note.message)
        };
        let Upgrade { text: upgraded, notes, proof } = upgrade(&page).map_err(|obstacles| {
            let failure = Failure::new(format!("{} cannot be upgraded", text.name));
            obstacles.iter().fold(failure, |failure, note| failure.hint(told(note)))
        })?;
        if self.format == "json" {
            let note = |note: &Note| {
                let (path, start) = (note.path.to_string(), note.span.start);
                json!({"message": note.message, "path": path, "line": start.line, "column": start.column})
            };
            let notes: Vec<_> = notes.iter().map(note).collect();
            let shown = json!({"template": upgraded, "notes": notes, "bindings_compared": proof.bindings});
            print(&format!("{shown:#}\n"))?;
        } else if !self.in_place {
            print(&upgraded)?;
        }
        if self.format == "text" {
            for note in &notes {
                anstream::eprintln!("{}", told(note));
            }
            let sets = if proof.bindings == 1 { "set" } else { "sets" };
            let (name, count) = (&text.name, proof.bindings);
            anstream::eprintln!("{name}: both templates resolve to the same stack with {count} {sets} of parameters");
        }
        if self.in_place { text.write(&upgraded) } else { Ok(()) }
    }
}
