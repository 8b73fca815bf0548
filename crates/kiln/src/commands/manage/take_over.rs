//! `kiln manage take-over …`: the stacks of a Heat come under Kiln.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use kiln_config::check::Finding as Setting;
use kiln_config::options::kiln::HEAT_API_URL;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{Cell, Format, List, OutputArgs, json_text, print};
use kiln_console::page::report;
use kiln_server::database;
use kiln_server::take_over::{Heat, cloud_check};
use kiln_store::{HeatFence, SqlStore, Store as _};
use kiln_take_over::{
    CloudFindings, Comparison, Converter, Finding, Finish, HeatDatabase, Import, Imported, Inventory, Outcome,
    Returned, Selection, Switch, Switched, compare, inventory, reasons,
};
use kiln_value::{Map, Value, value};

use crate::cli::Global;
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::commands::stack::write_page;
use crate::failure::{Failure, Outcome as Done};

group! {
    /// `manage take-over …`.
    TakeOverCommand with Global {
        Inventory(InventoryArgs),
        Import(ImportArgs),
        Compare(CompareArgs),
        Switch(SwitchArgs),
        Status(StatusArgs),
        Drop(DropArgs),
        Finish(FinishArgs),
    }
}

/// The Heat, and which of its stacks.
#[derive(Args, Debug)]
struct HeatArgs {
    /// Configuration file of Heat, as it is: for its database, its key and its trustee
    #[arg(long, value_name = "FILE", default_value = "/etc/heat/heat.conf")]
    heat_config: PathBuf,
    /// Only the stacks of this project
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only the stack with this name or ID
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
}

impl HeatArgs {
    fn selection(&self) -> Selection {
        Selection { project: self.project.clone(), stack: self.stack.clone() }
    }
}

/// The Heat with this configuration file.
async fn open(heat_config: &Path) -> Done<Heat> {
    let heat = Heat::open(heat_config).await?;
    let release = failing(heat.database.release().await)?;
    if !release.is_supported() {
        return Err(Failure::new(format!("{}: the database has {release}", heat_config.display())));
    }
    if heat.has_public_key {
        eprintln!(
            "Heat encrypts with its default key, which is public: who can read its database can read all its secrets."
        );
    }
    Ok(heat)
}

/// Where a report for browsers is written.
#[derive(Args, Debug)]
struct PageArg {
    /// Also write a report to this file, as a page for browsers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl PageArg {
    /// Writes a report with its time.
    fn write(&self, title: &str, verdict: &str, tables: &[(&str, &List)]) -> Done {
        let Some(file) = &self.html else { return Ok(()) };
        let now = kiln_server::runtime::now().strftime("%Y-%m-%d %H:%M UTC");
        let text = format!("{verdict} {now}, Kiln {}.", env!("CARGO_PKG_VERSION"));
        write_page(file, &report(title, &text, tables))
    }
}

/// A Heat and a Kiln, to import from one into the other.
struct Both {
    heat: HeatDatabase,
    converter: Converter,
    store: SqlStore,
    /// Whether Heat encrypts parameters and properties.
    encrypts: bool,
}

impl Both {
    /// `events`: at most so many of each stack with its nested stacks; 0: all.
    async fn open(heat: Heat, config: &ConfigArgs, events: usize) -> Done<Self> {
        let config = Config::load(config)?;
        let encrypts = heat.encrypts;
        let (heat, converter) = heat.for_importing(&config, events).await?;
        let store = database::open_with(database::options(&config).await?).await?;
        Ok(Self { heat, converter, store, encrypts })
    }

    fn import(&self, dry_run: bool) -> Import<'_> {
        Import { heat: &self.heat, converter: &self.converter, store: &self.store, dry_run }
    }
}

fn failing<T>(result: Result<T, kiln_store::Error>) -> Done<T> {
    result.map_err(|error| Failure::new(kiln_value::Chain(&error).to_string()))
}

