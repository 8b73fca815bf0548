//! `kiln stack create` and `kiln stack update`.

mod rollback;

use clap::{Args, ValueEnum};
use kiln_client::{
    Bundle, Changes, Client, Error, ErrorLocation, PlannedCreate, Stack, StackRequest, file_parameters, parameters,
};
use kiln_console::output::{Cell, Format, Look, One, OutputArgs};
use kiln_console::plan::Plan;
use kiln_console::progress::{End, Target};
use kiln_topology::original::{FILE, Original};
use kiln_value::{Class, Map, Value};

pub(crate) use self::rollback::RollbackArgs;
use super::{WaitArgs, ended, of_stack, plan, show};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::open_page::OpenArgs;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome, nearest};
use crate::mistakes::{Sent, refused};
use crate::topology::{self, Lowering, Software};

/// Size up to which the original is stored with the stack (`stack template show --original`).
const MOST_KEPT: usize = 512 * 1024;

/// The content of a stack: environments, parameters, tags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Content {
    /// Environment: path or URL; may be repeated, later ones take precedence
    #[arg(short, long, value_name = "ENVIRONMENT")]
    environment: Vec<String>,
    /// Parameter value; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Parameter value read from a file; may be repeated
    #[arg(long, value_name = "KEY=FILE")]
    parameter_file: Vec<String>,
    /// Container of Swift with the environments and files; only the template is read here
    #[arg(short = 's', long, value_name = "CONTAINER")]
    files_container: Option<String>,
    /// How software gets to servers, for blueprints, CAMP plans and TOSCA
    #[arg(long, value_enum, value_name = "HOW")]
    software: Option<Software>,
    /// Timeout of the operation in minutes
    #[arg(long, value_name = "MINUTES")]
    timeout: Option<i64>,
    /// Tags of the stack, separated by commas
    #[arg(long, value_name = "TAG1,TAG2…")]
    tags: Option<String>,
}

impl Content {
    pub(crate) async fn request(&self, connection: &Connection, template: Option<&str>) -> Outcome<StackRequest> {
        let mut values = parameters(&self.parameter)?;
        values.extend(file_parameters(&connection.source, &self.parameter_file, template).await?);
        let container = self.files_container.as_deref();
        let (mut bundle, original) =
            gathered(connection, template, &self.environment, container, &values, self.software).await?;
        if let Some(original) = original {
            keep(&mut bundle, original);
        }
        Ok(StackRequest {
            bundle,
            parameters: values,
            timeout_mins: self.timeout,
            tags: self.tags.clone(),
            ..StackRequest::default()
        })
    }
}

impl Content {
    /// Adds the command that continues with corrected files to the failure of an operation.
    fn again(&self, failure: Failure, end: &End, template: Option<&str>, stack: &str) -> Failure {
        let Some(template) = template.filter(|_| end.status.ends_with("_FAILED") && end.superseded.is_none()) else {
            return failure;
        };
        let environments = self.environment.iter().map(|name| format!("-e {name}"));
        let parameters = self.parameter.iter().map(|given| format!("--parameter {}", key_of(given)));
        let options: Vec<String> =
            std::iter::once(format!("-t {template}")).chain(environments).chain(parameters).collect();
        let options = options.join(" ");
        failure.hint(format!("to correct the template, change it and run 'kiln stack update {options} {stack}'"))
    }
}

/// `key=…`: the value of a parameter may be a secret.
fn key_of(given: &str) -> String {
    format!("{}=…", given.split('=').next().unwrap_or_default())
}

/// The content of a request, with its files or with the container that has them. Blueprints, plans and service templates
/// are lowered, with the values that were given for their inputs.
pub(crate) async fn read(
    connection: &Connection,
    template: Option<&str>,
    environments: &[String],
    container: Option<&str>,
    given: &Map,
    software: Option<Software>,
) -> Outcome<Bundle> {
    Ok(gathered(connection, template, environments, container, given, software).await?.0)
}

/// The same, with the document or package that was lowered.
async fn gathered(
    connection: &Connection,
    template: Option<&str>,
    environments: &[String],
    container: Option<&str>,
    given: &Map,
    software: Option<Software>,
) -> Outcome<(Bundle, Option<Vec<u8>>)> {
    let by = Lowering {
        source: &connection.source,
        settings: &connection.settings,
        service: Some(&connection.client),
        software,
    };
    if let Some(name) = template
        && let Some(made) = topology::read(&by, name, environments, given).await?
    {
        if container.is_some() {
            return Err(Failure::new("--files-container is not supported for blueprints, CAMP, TOSCA and packages"));
        }
        return Ok((made.bundle, made.original));
    }
    let bundle = match container {
        Some(container) => Bundle::in_container(&connection.source, template, environments, container).await?,
        None => Bundle::read(&connection.source, template, environments).await?,
    };
    Ok((bundle, None))
}

