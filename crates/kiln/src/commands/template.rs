//! `kiln template …`: the commands of `openstack orchestration template …`, and validation without a service.

mod excerpt;
mod graph;
mod language;
mod lint;
mod rewrite;
mod text;

use std::sync::Arc;

use clap::{Args, Subcommand};
use kiln_authoring::offline::{examine, obstacles};
use kiln_client::{Bundle, ErrorLocation, parameters};
use kiln_plan::{Blueprint, ResourceTypes, Sources};
use kiln_template::environment::{self, Environment};
use kiln_template::{Files, Release};
use kiln_value::{Diagnostic, Map, Value};

use super::stack::entries;
use crate::cli::Global;
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome, nearest};
use crate::output::{Cell, Format, List, One, OutputArgs};

/// Check templates, and what they may say.
#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Check a template with its environments and files
    Validate(ValidateArgs),
    /// The versions of the template language
    #[command(subcommand)]
    Version(VersionCommand),
    /// The functions of a template version
    #[command(subcommand)]
    Function(FunctionCommand),
    /// The template versions that Kiln knows; asks no service
    Versions(language::VersionsArgs),
    /// The functions of a template version; asks no service
    Functions(language::FunctionsArgs),
    /// Find what is no error and still not what you want
    Lint(lint::LintArgs),
    /// Draw the resources and who needs whom
    Graph(graph::GraphArgs),
    /// Put a template into its usual form, comments and all
    Fmt(rewrite::FmtArgs),
    /// Rewrite an old template (HOT or CFN) to the newest version
    Upgrade(rewrite::UpgradeArgs),
}

impl TemplateCommand {
    /// Runs it.
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        match self {
            Self::Validate(args) => args.run(global).await,
            Self::Version(VersionCommand::List(args)) => args.run(global).await,
            Self::Function(FunctionCommand::List(args)) => args.run(global).await,
            Self::Versions(args) => args.run(),
            Self::Functions(args) => args.run(),
            Self::Lint(args) => args.run(global),
            Self::Graph(args) => args.run(global).await,
            Self::Fmt(args) => args.run(),
            Self::Upgrade(args) => args.run(),
        }
    }
}

/// `template validate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln template validate -t web.yaml -e production.yaml
  kiln template validate -t web.yaml --offline       asks no service: names of images, networks … are not looked up

Without a service every mistake is told with its line, not only the first.")]
pub(crate) struct ValidateArgs {
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE")]
    template: String,
    /// Environment: path or URL; may be repeated, later ones count more
    #[arg(short, long, value_name = "ENVIRONMENT")]
    environment: Vec<String>,
    /// Value of a parameter; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Show the parameters of nested templates too
    #[arg(long)]
    show_nested: bool,
    /// Error codes to ignore, with commas between
    #[arg(long, value_name = "CODE1,CODE2…")]
    ignore_errors: Option<String>,
    /// Ask no service
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ValidateArgs {
    async fn run(self, global: &Global) -> Outcome {
        let given = parameters(&self.parameter)?;
        if self.offline {
            let source = Connection::source(global)?;
            let bundle = Bundle::read(&source, Some(&self.template), &self.environment).await?;
            return Ok(self.output.one(offline(&bundle, &given, &global.local.catalog()?)?, Format::Yaml)?);
        }
        let connection = Connection::open(global, Need::Nothing).await?;
        let bundle = Bundle::read(&connection.source, Some(&self.template), &self.environment).await?;
        let answer = connection.client.validate(&bundle, &given, self.show_nested, self.ignore_errors.as_deref()).await;
        connection.close().await?;
        let answer = answer.map_err(|error| Failure::from(error).in_template(&bundle))?;
        Ok(self.output.one(entries(answer), Format::Yaml)?)
    }
}

/// Several mistakes, or one, shown in the template.
fn wrong(errors: &[Diagnostic], bundle: &Bundle) -> Failure {
    let places = errors.iter().map(place).collect();
    let message = match errors {
        [one] => one.message.clone(),
        many => format!("{} mistakes", many.len()),
    };
    Failure::new(message).at(places).in_template(bundle)
}

/// The stack that a bundle describes.
fn blueprint(bundle: &Bundle, given: &Map, catalog: &ResourceTypes) -> Outcome<Blueprint> {
    Blueprint::build(sources(bundle, given)?, catalog, None, kiln_plan::Nesting::default())
        .map_err(|error| wrong(&[error], bundle))
}

/// What the stack that a bundle describes is made of.
fn sources(bundle: &Bundle, given: &Map) -> Outcome<Sources> {
    let environment = environment::from_request(Some(&bundle.environment.clone().into()), given)
        .and_then(|sections| Environment::from_sections(&sections))
        .map_err(|error| wrong(&[error], bundle))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Sources {
        template: Arc::new(bundle.template.clone().unwrap_or_default()),
        environment: Arc::new(environment),
        files: Arc::new(Files(bundle.files.iter().map(|(name, value)| (name.clone(), text(value))).collect())),
    })
}