/// Show what is in a Heat, and what stands in the way of its take-over
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Reads the database of Heat, converts each stack with its nested stacks as an import does, and prints what was \
found: stacks in progress, types and templates that Kiln does not accept, data that the key does not decrypt, \
names that are not unique. It also plans an update of each stack with its own template, which should change \
nothing. Heat may run meanwhile. Exits with 1 if a stack cannot be taken over.

At the end are the settings of Heat that Kiln does not have: options without an effect, options that have another value in \
Kiln's configuration, and entries of the policy and of environment_dir.

Examples:
  kiln manage take-over inventory --heat-config heat.conf
  kiln manage take-over inventory --heat-config heat.conf --project 1f2e -f json")]
pub(crate) struct InventoryArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    heat: HeatArgs,
    #[command(flatten)]
    page: PageArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl InventoryArgs {
    async fn run(self, _: &Global) -> Done {
        let heat = open(&self.heat.heat_config).await?;
        let config = Config::load(&self.config)?;
        let settings = heat.settings(&config);
        let (database, converter) = heat.for_reading(&config).await?;
        let found = failing(Box::pin(inventory(&database, &converter, &self.heat.selection(), progress)).await)?;
        let (ready, all) =
            found.projects.values().fold((0, 0), |(ready, all), one| (ready + one.ready, all + one.stacks));
        let verdict = format!("{ready} of {all} stacks can be taken over. Release of Heat: {}.", found.release);
        let projects = summary(&found);
        let (findings, differing) = (findings(&found), differing(&settings));
        let tables = [("Projects", &projects), ("Findings", &findings), ("Settings", &differing)];
        self.page.write("Inventory of a Heat", &verdict, &tables)?;
        if self.output.format == Some(Format::Json) {
            print(&format!("{}\n", json_text(&document(&found, &settings))))?;
        } else {
            self.output.list(projects, Format::Table)?;
            for (id, name, finding) in found.projects.values().flat_map(|project| &project.findings) {
                print(&line(name, id, finding))?;
            }
            for setting in &settings {
                print(&format!("{setting}\n"))?;
            }
        }
        if found.is_ready() {
            return Ok(());
        }
        Err(Failure::new(format!("{} of {all} stacks cannot be taken over", all - ready)))
    }
}

/// One row for each project.
fn summary(found: &Inventory) -> List {
    let columns =
        ["Project", "Stacks", "Nested", "Resources", "Events", "Ready", "Unchanged"].map(str::to_owned).to_vec();
    let row = |(project, one): (&String, &kiln_take_over::ProjectInventory)| -> Vec<Cell> {
        let counts = [one.stacks, one.nested, one.resources, one.events, one.ready, one.unchanged];
        let counts = counts.into_iter().map(|count| Cell::from(Value::from(count)));
        std::iter::once(Cell::from(project.as_str())).chain(counts).collect()
    };
    List { columns, rows: found.projects.iter().map(row).collect() }
}

/// One row for each finding.
fn findings(found: &Inventory) -> List {
    let columns = ["Stack", "ID", "Project", "Place", "Grade", "Finding", "Hint"].map(str::to_owned).to_vec();
    let row = |project: &str, (id, name, finding): &(String, String, Finding)| -> Vec<Cell> {
        let grade = finding.grade.to_string();
        [name, id, project, &finding.place, &grade, &finding.what, &finding.hint].map(Cell::from).to_vec()
    };
    let rows =
        found.projects.iter().flat_map(|(project, one)| one.findings.iter().map(move |found| row(project, found)));
    List { columns, rows: rows.collect() }
}

/// One row for each setting of Heat that Kiln does not have.
fn differing(settings: &[Setting]) -> List {
    List {
        columns: vec!["Setting".to_owned()],
        rows: settings.iter().map(|setting| vec![Cell::from(setting.to_string().as_str())]).collect(),
    }
}

fn line(name: &str, id: &str, finding: &Finding) -> String {
    format!("{:<7} {name} ({id}): {finding}\n{:<7} hint: {}\n", finding.grade.to_string(), "", finding.hint)
}

