//! `kiln completion`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Outcome;
use crate::output::print;

/// `completion`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln completion bash > /etc/bash_completion.d/kiln
  kiln completion zsh > ~/.zfunc/_kiln
  kiln completion fish > ~/.config/fish/completions/kiln.fish")]
pub(crate) struct CompletionArgs {
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

impl CompletionArgs {
    /// Prints the script.
    pub(crate) fn run(&self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "kiln", &mut script);
        Ok(print(&String::from_utf8_lossy(&script))?)
    }
}
