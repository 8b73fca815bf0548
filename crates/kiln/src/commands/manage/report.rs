//! `kiln manage report`.

use clap::Args;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::print;
use kiln_server::report::{self, ReportedStacks};

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Place};
use crate::failure::{Failure, Outcome};

/// The value of `--service` without a URL.
const CATALOG: &str = "catalog";

/// Print what engines hold and do, or make a running process write its report
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Without --service and --pid, prints what the database says: engines, the stacks that they hold, and \
running operations with what they wait for. With --service, prints the report of the process that answers \
at the URL (kiln serve or kiln api), which also contains its tasks, memory, configuration without secrets \
and last errors. This requires credentials of an administrator (policy service:report). With --pid, a \
process on this host (kiln serve, api or engine) writes this report to [oslo_reports] log_dir or its \
standard error.

Examples:
  kiln manage report --config-file kiln.conf
  kiln manage report --stack shop                          what its resources wait for
  kiln manage report --service                             the service of the catalog
  kiln manage report --service http://localhost:8004       this process
  kiln manage report --service unix:/run/kiln/api.sock     the process at this socket")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Ask a running service; without a URL, the service in the catalog
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = CATALOG)]
    #[arg(conflicts_with_all = ["pid", "config_file", "config_dir"])]
    service: Option<String>,
    /// Only stacks of the project with this ID, from the database
    #[arg(long, value_name = "PROJECT", conflicts_with_all = ["service", "pid"])]
    project: Option<String>,
    /// Only the stack with this name or ID and its nested stacks, from the database
    #[arg(long, value_name = "STACK", conflicts_with_all = ["service", "pid"])]
    stack: Option<String>,
    /// Process that writes its report (SIGUSR2)
    #[arg(long, value_name = "PID", conflicts_with_all = ["config_file", "config_dir"])]
    pid: Option<u32>,
}

impl ReportArgs {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        if let Some(url) = self.service {
            let place = if url == CATALOG { Place::Catalog } else { Place::parse(&url)? };
            let text = Connection::of_service(global, place)?.client.report().await?;
            return Ok(print(&text)?);
        }
        let Some(pid) = self.pid else {
            let config = Config::load(&self.config)?;
            let of = ReportedStacks { project: self.project, stack: self.stack };
            return Ok(print(&report::of_database(&config, &of).await)?);
        };
        let sent = tokio::process::Command::new("kill").args(["-USR2", &pid.to_string()]).output().await;
        match sent {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Failure::new(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => Err(Failure::new(format!("cannot run kill: {error}"))),
        }
    }
}