fn document(found: &Inventory, settings: &[Setting]) -> Value {
    let projects: Map = found
        .projects
        .iter()
        .map(|(project, one)| {
            let findings: Vec<Value> = one
                .findings
                .iter()
                .map(|(id, name, finding)| {
                    value!({
                        "stack_id": id, "stack": name, "place": (&finding.place), "grade": (finding.grade.to_string()),
                        "what": (&finding.what), "hint": (&finding.hint),
                    })
                })
                .collect();
            let project = project.clone();
            let counts = value!({
                "stacks": (one.stacks), "nested": (one.nested), "resources": (one.resources), "events": (one.events),
                "ready": (one.ready), "unchanged": (one.unchanged), "findings": findings,
            });
            (project, counts)
        })
        .collect();
    let settings: Vec<Value> = settings.iter().map(Setting::value).collect();
    value!({ "release": (found.release.to_string()), "projects": projects, "settings": settings })
}

/// Import stacks of Heat; they belong to Heat until their project is switched
#[derive(Args, Debug)]
#[command(add = Effect::Changes("what it writes can be dropped again; Heat's tables and the cloud are only read"))]
#[command(after_help = "\
Writes the stacks with their resources, events, snapshots, software configs and credentials into Kiln's tables, \
each stack with its nested stacks in one transaction. Nobody sees an imported stack in Kiln, and no engine works \
on it: it belongs to Heat. Heat's tables are only read, and Heat may go on. A second import reads what has changed \
since; one that was interrupted goes on. With --follow it goes on by itself, so that a switch finds little to do. The \
database of Kiln may be that of Heat.

Examples:
  kiln manage take-over import --heat-config heat.conf --config-file kiln.conf --dry-run
  kiln manage take-over import --heat-config heat.conf --config-file kiln.conf
  kiln manage take-over import --heat-config heat.conf --config-file kiln.conf --stack web
  kiln manage take-over import --heat-config heat.conf --config-file kiln.conf --follow")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    heat: HeatArgs,
    /// Write nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on until Ctrl-C: read Heat again after so many seconds, and import what has changed
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60", conflicts_with = "dry_run")]
    follow: Option<u64>,
    /// Import at most this many of the newest events of each stack with its nested stacks; 0: all
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    events: usize,
    #[command(flatten)]
    output: OutputArgs,
}

impl ImportArgs {
    async fn run(self, _: &Global) -> Done {
        let both = Both::open(open(&self.heat.heat_config).await?, &self.config, self.events).await?;
        let import = both.import(self.dry_run);
        let mut rows: Vec<Imported> = Vec::new();
        let only = self.heat.selection();
        if let Some(seconds) = self.follow {
            return follow(&import, &only, std::time::Duration::from_secs(seconds)).await;
        }
        let run = import.run(&only, |imported, done, all| {
            progress(done, all);
            rows.push(imported);
        });
        failing(Box::pin(run).await)?;
        let refused = rows.iter().filter(|one| one.outcome == Outcome::Refused).count();
        let columns = ["ID", "Stack Name", "Project", "Stacks", "Result", "Reason"].map(str::to_owned).to_vec();
        let row = |one: &Imported| -> Vec<Cell> {
            vec![
                one.tree.root.as_str().into(),
                one.tree.name.as_str().into(),
                one.tree.project.as_str().into(),
                Value::from(one.tree.ids.len()).into(),
                one.outcome.as_str().into(),
                reasons(&one.findings).as_str().into(),
            ]
        };
        self.output.list(List { columns, rows: rows.iter().map(row).collect() }, Format::Table)?;
        if refused == 0 {
            return Ok(());
        }
        let failure = Failure::new(format!("{refused} of {} stacks were not imported", rows.len()));
        Err(failure.hint("kiln manage take-over inventory says what to do about each"))
    }
}

