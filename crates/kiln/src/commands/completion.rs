//! `kiln completion`: completion scripts for shells. They are short: a script asks `kiln` for the completions of a line.

use clap::{Arg, Args, Command, CommandFactory as _, ValueEnum, ValueHint};
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use kiln_console::output::print;

/// The name of the program in scripts.
const PROGRAM: &str = "kiln";
/// The variable with which a script asks; its value is the shell.
const VARIABLE: &str = "KILN_COMPLETE";
/// A script in a folder of `fpath` is read by zsh as the function `_kiln` when the key is pressed for the first time: it must
/// also complete.
const FIRST_OF_ZSH: &str = "if [[ $funcstack[1] == _kiln ]]; then\n    _clap_dynamic_completer_kiln \"$@\"\nfi\n";

/// The names of values that are files or folders.
const FILES: [&str; 5] = ["ENVIRONMENT", "FILE", "FOLDER", "PATH", "TEMPLATE"];

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

/// A shell with completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl CompletionArgs {
    /// Prints the script.
    pub(crate) fn run(&self) -> Outcome {
        let name = self.shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(|| Failure::new(format!("{name} has no completion")))?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).map_err(anyhow::Error::from)?;
        if self.shell == Shell::Zsh {
            script.extend_from_slice(FIRST_OF_ZSH.as_bytes());
        }
        Ok(print(&String::from_utf8_lossy(&script))?)
    }
}

/// A command that says which of its arguments are files, by the names of their values.
fn with_files(command: Command) -> Command {
    let is_file =
        |arg: &Arg| arg.get_value_names().unwrap_or_default().iter().any(|name| FILES.contains(&name.as_str()));
    let command = command.mut_args(|arg| if is_file(&arg) { arg.value_hint(ValueHint::AnyPath) } else { arg });
    command.mut_subcommands(with_files)
}

/// Answers the question of a script, and ends the process, if it is one. To be called before there are other threads.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_files(Cli::command())).var(VARIABLE).bin(PROGRAM).completer(PROGRAM).complete();
}