/// Adds what was lowered to the files of the stack.
fn keep(bundle: &mut Bundle, original: Vec<u8>) {
    if original.len() > MOST_KEPT {
        anstream::eprintln!("warning: the original is larger than 512 KiB, so it is not stored with the stack");
    } else if let Some(template) = &bundle.template {
        let entry = Original::new(original).to_file(template);
        bundle.files.insert(FILE.to_owned(), entry.into());
    }
}

/// `stack create`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln stack create -t web.yaml --parameter flavor=m1.small --wait web
  kiln stack create -t web.yaml -e production.yaml --enable-rollback web
  kiln stack create -t tosca.yaml --parameter web_image=cirros web
  kiln stack create -t web.yaml --dry-run web        show what would be created
  kiln --local stack create -t web.yaml web          without a service")]
pub(crate) struct CreateArgs {
    /// Name of the stack
    #[arg(value_name = "STACK-NAME")]
    pub(super) name: String,
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE")]
    template: String,
    #[command(flatten)]
    content: Content,
    /// Roll back if the create fails: delete the created resources
    #[arg(long)]
    enable_rollback: bool,
    /// Check quotas, names, addresses and so on in the cloud before the operation begins; it fails if it could not succeed
    #[arg(long)]
    preflight: bool,
    /// Set a pre-create hook on this resource; use 'nested/inner' for nested stacks; may be repeated
    #[arg(long, value_name = "RESOURCE")]
    pre_create: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    page: OpenArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CreateArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let mut request = self.content.request(connection, Some(&self.template)).await?;
        request.bundle.set_hooks(&self.pre_create, "pre-create");
        request.disable_rollback = Some(!self.enable_rollback);
        request.preflight = self.preflight;
        if self.dry_run.dry_run {
            return self.planned(connection, &request).await;
        }
        let waits = self.wait.waits(connection);
        // The resources of nested stacks are only in the preview. If it fails, the create says why, or the progress has no
        // total.
        let planned = if waits && self.wait.shows_counts() && request.bundle.may_nest() {
            connection.client.preview_stack(&self.name, &request).await.ok()
        } else {
            None
        };
        let planned = planned.map(|(stack, changes)| planned_resources(&stack, changes.as_ref()));
        let id = connection.client.create_stack(&self.name, &request).await;
        let id = judged(connection, &request, id).await?;
        self.page.open(connection, &id).await;
        if waits {
            let target = Target::created(&self.name, &id).planned(planned);
            let end = self.wait.follow(connection, target, self.enable_rollback).await?;
            let ended = ended(&self.name, &end, "CREATE");
            ended.map_err(|failure| self.content.again(failure, &end, Some(&self.template), &self.name))?;
        }
        show::short(connection, &id, &self.output, waits).await
    }
}

impl CreateArgs {
    /// Shows the plan, or in another format than text the preview as Heat has it, with the changes.
    async fn planned(&self, connection: &Connection, request: &StackRequest) -> Outcome {
        let client = &connection.client;
        if self.output.format.is_some() {
            let previewed = client.preview_planned_stack(&self.name, request).await;
            let (stack, planned) = judged(connection, request, previewed).await?;
            let Some((changes, plan)) = planned else {
                return plan::show_preview(&stack, &self.output, self.dry_run.detailed_exitcode);
            };
            let mut shown = preview_of_heat(&stack);
            shown.push(output_changes(changes));
            shown.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.output.one(shown, Format::Table)?;
            return plan::ended(&plan, self.dry_run.detailed_exitcode);
        }
        let planned = client.plan_create(&self.name, request).await;
        match judged(connection, request, planned).await? {
            PlannedCreate::Plan(plan) => {
                plan::show(&plan)?;
                plan::ended(&plan, self.dry_run.detailed_exitcode)
            }
            PlannedCreate::Preview(stack) => plan::show_preview(&stack, &self.output, self.dry_run.detailed_exitcode),
        }
    }
}

/// The number of resources in the preview of a create. Heat lists nested stacks as lists, without the resources that own
/// them.
fn planned_resources(stack: &Stack, changes: Option<&Changes>) -> usize {
    fn count(list: &Value) -> usize {
        let of = |item: &Value| 1 + if item.as_list().is_some() { count(item) } else { 0 };
        list.as_list().into_iter().flatten().map(of).sum()
    }
    match changes {
        Some(changes) => changes.resources.values().map(count).sum(),
        None => stack.entries().and_then(|entries| entries.get("resources")).map_or(0, count),
    }
}

