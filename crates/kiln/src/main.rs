//! Kiln: OpenStack Orchestration in a single binary.
// The layout of nested futures of databases and clients is deeper than the default of 128.
#![recursion_limit = "256"]

mod cli;
mod commands;
mod connect;
mod exit_code;
mod failure;
mod intents;
mod mistakes;
mod topology;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::cli::{Cli, Command, Global};
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::completion::answer();
    let parsed = cli::command().try_get_matches_from(arguments(std::env::args_os()));
    let cli = parsed.and_then(|given| Cli::from_arg_matches(&given)).unwrap_or_else(|error| intents::refused(error));
    let has_own_log = matches!(
        cli.command,
        Command::Serve(_)
            | Command::Api(_)
            | Command::Engine(_)
            | Command::HeatManage(_)
            | Command::HeatKeystoneSetupDomain(_)
    );
    if !has_own_log {
        kiln_telemetry::logging::of_command(&cli.global.log);
    }
    let threads = kiln_stack::threads();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("cannot start: {error}")).report(),
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The arguments; a program with the name of one of Heat's is that command.
fn arguments(mut given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let program = given.next().unwrap_or_default();
    let command: &[&str] = match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some("heat-manage") => &["heat-manage"],
        Some("heat-status") => &["heat-status"],
        Some("heat-keystone-setup-domain") => &["heat-keystone-setup-domain"],
        _ => &[],
    };
    std::iter::once("kiln".into()).chain(command.iter().map(OsString::from)).chain(given).collect()
}

async fn run(cli: Cli) -> Outcome {
    let global = &cli.global;
    if matches!(cli.command, Command::Serve(_) | Command::Api(_) | Command::Engine(_)) {
        global.refuse_for_service()?;
    }
    match cli.command {
        Command::Stack(command) => {
            let need = if command.creates() { Need::Any } else { Need::Stacks };
            let changed = command.changed().join(" ");
            connected(global, need, &changed, async |connection| command.run(connection).await).await
        }
        Command::Plan(command) => {
            connected(global, Need::Stacks, "", async |connection| command.run(connection).await).await
        }
        Command::Guard(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        Command::Drift(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        Command::Quota(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        Command::Webhook(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        Command::Import(command) => {
            let changed = command.changed().to_owned();
            connected(global, Need::Any, &changed, async |connection| command.run(connection).await).await
        }
        Command::Template(command) => command.run(global).await,
        Command::ResourceType(command) => {
            connected(global, Need::Nothing, "", async |connection| command.run(connection).await).await
        }
        Command::Software(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        Command::Orphan(command) => {
            connected(global, Need::Any, "", async |connection| command.run(connection).await).await
        }
        // It ends with Ctrl-C, which interrupts nothing.
        Command::Dashboard(args) => {
            let connection = Connection::open(global, Need::Any).await?;
            args.run(global, &connection).await?;
            connection.close().await
        }
        Command::Serve(args) => Box::pin(args.run(commands::serve::Role::Both, &global.log)).await,
        Command::Api(args) => Box::pin(args.run(commands::serve::Role::Api, &global.log)).await,
        Command::Engine(args) => Box::pin(args.run(&global.log)).await,
        Command::Manage(command) => command.run(global).await,
        Command::HeatManage(args) => Box::pin(args.run(&global.log)).await.map_err(Failure::printed_as_heat),
        Command::HeatStatus(args) => Box::pin(args.run()).await.map_err(Failure::printed_as_heat),
        Command::HeatKeystoneSetupDomain(args) => Box::pin(args.run(global)).await.map_err(Failure::printed_as_heat),
        Command::Config(command) => command.run(global).await,
        Command::Demo(args) => Box::pin(args.run()).await,
        Command::Testcloud(args) => args.run().await,
        Command::Lsp(args) => args.run(global).await,
        Command::Completion(args) => args.run(),
        Command::Man(args) => args.run(),
    }
}

/// Runs a command with a connection until it is done or the user interrupts it.
/// `changed` are the names of the stacks that it changes.
async fn connected(
    global: &Global,
    need: Need,
    changed: &str,
    work: impl AsyncFnOnce(&Connection) -> Outcome,
) -> Outcome {
    let connection = Connection::open(global, need).await?;
    let interrupted = || match (changed, connection.is_local()) {
        _ if commands::confirm::is_asking() => Failure::interrupted().hint("nothing was changed"),
        ("", _) => Failure::interrupted(),
        (_, true) => Failure::interrupted()
            .hint(format!("the operation is not finished: run 'kiln stack wait {changed}' to continue it")),
        (_, false) => Failure::interrupted()
            .hint(format!("the service continues the operation: run 'kiln stack wait {changed}' to wait for it")),
    };
    let outcome = tokio::select! {
        outcome = work(&connection) => outcome,
        () = kiln_server::shutdown::signal() => Err(interrupted()),
    };
    let closed = connection.close().await;
    outcome.and(closed).map_err(|failure| failure.repeating(&global.repeated()))
}
