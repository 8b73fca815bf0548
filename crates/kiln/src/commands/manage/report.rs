//! `kiln manage report`.

use clap::Args;

use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::report;

/// `manage report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --pid, prints what the database says: engines, the stacks that they hold, and running operations
with what they wait for. With --pid, the process (kiln serve, api or engine on this host) writes a report
that also contains its tasks, memory and last errors, to [oslo_reports] log_dir or its standard error.

Example:
  kiln manage report --config-file kiln.conf")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Process that writes its report (SIGUSR2)
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

impl ReportArgs {
    pub(super) async fn run(self) -> Outcome {
        let Some(pid) = self.pid else {
            let config = Config::load(&self.config)?;
            return Ok(print(&report::of_database(&config).await)?);
        };
        let sent = tokio::process::Command::new("kill").args(["-USR2", &pid.to_string()]).output().await;
        match sent {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Failure::new(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => Err(Failure::new(format!("cannot run kill: {error}"))),
        }
    }
}