/// Imports again and again, and prints a line for each stack that has changed.
async fn follow(import: &Import<'_>, only: &Selection, interval: std::time::Duration) -> Done {
    let (_sender, stop) = kiln_server::shutdown::on_signal();
    let mut told: HashMap<String, Outcome> = HashMap::new();
    loop {
        let begun = failing(import.store.now().await)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut changed: Vec<String> = Vec::new();
        let run = import.run(only, |one, _, _| {
            // A stack that is refused is read again each time.
            let is_told = told.insert(one.tree.root.clone(), one.outcome) == Some(one.outcome);
            if one.outcome == Outcome::Unchanged || (one.outcome != Outcome::Imported && is_told) {
                return;
            }
            let mut why = reasons(&one.findings);
            if !why.is_empty() {
                why.insert_str(0, ": ");
            }
            changed.push(format!("{begun}  {:<9} {} ({}){why}\n", one.outcome.as_str(), one.tree.name, one.tree.root));
        });
        failing(Box::pin(run).await)?;
        print(&changed.concat())?;
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = kiln_server::shutdown::stopped(stop.clone()) => return Ok(()),
        }
    }
}

/// Give the stacks of a project to Kiln, or back to Heat
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
Imports what has changed since the last import, lets the tables of Heat refuse all changes of the project (by \
triggers, also if an engine of Heat is started again), imports the rest, and gives the stacks to Kiln. If a stack \
cannot be imported, nothing is switched. From then on, requests for the project must reach Kiln. If Kiln stands before \
Heat ([kiln] heat_api_url), they do: they wait while the project is switched.

With --back, all stacks of the project belong to Heat, also those that Kiln has made. What Kiln has changed is \
written into Heat's tables, each stack with its nested stacks in one transaction; 'compare' says before what that \
would be, and what Heat cannot store. Refused while a stack is in progress. After an interruption, run the command \
again, or without --back to keep the stacks in Kiln.

With --rehearse, it imports what has changed, and says what would stop the switch and how long it would take while Heat \
changes nothing. No request waits, Heat's tables are not touched, and the stacks still belong to Heat.

Examples:
  kiln manage take-over switch --heat-config heat.conf --config-file kiln.conf --project 1f2e
  kiln manage take-over switch --heat-config heat.conf --config-file kiln.conf --project 1f2e --back")]
pub(crate) struct SwitchArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Configuration file of Heat, as it is: for its database, its key and its trustee
    #[arg(long, value_name = "FILE", default_value = "/etc/heat/heat.conf")]
    heat_config: PathBuf,
    /// The project; may be given several times
    #[arg(long, value_name = "ID", required = true)]
    project: Vec<String>,
    /// Give the stacks back to Heat
    #[arg(long)]
    back: bool,
    /// Say what would stop the switch and how long it would take, without switching
    #[arg(long, conflicts_with = "back")]
    rehearse: bool,
    /// Wait at most so many seconds for stacks that are in progress
    #[arg(long, value_name = "SECONDS", default_value_t = 0, conflicts_with = "back")]
    wait_timeout: u64,
    /// Import at most this many of the newest events of each stack with its nested stacks; 0: all
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    events: usize,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl SwitchArgs {
    async fn run(self, _: &Global) -> Done {
        if !self.rehearse {
            self.confirm.if_demanded("Give the stacks to another service [y/N]? ").await?;
        }
        let heat = open(&self.heat_config).await?;
        let fence = failing(HeatFence::open(&heat.options).await)?;
        let both = Both::open(heat, &self.config, self.events).await?;
        let patience = std::time::Duration::from_secs(self.wait_timeout);
        let switch = Switch { import: both.import(false), fence: &fence, encrypts: both.encrypts, patience };
        for project in &self.project {
            if self.back {
                give_back(&switch, project).await?;
                continue;
            }
            let switched = if self.rehearse {
                Box::pin(switch.rehearse(project)).await
            } else {
                Box::pin(switch.project(project)).await
            };
            match switched {
                Ok(Switched::Done { stacks, waited }) => {
                    let seconds = waited.as_secs_f64();
                    print(&if self.rehearse {
                        format!("Project {project}: {stacks} stacks can be switched, in about {seconds:.1} seconds.\n")
                    } else {
                        format!("Project {project}: {stacks} stacks belong to Kiln, after {seconds:.1} seconds.\n")
                    })?;
                }
                Ok(Switched::Refused(refused)) => {
                    for one in &refused {
                        for finding in &one.findings {
                            print(&line(&one.tree.name, &one.tree.root, finding))?;
                        }
                    }
                    let what = format!("project {project}: {} stacks could not be imported", refused.len());
                    return Err(Failure::new(what).hint("nothing was switched: Heat goes on with the project"));
                }
                Err(kiln_store::Error::NameTaken(_)) => {
                    let what = format!("project {project}: a stack of Kiln has the name of a stack of Heat");
                    return Err(Failure::new(what).hint("nothing was switched: delete or rename one of them"));
                }
                Err(error) => return Err(Failure::new(kiln_value::Chain(&error).to_string())),
            }
        }
        Ok(())
    }
}

