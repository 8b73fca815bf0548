//! `kiln completion`: completion scripts for shells. They are short: a script asks `kiln` for the completions of a line.

mod names;

use std::ffi::OsStr;

use clap::{Arg, Args, Command, CommandFactory as _, ValueEnum, ValueHint};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use kiln_console::output::print;

use self::names::Names;
use crate::cli::Cli;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// The name of the program in scripts.
const PROGRAM: &str = "kiln";
/// The variable with which a script asks; its value is the shell.
const VARIABLE: &str = "KILN_COMPLETE";
/// A script in a folder of `fpath` is read by zsh as the function `_kiln` when the key is pressed for the first time: it must
/// also complete.
const FIRST_OF_ZSH: &str = "if [[ $funcstack[1] == _kiln ]]; then\n    _clap_dynamic_completer_kiln \"$@\"\nfi\n";

/// The names of values that are files or folders.
const FILES: [&str; 5] = ["ENVIRONMENT", "FILE", "FOLDER", "PATH", "TEMPLATE"];

/// Generate a completion script for a shell
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
The Tab key completes commands, options, files, resource types and functions; and the names of stacks, resources \
and outputs, which it asks of the service (or of the database with --local). It waits for at most 2 seconds, or \
for KILN_COMPLETE_TIMEOUT seconds.

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

/// A command that says what its arguments are, by the names of their values: files, stacks, resource types, functions.
fn with_values(command: Command) -> Command {
    let named = |arg: &Arg, names: &[&str]| {
        arg.get_value_names().unwrap_or_default().iter().any(|name| names.contains(&name.as_str()))
    };
    let command = command.mut_args(|arg| match arg {
        arg if named(&arg, &FILES) => arg.value_hint(ValueHint::AnyPath),
        arg if named(&arg, &["RESOURCE-TYPE"]) => arg.add(ArgValueCandidates::new(types)),
        arg if named(&arg, &["STACK"]) => arg.add(asked(Names::Stacks)),
        arg if named(&arg, &["RESOURCE"]) => arg.add(asked(Names::Resources)),
        arg if named(&arg, &["OUTPUT"]) => arg.add(asked(Names::Outputs)),
        arg if named(&arg, &["FUNCTION"]) => arg.add(ArgValueCandidates::new(functions)),
        arg => arg,
    });
    command.mut_subcommands(with_values)
}

fn asked(names: Names) -> ArgValueCompleter {
    ArgValueCompleter::new(move |begun: &OsStr| names.completed(begun))
}

/// The shipped resource types.
fn types() -> Vec<CompletionCandidate> {
    let types = kiln_resource::shipped::types().unwrap_or_default();
    types.into_iter().map(|resource_type| CompletionCandidate::new(resource_type.name)).collect()
}

fn functions() -> Vec<CompletionCandidate> {
    kiln_template::all_functions().iter().map(|function| CompletionCandidate::new(function.name)).collect()
}

/// Answers the question of a script, and ends the process, if it is one. To be called before there are other threads.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_values(Cli::command())).var(VARIABLE).bin(PROGRAM).completer(PROGRAM).complete();
}