/// An answer of the service; its errors are shown in the files of the request.
async fn judged<T>(connection: &Connection, request: &StackRequest, answer: Result<T, Error>) -> Outcome<T> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(refused(connection, &request.bundle, &request.parameters, error).await),
    }
}

/// A plan in place of the change.
#[derive(Args, Clone, Copy, Debug)]
struct DryRunArgs {
    /// Show what would change, without changing it
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run, exit with 0 if nothing would change, 2 if something would, 5 if something would be lost, 1 after
    /// an error, and 4 if the service is not reachable
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
}

/// The column with the outputs that change.
fn output_changes(changes: Changes) -> (String, Cell) {
    ("output_changes".to_owned(), Cell::with(changes.outputs, Look::Json))
}

/// The columns of a preview, sorted by name as `openstack stack create --dry-run` shows them.
pub(super) fn preview_of_heat(stack: &Stack) -> One {
    let mut one: One = Vec::new();
    for (name, value) in stack.entries().into_iter().flatten() {
        let look = match name.as_str() {
            "description" | "template_description" | "stack_status_reason" => Look::Wrapped,
            "parameters" | "outputs" | "resources" => Look::Json,
            "links" => Look::Links,
            _ => Look::Plain,
        };
        one.push((name.clone(), Cell::with(value, look)));
    }
    one.sort_by(|(a, _), (b, _)| a.cmp(b));
    one
}

/// How an update changes the rollback setting of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rollback {
    /// Roll back if an update fails.
    Enabled,
    /// Do not roll back.
    Disabled,
    /// Keep the current setting.
    Keep,
}

/// The new content of a stack that exists.
#[derive(Args, Debug, Default)]
pub(super) struct Changed {
    #[command(flatten)]
    content: Content,
    /// Reuse the current template, environment and parameters of the stack
    #[arg(long)]
    pub(super) existing: bool,
    /// The revision that stands for the current template, environment and parameters
    #[arg(skip)]
    pub(super) revision: Option<String>,
    /// Reset a parameter to its default, with --existing; may be repeated
    #[arg(long, value_name = "PARAMETER")]
    clear_parameter: Vec<String>,
    /// Detect drift from the actual resources and repair it; names get the objects that they mean now
    #[arg(long)]
    converge: bool,
}

/// `stack update`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln stack update -t web.yaml --wait web
  kiln stack update --existing --parameter flavor=m1.large web    change only this parameter
  kiln stack update -t web.yaml --dry-run web                     show the planned changes")]
pub(crate) struct UpdateArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    pub(super) stack: String,
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE", required_unless_present = "existing")]
    template: Option<String>,
    #[command(flatten)]
    changed: Changed,
    /// Rollback if the update fails
    #[arg(long, value_enum, value_name = "HOW", default_value = "keep")]
    rollback: Rollback,
    /// Check quotas, names, addresses and so on in the cloud before the operation begins; it fails if it could not succeed
    #[arg(long)]
    preflight: bool,
    /// Set a pre-update hook on this resource; may be repeated
    #[arg(long, value_name = "RESOURCE")]
    pre_update: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    dry_run: DryRunArgs,
    /// Include nested stacks, with --dry-run
    #[arg(long, requires = "dry_run")]
    show_nested: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    page: OpenArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl UpdateArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let mut request = self.changed.request(connection, self.template.as_deref()).await?;
        request.bundle.set_hooks(&self.pre_update, "pre-update");
        request.preflight = self.preflight;
        request.disable_rollback = match self.rollback {
            Rollback::Enabled => Some(false),
            Rollback::Disabled => Some(true),
            Rollback::Keep => None,
        };
        let client = &connection.client;
        self.changed.check_parameters(client, &self.stack, &request).await?;
        if self.dry_run.dry_run {
            return self.planned(connection, &request).await;
        }
        if self.confirm.is_needed() {
            request.if_version = self.confirmed(connection, &request).await?;
        }
        let waits = self.wait.waits(connection);
        let watched = if waits {
            Some(Target::existing(client, &self.stack, true).await.map_err(of_stack(&self.stack))?)
        } else {
            None
        };
        let answer = client.update_stack(&self.stack, &request).await;
        self.changed.judged(connection, &self.stack, &request, answer).await?;
        self.page.open(connection, &self.stack).await;
        if let Some(target) = watched {
            let end = self.wait.follow(connection, target, self.rollback != Rollback::Disabled).await?;
            let ended = ended(&self.stack, &end, "UPDATE");
            let again = |failure| self.changed.content.again(failure, &end, self.template.as_deref(), &self.stack);
            ended.map_err(again)?;
        }
        show::short(connection, &self.stack, &self.output, waits).await
    }

    /// Shows the plan, or in another format than text the lists as Heat has them, with the outputs that change.
    async fn planned(&self, connection: &Connection, request: &StackRequest) -> Outcome {
        let client = &connection.client;
        if self.output.format.is_some() {
            let planned = client.preview_planned_update(&self.stack, request, self.show_nested).await;
            let (changes, plan) = self.changed.judged(connection, &self.stack, request, planned).await?;
            let lists = changes.resources.iter().map(|(name, list)| (name.clone(), Cell::with(list, Look::Json)));
            let mut lists: One = lists.collect();
            lists.push(output_changes(changes));
            lists.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.output.one(lists, Format::Table)?;
            return plan::ended(&plan, self.dry_run.detailed_exitcode);
        }
        let plan = client.plan_update(&self.stack, request, &[], false).await;
        let plan = self.changed.judged(connection, &self.stack, request, plan).await?;
        plan::show(&plan)?;
        plan::ended(&plan, self.dry_run.detailed_exitcode)
    }

    /// Shows the plan and asks for confirmation if resources are replaced or deleted, or something is lost; the version of
    /// the stack that the plan belongs to.
    async fn confirmed(&self, connection: &Connection, request: &StackRequest) -> Outcome<Option<String>> {
        let plan = connection.client.plan_update(&self.stack, request, &[], false).await;
        let plan = self.changed.judged(connection, &self.stack, request, plan).await?;
        plan::refuse_failing(&plan)?;
        if Plan::of(&plan).destroyed() > 0 {
            plan::ask_about(&plan);
            self.confirm.confirm("Some resources will be replaced or deleted. Update the stack [y/N]? ").await?;
        }
        Ok(plan.version)
    }
}