/// Gives the stacks of a project to Heat.
async fn give_back(switch: &Switch<'_>, project: &str) -> Done {
    match Box::pin(switch.back(project)).await {
        Ok(Returned::Done(stacks)) => Ok(print(&format!("Project {project}: {stacks} stacks belong to Heat.\n"))?),
        Ok(Returned::Refused(refused)) => {
            for (record, findings) in &refused {
                for finding in findings {
                    print(&line(&record.name, &record.root.to_string(), finding))?;
                }
            }
            let what = format!("project {project}: Heat cannot store {} stacks as they are", refused.len());
            Err(Failure::new(what).hint("nothing was given back: Kiln goes on with the project"))
        }
        Err(kiln_store::Error::Changed(stack)) => {
            let failure = Failure::new(format!("project {project}: the stack {stack} is in progress"));
            Err(failure.hint("wait for its end, and run the command again"))
        }
        Err(error) => Err(Failure::new(kiln_value::Chain(&error).to_string())),
    }
}

/// Compare what Kiln has stored with Heat's tables, and say what could go back
#[derive(Args, Debug)]
#[command(add = Effect::Reads, visible_alias = "verify-back")]
#[command(after_help = "\
Converts the rows of Heat again and compares every field with Kiln's tables: of an imported stack nothing may \
differ, of a stack that belongs to Kiln it is what Kiln has changed since. For each stack it also says whether Heat \
could store it as it is now, which 'switch --back' needs. Nothing is written. Exits with 1 if an imported stack \
differs, a stack cannot go back, or the cloud refuses Kiln.

With --live, it also asks the cloud: whether the credentials of each stack work for Kiln, whether its objects are there \
and as stored, and whether Keystone knows the users and keys that send its signals. With [kiln] heat_api_url, it compares \
what clients read of each stack in both APIs. Nothing is changed in the cloud, and no signal is sent. It reads [kiln] \
drift_resources_per_second resources and answers in a second.

