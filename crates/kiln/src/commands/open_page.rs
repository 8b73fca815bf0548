//! `--open`: the page of a stack in a browser, at the dashboard of the service.

use std::process::{Command, Stdio};

use clap::Args;

use crate::connect::Connection;
use crate::failure::Outcome;

/// Whether a command opens the page of its stack.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OpenArgs {
    /// Open the page of the stack in a browser, if the service has a dashboard
    #[arg(long)]
    open: bool,
}

impl OpenArgs {
    /// Opens the page of a stack if the option is given, or says how to see it. The page is no part of the result: the command
    /// has done its work.
    pub(crate) async fn open(self, connection: &Connection, stack: &str) {
        if !self.open {
            return;
        }
        let told = match page(connection, stack).await {
            Ok(Some(url)) if open(&url) => format!("The page of the stack: {url}"),
            Ok(Some(url)) => format!("No browser was found. Open {url}"),
            Ok(None) => {
                let local = if connection.is_local() { "--local " } else { "" };
                format!("The service has no dashboard. 'kiln {local}dashboard {stack}' shows the stack.")
            }
            Err(failure) => {
                _ = failure.report();
                "The page of the stack was not opened.".to_owned()
            }
        };
        eprintln!("{told}");
    }
}

/// The address of the page of a stack; `None`: the service has no dashboard.
async fn page(connection: &Connection, stack: &str) -> Outcome<Option<String>> {
    let Some(dashboard) = connection.dashboard().await? else { return Ok(None) };
    Ok(Some(format!("{dashboard}{}", connection.page_of(stack).await?)))
}

/// Starts the browser of the user; false: there is none.
pub(crate) fn open(url: &str) -> bool {
    let own = std::env::var("BROWSER").ok();
    let programs = own.iter().map(String::as_str).chain(["xdg-open", "open"]);
    for program in programs.filter(|program| !program.is_empty()) {
        let mut command = Command::new(program);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            return true;
        }
    }
    false
}
