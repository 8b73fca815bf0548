//! `kiln template …`: the commands of `openstack orchestration template …`, and tools that need no service.

mod function;
mod graph;
mod lint;
mod lower;
mod rewrite;
mod text;
mod type_file;
mod version;

use clap::Args;
use kiln_authoring::offline::{MAX_DEPTH, examine, obstacles};
use kiln_client::{Bundle, parameters};
use kiln_console::output::{Format, One, OutputArgs};
use kiln_plan::hidden::{Door, mask_validated};
use kiln_plan::{Blueprint, ResourceTypes};
use kiln_value::{Map, Value};

use self::text::each;
use super::stack::entries;
use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome};
use crate::mistakes::{Sent, refused, sources, wrong};
use crate::topology::{self, Lowering};

group! {
    /// Commands for templates.
    TemplateCommand with Global {
        Validate(ValidateArgs),
        /// List the versions of templates
        #[command(subcommand)]
        Version(version::VersionCommand),
        /// List the functions of a template version; show one with examples
        #[command(subcommand)]
        Function(function::FunctionCommand),
        Lint(lint::LintArgs),
        Graph(graph::GraphArgs),
        Lower(lower::LowerArgs),
        Fmt(rewrite::FmtArgs),
        Upgrade(rewrite::UpgradeArgs) now,
    }
}

/// Validate a template with its environments and files
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln template validate web.yaml -e production.yaml
  kiln template validate --offline web.yaml three-tier.yaml
  kiln template validate tosca.yaml --offline     also TOSCA, blueprints, CAMP, packages of them
  kiln template validate cache.yaml               also type files of these

With --offline, no service is contacted: names of images, networks and so on are not checked. All \
errors are reported with their lines, not only the first one.")]
pub(crate) struct ValidateArgs {
    /// Templates: paths or URLs; - for standard input
    #[arg(value_name = "TEMPLATE", required_unless_present = "template", conflicts_with = "template")]
    templates: Vec<String>,
    /// A template, as in the openstack client
    #[arg(short, long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Environment: path or URL; may be repeated, later ones take precedence
    #[arg(short, long, value_name = "ENVIRONMENT")]
    environment: Vec<String>,
    /// Parameter value; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Container of Swift with the environments and files; only the template is read here
    #[arg(short = 's', long, value_name = "CONTAINER", conflicts_with = "offline")]
    files_container: Option<String>,
    /// Include the parameters of nested templates
    #[arg(long)]
    show_nested: bool,
    /// Error codes to ignore, separated by commas
    #[arg(long, value_name = "CODE1,CODE2…")]
    ignore_errors: Option<String>,
    /// Also check quotas, names, addresses and so on in the cloud, as the create of a stack would meet them
    #[arg(long, conflicts_with = "offline")]
    preflight: bool,
    /// Validate without a service
    #[arg(long)]
    offline: bool,
    /// Maximum depth of nested templates, with --offline [default: 5, as in a service]
    #[arg(long, value_name = "DEPTH", requires = "offline")]
    max_nested_depth: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

impl ValidateArgs {
    async fn run(self, global: &Global) -> Outcome {
        let (_, valid) = each(self.templates.iter().chain(&self.template), "are not valid", async |name| {
            // Its references are from its folder: a document in a pipe has none.
            let about = self.validated(global, if name == "-" { "/dev/stdin" } else { name }).await?;
            Ok(self.output.one(about, Format::Yaml)?)
        })
        .await;
        valid
    }

    async fn validated(&self, global: &Global, template: &str) -> Outcome<One> {
        let given = parameters(&self.parameter)?;
        if let Some(about) = type_file::validated(global, template).await? {
            return Ok(about);
        }
        if self.offline {
            let source = Connection::source(global)?;
            let by = Lowering { source: &source, settings: &global.local, service: None, software: None };
            let bundle = match topology::read(&by, template, &self.environment, &given).await? {
                Some(made) => made.bundle,
                None => Bundle::read(&source, Some(template), &self.environment).await?,
            };
            let depth = self.max_nested_depth.unwrap_or(MAX_DEPTH);
            return offline(&bundle, &given, &global.local.catalog().await?, self.show_nested, depth);
        }
        let connection = Connection::open(global, Need::Nothing).await?;
        let container = self.files_container.as_deref();
        let bundle =
            super::stack::read(&connection, Some(template), &self.environment, container, &given, None).await?;
        let answer = connection
            .client
            .validate(&bundle, &given, self.show_nested, self.ignore_errors.as_deref(), self.preflight)
            .await;
        let answer = match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(refused(&connection, &bundle, &given, error).await),
        };
        connection.close().await?;
        let answer = answer?;
        if self.preflight {
            passed(&answer)?;
        }
        Ok(shown(answer))
    }
}

/// Refuses an answer whose pre-flight has failed.
fn passed(answer: &Value) -> Outcome {
    let Some(checks) = answer.get("preflight").and_then(Value::as_list) else {
        return Err(Failure::new("the service has no pre-flight").hint("only Kiln has one; leave out --preflight"));
    };
    let failed = checks.iter().filter(|one| one.str_at("verdict") == Some("fail"));
    let text = |one: &Value| ["check", "message"].map(|key| one.str_at(key).unwrap_or_default()).join(": ");
    let failures: Vec<String> = failed.map(text).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("the pre-flight failed: {}", failures.join("; "))))
    }
}

/// Builds the blueprint of the stack that a bundle describes.
fn blueprint(bundle: &Bundle, given: &Map, catalog: &ResourceTypes) -> Outcome<Blueprint> {
    let sent = Sent { bundle, given, catalog: Some(catalog) };
    Blueprint::build(sources(bundle, given)?, catalog, None, kiln_plan::Nesting::default())
        .map_err(|error| wrong(&[error], sent))
}

/// Runs all checks that need no cloud; returns the description and the parameters, with `nested` also those of the
/// templates in it.
fn offline(bundle: &Bundle, given: &Map, catalog: &ResourceTypes, nested: bool, depth: u32) -> Outcome<One> {
    let sent = Sent { bundle, given, catalog: Some(catalog) };
    for warning in sent.warnings() {
        anstream::eprintln!("{warning}\n");
    }
    let (blueprint, found) = examine(&sources(bundle, given)?, catalog, depth);
    // Types that cannot be created come first.
    let mut errors = blueprint.as_ref().map(|blueprint| obstacles(blueprint, catalog, depth)).unwrap_or_default();
    for error in found {
        if !errors.iter().any(|known| known.says(&error) && known.path == error.path) {
            errors.push(error);
        }
    }
    let Some(blueprint) = blueprint.filter(|_| errors.is_empty()) else { return Err(wrong(&errors, sent)) };
    let summary = blueprint.summary(catalog, nested.then_some(depth)).map_err(|error| wrong(&[error], sent))?;
    Ok(shown(summary.to_map().into()))
}

/// The answer to a validation, without the values of hidden parameters.
fn shown(mut answer: Value) -> One {
    mask_validated(Door::Validation, &mut answer);
    entries(answer)
}