Examples:
  kiln manage take-over compare --heat-config heat.conf --config-file kiln.conf
  kiln manage take-over compare --heat-config heat.conf --config-file kiln.conf --stack web --live
  kiln manage take-over verify-back --heat-config heat.conf --config-file kiln.conf -f json")]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    heat: HeatArgs,
    /// Compare at most this many of the newest events of each stack with its nested stacks, as the import did; 0: all
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    events: usize,
    /// Ask the cloud about the credentials, objects and signals of each stack
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    page: PageArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl CompareArgs {
    async fn run(self, _: &Global) -> Done {
        let both = Both::open(open(&self.heat.heat_config).await?, &self.config, self.events).await?;
        let import = both.import(true);
        let mut rows: Vec<Comparison> = Vec::new();
        let only = self.heat.selection();
        let mut cloud =
            if self.live { Some(cloud_check(&Config::load(&self.config)?, &both.converter.types)?) } else { None };
        let run = compare(&import, both.encrypts, &only, cloud.as_mut(), |comparison, done, all| {
            progress(done, all);
            rows.push(comparison);
        });
        failing(Box::pin(run).await)?;
        let mut columns = vec!["ID", "Stack Name", "Project", "State", "Differences", "Can Go Back"];
        columns.extend(self.live.then_some("Live"));
        let row = |one: &Comparison| -> Vec<Cell> {
            let differences = one.differences.iter().map(|change| match change.place.as_str() {
                "" => change.what.clone(),
                place => format!("{place}: {}", change.what),
            });
            let reasons = reasons(&one.findings);
            let can = if reasons.is_empty() { "yes".to_owned() } else { format!("no: {reasons}") };
            let mut row: Vec<Cell> = vec![
                one.record.root.to_string().into(),
                one.record.name.as_str().into(),
                one.record.project.as_str().into(),
                one.record.state.as_str().into(),
                Value::from(differences.map(Value::from).collect::<Vec<Value>>()).into(),
                can.as_str().into(),
            ];
            row.extend(self.live.then(|| Cell::from(live(one.cloud.as_ref()))));
            row
        };
        let columns = columns.into_iter().map(str::to_owned).collect();
        let list = List { columns, rows: rows.iter().map(row).collect() };
        let wrong = rows.iter().filter(|one| !one.is_right()).count();
        let verdict = format!("{} stacks were compared, {wrong} of them need attention.", rows.len());
        self.page.write("Comparison of Heat and Kiln", &verdict, &[("Stacks", &list)])?;
        self.output.list(list, Format::Table)?;
        match wrong {
            0 => Ok(()),
            wrong if self.live => {
                let what =
                    format!("{wrong} of {} stacks differ, cannot go back, or are refused by the cloud", rows.len());
                Err(Failure::new(what))
            }
            wrong => Err(Failure::new(format!("{wrong} of {} stacks differ or cannot go back", rows.len()))),
        }
    }
}

/// What was asked of the cloud, and what it says.
fn live(cloud: Option<&CloudFindings>) -> Value {
    let Some(CloudFindings { findings, read, users, answers }) = cloud else { return Value::Null };
    let mut asked = format!("{read} objects read, {users} users and keys work");
    if *answers > 0 {
        write!(asked, ", {answers} answers of both APIs compared").ok();
    }
    std::iter::once(asked).chain(findings.iter().map(|finding| format!("{}: {finding}", finding.grade))).collect()
}

/// Show which stacks of Heat are imported, and which belong to Kiln
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Example:
  kiln manage take-over status --config-file kiln.conf")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only the stacks of this project
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

impl StatusArgs {
    async fn run(self, _: &Global) -> Done {
        let store = database::open_with(database::options(&Config::load(&self.config)?).await?).await?;
        let records = failing(store.take_overs(self.project.as_deref()).await)?;
        for project in failing(store.moving_projects().await)? {
            eprintln!(
                "note: requests for project {project} wait for the end of a switch; if none runs, run it again, or with --back"
            );
        }
        let columns = ["ID", "Stack Name", "Project", "State", "Time", "Reason"].map(str::to_owned).to_vec();
        let row = |record: &kiln_store::TakeOver| -> Vec<Cell> {
            vec![
                record.root.to_string().into(),
                record.name.as_str().into(),
                record.project.as_str().into(),
                record.state.as_str().into(),
                record.time.to_string().into(),
                record.reason.as_str().into(),
            ]
        };
        Ok(self.output.list(List { columns, rows: records.iter().map(row).collect() }, Format::Table)?)
    }
}

/// Remove imported stacks that still belong to Heat from Kiln's tables
#[derive(Args, Debug)]
#[command(add = Effect::Changes("an import writes the same again"))]
#[command(after_help = "\
Removes only what an import has written. Heat's tables, trusts, users and objects in the cloud stay as they are.

