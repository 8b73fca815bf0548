//! `kiln template lint`.

use std::io::Write as _;
use std::sync::Arc;

use annotate_snippets::Level;
use clap::Args;
use kiln_authoring::Page;
use kiln_authoring::lint::{Finding, RULES, Rule, Severity, lint, rule};
use kiln_authoring::type_files::unknown_resources_of;
use kiln_console::output::{Cell, Format, List, OutputArgs, OutputError};
use kiln_console::picture::Source;
use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use kiln_topology::check::check;

use super::text::{Text, each};
use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome};
use crate::topology::LocalFiles;

/// Find likely mistakes in valid templates
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln template lint web.yaml
  kiln template lint *.yaml --without unused-parameter --rule missing-description
  kiln template lint --list                    list the rules
  kiln template lint web.yaml -f json          print JSON for scripts

The exit code is 1 if there is a warning and 0 if there is only advice. For a description of the \
rules, see docs/linting.md.")]
pub(crate) struct LintArgs {
    /// Templates: paths; - for standard input
    #[arg(value_name = "TEMPLATE", required_unless_present = "list")]
    templates: Vec<String>,
    /// Ask the service for the types of blueprints and TOSCA that its operator has added
    #[arg(long)]
    service_types: bool,
    /// Also run this rule; may be repeated
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Do not run this rule; may be repeated
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// Run only this rule; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "rule")]
    only: Vec<String>,
    /// List the rules
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl LintArgs {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        for name in self.rule.iter().chain(&self.without).chain(&self.only) {
            if rule(name).is_none() {
                let failure = Failure::new(format!("unknown rule: {name}"));
                let otherwise = "run 'kiln template lint --list' to list the rules";
                return Err(failure.suggesting(name, RULES.iter().map(|rule| rule.name), otherwise));
            }
        }
        if self.list {
            return self.list();
        }
        let catalog = global.local.catalog().await?;
        let types = if self.service_types {
            let connection = Connection::open(global, Need::Nothing).await?;
            let types = global.local.topology_types_with(&connection.client).await;
            connection.close().await?;
            types?
        } else {
            global.local.topology_types()?
        };
        let (texts, read) = each(&self.templates, "could not be read", async |name| {
            let text = Text::read(name)?;
            let found = match in_topology(&text, &types, &catalog) {
                Some(found) => found,
                None => lint(&text.page()?, &catalog, |rule| self.wants(rule)),
            };
            Ok((text, found))
        })
        .await;
        self.show(&texts)?;
        read?;
        let all = || texts.iter().flat_map(|(_, findings)| findings);
        let warnings = all().filter(|finding| finding.severity == Severity::Warning).count();
        match (warnings, all().count() - warnings) {
            (0, _) => Ok(()),
            (1, 0) => Err(Failure::new("found 1 warning")),
            (warnings, 0) => Err(Failure::new(format!("found {warnings} warnings"))),
            (warnings, advice) => Err(Failure::new(format!("found warnings: {warnings}, advice: {advice}"))),
        }
    }

    fn wants(&self, rule: &Rule) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == rule.name);
        let asked = if self.only.is_empty() { rule.default || named(&self.rule) } else { named(&self.only) };
        asked && !named(&self.without)
    }

    fn list(&self) -> Outcome {
        let row = |rule: &Rule| -> Vec<Cell> {
            let on = if rule.default { "on" } else { "off" };
            vec![rule.name.into(), rule.severity.name().into(), on.into(), rule.summary.into()]
        };
        let columns = ["Rule", "Severity", "Default", "Finds"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows: RULES.iter().map(row).collect() }, Format::Table)?)
    }

    fn show(&self, texts: &[(Text, Vec<Finding>)]) -> Outcome {
        if self.output.format.is_none() {
            // Without colors if it is not a terminal.
            let mut out = anstream::stdout().lock();
            for (text, findings) in texts {
                let source = Source::new(&text.name, &text.content);
                for finding in findings {
                    writeln!(out, "{}\n", picture(finding, &source)).map_err(OutputError::Io)?;
                }
            }
            return Ok(out.flush().map_err(OutputError::Io)?);
        }
        let row = |(text, finding): (&Text, &Finding)| -> Vec<Cell> {
            let start = finding.span.start;
            vec![
                text.name.as_str().into(),
                i64::from(start.line).into(),
                i64::from(start.column).into(),
                finding.rule.into(),
                finding.severity.name().into(),
                finding.message.as_str().into(),
                finding.path.to_string().into(),
                finding.hint.as_deref().into(),
            ]
        };
        let rows = texts.iter().flat_map(|(text, findings)| findings.iter().map(move |finding| (text, finding)));
        let columns = ["file", "line", "column", "rule", "severity", "message", "path", "hint"];
        let list = List { columns: columns.map(str::to_owned).to_vec(), rows: rows.map(row).collect() };
        Ok(self.output.list(list, Format::Table)?)
    }
}

/// The errors of a blueprint, a CAMP plan, a TOSCA template or a type file, and its parts without effect. `None` for templates.
fn in_topology(text: &Text, types: &Arc<TypeFiles>, catalog: &ResourceTypes) -> Option<Vec<Finding>> {
    let path = std::path::absolute(&text.name).ok()?;
    let root = path.to_string_lossy().trim_start_matches('/').to_owned();
    let found = check(&text.content, &root, &LocalFiles, types)?.into_iter().map(|one| (one.refusal, one.span));
    let resources = unknown_resources_of(&text.content, &root, types, catalog);
    let found = found.chain(resources).map(|(refusal, span)| Finding {
        rule: refusal.kind,
        severity: Severity::Warning,
        message: refusal.text(),
        path: refusal.at,
        span,
        hint: Some(refusal.hints.join(" ")).filter(|hint| !hint.is_empty()),
    });
    Some(found.collect())
}

/// A finding with its source lines.
fn picture(finding: &Finding, source: &Source<'_>) -> String {
    let level = match finding.severity {
        Severity::Warning => Level::WARNING,
        Severity::Advice => Level::INFO.with_name("advice"),
    };
    source.picture(level, Some(finding.rule), &finding.message, finding.span, finding.hint.as_slice())
}

impl Text {
    /// Parses the text as a template.
    pub(super) fn page(&self) -> Outcome<Page> {
        Page::read(self.content.as_str()).map_err(|error| {
            let source = Source::new(&self.name, &self.content);
            Failure::at(&source, error.span.unwrap_or_default(), &error.text, &error.hints)
        })
    }
}
