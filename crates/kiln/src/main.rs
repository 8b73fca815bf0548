//! Kiln: OpenStack Orchestration in one binary.

mod cli;
mod clouds;
mod commands;
mod config;
mod connect;
mod failure;
mod in_process;
mod ini;
mod logging;
mod output;
mod progress;
mod runtime;
mod shutdown;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let service = matches!(cli.command, Command::Serve(_) | Command::Api(_) | Command::Engine(_));
    logging::start(&cli.global.log, service);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("cannot start: {error}")).report(),
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(cli: Cli) -> Outcome {
    let global = &cli.global;
    match cli.command {
        Command::Stack(command) => {
            let connection = Connection::open(global).await?;
            let outcome = command.run(&connection).await;
            {
                let closed = connection.close().await;
                outcome.and(closed)
            }
        }
        Command::Template(command) => command.run(global).await,
        Command::ResourceType(command) => {
            let connection = Connection::open(global).await?;
            let outcome = command.run(&connection).await;
            {
                let closed = connection.close().await;
                outcome.and(closed)
            }
        }
        Command::Serve(args) => args.run(commands::serve::Role::Both).await,
        Command::Api(args) => args.run(commands::serve::Role::Api).await,
        Command::Engine(args) => args.run().await,
        Command::Manage(command) => command.run().await,
        Command::Demo(args) => args.run().await,
        Command::Completion(args) => {
            args.run();
            Ok(())
        }
    }
}