Example:
  kiln manage take-over drop --config-file kiln.conf")]
pub(crate) struct DropArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only the stacks of this project
    #[arg(long, value_name = "ID")]
    project: Option<String>,
}

impl DropArgs {
    async fn run(self, _: &Global) -> Done {
        let store = database::open_with(database::options(&Config::load(&self.config)?).await?).await?;
        let dropped = failing(store.drop_take_overs(self.project.as_deref()).await)?;
        Ok(print(&format!("Dropped {dropped} imported stacks.\n"))?)
    }
}

/// Drop the tables of Heat, after all stacks have come under Kiln; there is no way back afterwards
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
Without --drop-heat-tables, the command only says whether a stack still belongs to Heat, and changes nothing. With the name of \
Heat's database, it drops the tables of Heat, also what they have of deleted stacks, and the fence in the database; other \
tables, Kiln's too, stay. Stop all processes of Heat, and make a dump of the database first. After an interruption, run the \
command again.

Examples:
  kiln manage take-over finish --heat-config heat.conf --config-file kiln.conf
  kiln manage take-over finish --config-file kiln.conf --drop-heat-tables heat")]
pub(crate) struct FinishArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Configuration file of Heat, as it is: for its database
    #[arg(long, value_name = "FILE", default_value = "/etc/heat/heat.conf")]
    heat_config: PathBuf,
    /// Drop the tables of Heat; confirmed by the name of its database, for SQLite that of the file
    #[arg(long, value_name = "DATABASE")]
    drop_heat_tables: Option<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl FinishArgs {
    async fn run(self, _: &Global) -> Done {
        if self.drop_heat_tables.is_some() {
            self.confirm.if_demanded("Drop the tables of Heat [y/N]? ").await?;
        }
        let heat = Heat::open(&self.heat_config).await?;
        let fence = failing(HeatFence::open(&heat.options).await)?;
        let config = Config::load(&self.config)?;
        let store = database::open_with(database::options(&config).await?).await?;
        let finish = Finish { heat: &heat.database, fence: &fence, store: &store };
        let remaining = failing(finish.remaining().await)?;
        if !remaining.is_empty() {
            for (project, names) in &remaining {
                print(&format!("Project {project}: {}\n", names.join(", ")))?;
            }
            let count: usize = remaining.values().map(Vec::len).sum();
            let failure = Failure::new(format!("{count} stacks do not belong to Kiln; nothing was changed"));
            return Err(
                failure.hint("switch their projects, or delete the stacks in Heat; 'drop' removes imported ones")
            );
        }
        let name = database_name(&heat.options.url);
        match self.drop_heat_tables {
            None => Ok(print(&format!(
                "All stacks belong to Kiln. As long as the database {name} has the tables of Heat, they can go back. To drop the \
                 tables, make a dump, and run the command again with --drop-heat-tables {name}.\n"
            ))?),
            Some(_) if config.text(&HEAT_API_URL).is_some() => {
                let failure = Failure::new("Kiln passes requests on to Heat; nothing was changed");
                Err(failure.hint("remove [kiln] heat_api_url and heat_cfn_url, and restart Kiln"))
            }
            Some(given) if given != name => {
                Err(Failure::new(format!("Heat's database is {name}, not {given}; nothing was changed")))
            }
            Some(_) => {
                let stacks = failing(finish.run().await)?;
                Ok(print(&format!(
                    "The tables of Heat are dropped. {stacks} stacks that it had made belong to Kiln.\n"
                ))?)
            }
        }
    }
}

/// The name of the database of a URL; for SQLite, that of the file.
fn database_name(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

/// One line for each hundredth, on the terminal only.
fn progress(done: usize, all: usize) {
    use std::io::IsTerminal as _;
    let step = (all / 100).max(1);
    if done.is_multiple_of(step) && std::io::stderr().is_terminal() {
        eprint!("\r{done} of {all} stacks");
        if done == all {
            eprintln!();
        }
    }
}
