//! `kiln config …`: the reference of the options, checks of files, and the values in use.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kiln_config::ConfigArgs;
use kiln_config::check::{Finding, Level, finding_of, findings};
use kiln_config::option::At;
use kiln_config::{Config, Source, reference};
use kiln_console::output::{Cell, Format, List, OutputArgs, json_text, print};
use kiln_server::runtime;
use kiln_server::shown_options::shown;
use kiln_value::Value;

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for the configuration of a service.
    ConfigCommand with Global {
        Reference(ReferenceArgs) now,
        Check(CheckArgs) now,
        Show(ShowArgs) now,
    }
}

/// Print the reference of all options
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln config reference
  kiln config reference -f sample > sample.conf")]
pub(crate) struct ReferenceArgs {
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value = "markdown")]
    format: ReferenceFormat,
}

/// The forms of the reference.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReferenceFormat {
    /// A page in Markdown.
    Markdown,
    /// The man page kiln.conf(5).
    Man,
    /// A file with all options as comments.
    Sample,
}

/// Check configuration files, also files of Heat
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Reports with file and line: options that are unknown or misspelt, values that are not valid, options \
of Heat with a value that Kiln does not support (warning) or without effect, with the reason (note). Then \
reads all options as a service does. Does not connect to anything and does not use the environment. \
Exits with 1 if there is an error.

Examples:
  kiln config check kiln.conf
  kiln config check -f json kiln.conf")]
pub(crate) struct CheckArgs {
    /// Files, later ones take precedence [default: the file that a service would read]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: CheckFormat,
}

/// The forms of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// One line each.
    Text,
    /// A list of objects.
    Json,
}

/// Show the values in use and where they are set
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln config show --config-file kiln.conf --set
  kiln config show --config-file kiln.conf -f json")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only options that are set
    #[arg(long)]
    set: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ReferenceArgs {
    fn run(&self) -> Outcome {
        Ok(print(&match self.format {
            ReferenceFormat::Markdown => reference::markdown(),
            ReferenceFormat::Man => reference::man(env!("CARGO_PKG_VERSION")),
            ReferenceFormat::Sample => reference::sample(),
        })?)
    }
}

impl CheckArgs {
    fn run(self) -> Outcome {
        let config =
            if self.files.is_empty() { Config::load(&ConfigArgs::default()) } else { Config::of_files(self.files) };
        let config = config?;
        if config.files().is_empty() {
            return Err(Failure::new("no configuration file was found").hint("specify the files to check"));
        }
        let found = all(&config);
        let count = |level| found.iter().filter(|finding| finding.level == level).count();
        if self.format == CheckFormat::Json {
            let list: Vec<Value> = found.iter().map(Finding::value).collect();
            print(&format!("{}\n", json_text(&Value::from(list))))?;
        } else {
            for finding in &found {
                print(&format!("{finding}\n"))?;
            }
            print(&format!(
                "{} errors, {} warnings, {} notes\n",
                count(Level::Error),
                count(Level::Warning),
                count(Level::Note)
            ))?;
        }
        match count(Level::Error) {
            0 => Ok(()),
            _ => Err(Failure::new("the configuration is not valid")),
        }
    }
}

/// The findings about single options, then what a service would refuse.
fn all(config: &Config) -> Vec<Finding> {
    let mut found = findings(config);
    for error in runtime::check_options(config) {
        let finding = finding_of(config, &error);
        // A value that is not valid is not reported twice.
        let is_told =
            |told: &Finding| told.level == Level::Error && !told.shown().is_empty() && told.shown() == finding.shown();
        if !found.iter().any(is_told) {
            found.push(finding);
        }
    }
    found
}

impl ShowArgs {
    fn run(self) -> Outcome {
        let config = Config::load(&self.config)?;
        let mut rows = Vec::new();
        for at in Config::places() {
            let is_main = at.section == at.option.section();
            if config.is_set(at) || (is_main && !self.set) {
                rows.push(row(&config, at));
            }
        }
        let columns = ["Section", "Option", "Value", "Source"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}

fn row(config: &Config, at: At<'_>) -> Vec<Cell> {
    let (value, source) = match config.given(at) {
        Some((value, source)) => (shown(at.option, value), source),
        None if at.option.default_text().is_empty() => (at.option.computed_default().to_owned(), Source::Default),
        None => (at.option.default_text().to_owned(), Source::Default),
    };
    vec![at.section.into(), at.option.name().into(), value.as_str().into(), source.to_string().as_str().into()]
}