impl Changed {
    /// The request of an update, with the template if there is a new one.
    pub(super) async fn request(&self, connection: &Connection, template: Option<&str>) -> Outcome<StackRequest> {
        Ok(StackRequest {
            existing: self.existing,
            revision: self.revision.clone(),
            clear_parameters: self.clear_parameter.clone(),
            converge: if self.converge { true.into() } else { Value::Null },
            ..self.content.request(connection, template).await?
        })
    }

    /// With `--existing`, the service ignores parameters that the template does not declare, as Heat does.
    pub(super) async fn check_parameters(&self, client: &Client, stack: &str, request: &StackRequest) -> Outcome {
        if !self.existing {
            return Ok(());
        }
        let current = match request.bundle.template {
            Some(_) => None,
            None => Some(client.stack_template(stack).await.map_err(of_stack(stack))?),
        };
        let Some(template) = request.bundle.template.as_ref().or(current.as_ref()) else { return Ok(()) };
        let declared = ["parameters", "Parameters"].iter().find_map(|section| template.get(section)?.as_map());
        let is_declared = |name: &str| declared.is_some_and(|all| all.contains_key(name)) || name.contains("::");
        let given = request.bundle.environment.get("parameters").and_then(Value::as_map);
        let names = given.into_iter().flat_map(Map::keys).chain(request.parameters.keys());
        let unknown = names.filter(|name| !is_declared(name)).map(|name| {
            let near = nearest(name, declared.into_iter().flat_map(Map::keys).map(String::as_str));
            ErrorLocation {
                message: format!("The Parameter ({name}) was not defined in template."),
                path: format!("parameters.{name}"),
                parameter: Some(name.clone()),
                hints: near.map(|near| format!("did you mean {near}?")).into_iter().collect(),
                ..ErrorLocation::default()
            }
        });
        let unknown: Vec<ErrorLocation> = unknown.collect();
        let Some(first) = unknown.first() else { return Ok(()) };
        let sent = Sent { bundle: &request.bundle, given: &request.parameters, catalog: None };
        Err(Failure::new(first.message.clone()).and(unknown).in_files(sent))
    }

    /// An answer of the service; its errors are shown in the files of the request.
    pub(super) async fn judged<T>(
        &self,
        connection: &Connection,
        stack: &str,
        request: &StackRequest,
        answer: Result<T, Error>,
    ) -> Outcome<T> {
        match answer {
            Err(error) if error.is_not_found() => Err(of_stack(stack)(error)),
            // The environments and parameters of earlier requests count only with --existing.
            Err(error) if !self.existing && error.class() == Some(&Class::UserParameterMissing) => {
                let failure = refused(connection, &request.bundle, &request.parameters, error).await;
                Err(failure.hint(
                    "an update replaces all parameters: repeat the -e and --parameter of before, or use --existing to keep \
                     their values",
                ))
            }
            Err(error) if request.if_version.is_some() && error.status() == Some(409) => {
                Err(Failure::from(error).hint("run the command again to see the current plan"))
            }
            answer => judged(connection, request, answer).await,
        }
    }
}
