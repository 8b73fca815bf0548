//! `kiln software …`: configs and deployments for servers.

mod config;
mod deploy;
mod deployment;

use clap::Args;
use kiln_client::Error;

use super::confirm::ConfirmArgs;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for software configs and deployments.
    SoftwareCommand {
        /// Create, list, show and delete software configs
        #[command(subcommand)]
        Config(config::ConfigCommand),
        /// Create, list, show and delete software deployments
        #[command(subcommand)]
        Deployment(deployment::DeploymentCommand),
    }
}

/// IDs of configs or deployments.
#[derive(Args, Debug)]
struct IdsArg {
    /// IDs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl IdsArg {
    /// Deletes each of the objects; the question names them.
    async fn delete(&self, objects: &str, what: &str, call: impl AsyncFn(&str) -> Result<(), Error>) -> Outcome {
        self.confirm.if_demanded(&format!("Are you sure you want to delete these {objects} [y/N]? ")).await?;
        for id in &self.ids {
            call(id).await.map_err(missing(what, id))?;
        }
        Ok(())
    }
}

fn missing<'a>(what: &'a str, id: &'a str) -> impl Fn(Error) -> Failure + 'a {
    move |error| if error.is_not_found() { Failure::new(format!("{what} not found: {id}")) } else { error.into() }
}
