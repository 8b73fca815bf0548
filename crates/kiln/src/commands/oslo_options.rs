//! The options that every console command of Heat has: those of oslo.config and oslo.log.

use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, ValueEnum};
use kiln_config::option::ConfigOption;
use kiln_config::options::server;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::print;
use kiln_telemetry::logging;
use kiln_telemetry::logging::LogArgs;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};

/// Options of `heat-manage` and `heat-keystone-setup-domain`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of Heat's command line")]
pub(crate) struct OsloArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    instead: InsteadArgs,
    /// Print the log with more messages
    #[arg(short = 'd', long, overrides_with = "nodebug")]
    debug: bool,
    /// The inverse of --debug
    #[arg(long, overrides_with = "debug", hide_short_help = true)]
    nodebug: bool,
    /// Write the log to this file
    #[arg(long, visible_alias = "logfile", value_name = "PATH")]
    log_file: Option<String>,
    /// Write the log to a file in this folder
    #[arg(long, visible_alias = "logdir", value_name = "FOLDER")]
    log_dir: Option<String>,
    /// Open the log file again when it was moved
    #[arg(long, overrides_with = "nowatch_log_file", hide_short_help = true)]
    watch_log_file: bool,
    /// The inverse of --watch-log-file
    #[arg(long, overrides_with = "watch_log_file", hide_short_help = true)]
    nowatch_log_file: bool,
    /// Write the log as JSON
    #[arg(long, overrides_with = "nouse_json", hide_short_help = true)]
    use_json: bool,
    /// The inverse of --use-json
    #[arg(long, overrides_with = "use_json", hide_short_help = true)]
    nouse_json: bool,
    /// Send the log to systemd-journald
    #[arg(long, overrides_with = "nouse_journal", hide_short_help = true)]
    use_journal: bool,
    /// The inverse of --use-journal
    #[arg(long, overrides_with = "use_journal", hide_short_help = true)]
    nouse_journal: bool,
    /// Not supported: use --use-journal; systemd-journald passes the log to syslog
    #[arg(long, overrides_with = "nouse_syslog", hide_short_help = true)]
    use_syslog: bool,
    /// The inverse of --use-syslog
    #[arg(long, overrides_with = "use_syslog", hide_short_help = true)]
    nouse_syslog: bool,
    /// Has an effect only with --use-syslog
    #[arg(long, value_name = "FACILITY", hide_short_help = true)]
    syslog_log_facility: Option<String>,
    /// Not supported: Kiln does not use Python's logging
    #[arg(long, visible_aliases = ["log-config", "log_config"], value_name = "PATH", hide_short_help = true)]
    log_config_append: Option<String>,
    /// Not supported: the format of times cannot be changed
    #[arg(long, value_name = "FORMAT", hide_short_help = true)]
    log_date_format: Option<String>,
}

/// What replaces a command.
#[derive(Args, Debug)]
pub(crate) struct InsteadArgs {
    /// Print the version of Kiln
    #[arg(long, hide_short_help = true)]
    version: bool,
    /// Print a completion script
    #[arg(long = "shell_completion", value_name = "SHELL", hide_short_help = true)]
    shell_completion: Option<Shell>,
}

/// A shell with completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
}

impl InsteadArgs {
    /// Prints the version or the script for the command with this name, if it was asked for.
    pub(crate) fn run(&self, name: &'static str) -> Outcome<bool> {
        if self.version {
            print(&format!("{}\n", env!("CARGO_PKG_VERSION")))?;
            return Ok(true);
        }
        let Some(shell) = self.shell_completion else { return Ok(false) };
        let shell = match shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command(name), name, &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(true)
    }
}

/// A command as a program of its own, with the options that all commands have.
fn command(name: &'static str) -> clap::Command {
    let all = Cli::command();
    let found = all.get_subcommands().find(|command| command.get_name() == name).cloned();
    let shared: Vec<_> = all.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect();
    found.map_or(all, |command| command.args(shared))
}

/// A command line without a command: its usage was printed.
pub(crate) fn no_command(name: &'static str) -> Failure {
    let mut command = command(name).bin_name(name);
    let error = command.error(ErrorKind::MissingSubcommand, "a command is required");
    // Without a standard error there is nothing to tell.
    _ = error.print();
    Failure::told(2)
}

impl OsloArgs {
    /// Does what replaces a command, if it was asked for.
    pub(crate) fn instead(&self, name: &'static str) -> Outcome<bool> {
        self.instead.run(name)
    }

    /// Reads the configuration, which is overridden by these options, and starts the log. Without options of the log, only
    /// errors are printed.
    pub(crate) fn config(&self, log: &LogArgs, name: &str) -> Result<Config> {
        if self.use_syslog {
            bail!("--use-syslog is not supported: use --use-journal, systemd-journald passes the log to syslog");
        }
        for (option, given) in
            [("log-config-append", &self.log_config_append), ("log-date-format", &self.log_date_format)]
        {
            if given.is_some() {
                bail!("--{option} is not supported: Kiln does not use Python's logging");
            }
        }
        let mut config = Config::load_as_heat(&self.config)?;
        let mut set = |option: &'static ConfigOption, yes: bool, no: bool| {
            if yes || no {
                config.set(option, yes.to_string());
            }
            yes
        };
        let flags = [
            set(&server::DEBUG, self.debug, self.nodebug),
            set(&server::WATCH_LOG_FILE, self.watch_log_file, self.nowatch_log_file),
            set(&server::USE_JSON, self.use_json, self.nouse_json),
            set(&server::USE_JOURNAL, self.use_journal, self.nouse_journal),
        ];
        let mut is_logged = flags.contains(&true);
        for (option, path) in [(&server::LOG_FILE, &self.log_file), (&server::LOG_DIR, &self.log_dir)] {
            if let Some(path) = path {
                config.set(option, path.clone());
                is_logged = true;
            }
        }
        if is_logged {
            logging::of_service(log, &config, name)?;
        } else {
            logging::of_command(log);
        }
        Ok(config)
    }
}