/// Checks everything that can be checked without asking a cloud; gives the description and the parameters.
fn offline(bundle: &Bundle, given: &Map, catalog: &ResourceTypes) -> Outcome<One> {
    let (blueprint, mut errors) = examine(&sources(bundle, given)?, catalog);
    // Types that cannot be created come first.
    if let Some(blueprint) = &blueprint {
        errors = obstacles(blueprint, catalog);
    }
    let Some(blueprint) = blueprint.filter(|_| errors.is_empty()) else { return Err(wrong(&errors, bundle)) };
    let description: Value = blueprint.bound().template().description().into();
    let parameters: Value = blueprint.parameters().validate_view().into();
    Ok(vec![("Description".into(), description.into()), ("Parameters".into(), parameters.into())])
}

fn place(error: &Diagnostic) -> ErrorLocation {
    ErrorLocation {
        message: error.message.clone(),
        path: error.path.to_string(),
        line: error.span.map(|span| span.start.line.into()),
        column: error.span.map(|span| span.start.column.into()),
        hints: error.hints.clone(),
    }
}

/// `template version …`.
#[derive(Debug, Subcommand)]
pub(crate) enum VersionCommand {
    /// List the template versions
    List(VersionArgs),
}

/// `template version list`.
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Ask no service: the versions that Kiln knows
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl VersionArgs {
    async fn run(self, global: &Global) -> Outcome {
        let rows: Vec<Vec<Cell>> = if self.offline {
            language::version_rows()
        } else {
            let connection = Connection::open(global, Need::Nothing).await?;
            let versions = connection.client.template_versions().await;
            connection.close().await?;
            let aliases = |version: &Value| {
                let aliases = version.get("aliases").and_then(Value::as_list).unwrap_or_default();
                aliases.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            };
            let text = |version: &Value, key| version.str_at(key).unwrap_or_default().to_owned();
            let row = |version: &Value| -> Vec<Cell> {
                vec![text(version, "version").into(), text(version, "type").into(), aliases(version).into()]
            };
            versions?.iter().map(row).collect()
        };
        let columns = ["Version", "Type", "Aliases"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}

/// `template function …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FunctionCommand {
    /// List the functions of a template version
    List(FunctionArgs),
}

/// `template function list`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  kiln template function list heat_template_version.2018-08-31")]
pub(crate) struct FunctionArgs {
    /// Template version: heat_template_version.2018-08-31
    #[arg(value_name = "TEMPLATE-VERSION")]
    version: String,
    /// Functions of conditions too
    #[arg(long, alias = "with_conditions")]
    with_conditions: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl FunctionArgs {
    async fn run(self, global: &Global) -> Outcome {
        let connection = Connection::open(global, Need::Nothing).await?;
        let functions = connection.client.template_functions(&self.version, self.with_conditions).await;
        connection.close().await?;
        let functions = match functions {
            Err(error) if error.is_not_found() => {
                let failure = Failure::new(format!("Template version not found: {}", self.version));
                let known = Release::ALL.iter().map(|release| release.name());
                return Err(match nearest(&self.version, known) {
                    Some(near) => failure.hint(format!("did you mean {near}?")),
                    None => failure.hint("'kiln template version list' shows the versions there are"),
                });
            }
            functions => functions?,
        };
        let text = |function: &Value, key| function.str_at(key).unwrap_or_default().to_owned();
        let row = |function: &Value| vec![text(function, "functions").into(), text(function, "description").into()];
        let rows = functions.iter().map(row).collect();
        let columns = ["Functions", "Description"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}
