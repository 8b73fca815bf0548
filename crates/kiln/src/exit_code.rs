//! Exit codes. The help and the manual list them from here.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::CommandExt;
use kiln_server::shutdown::INTERRUPTED;

/// The command failed.
pub(crate) const FAILED: u8 = 1;
/// The operation on the stack failed.
pub(crate) const STACK_FAILED: u8 = 3;
/// The service or the cloud is not reachable.
pub(crate) const UNREACHABLE: u8 = 4;
/// The reader closed the pipe: 128 + SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// The exit codes of all commands.
pub(crate) const OF_ALL: &[(u8, &str)] = &[
    (0, "success"),
    (FAILED, "the command failed; the reason is printed to standard error"),
    (2, "invalid command line"),
    (STACK_FAILED, "the operation on the stack failed (with --wait or --local)"),
    (UNREACHABLE, "the service or the cloud is not reachable"),
    (INTERRUPTED, "interrupted"),
    (BROKEN_PIPE, "the reader of the output has ended"),
];

/// The exit codes that mean something else for a command: `#[command(add = ExitCodes(…))]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExitCodes(pub(crate) &'static [(u8, &'static str)]);

impl CommandExt for ExitCodes {}

/// A plan with `--detailed-exitcode`, as in Terraform.
pub(crate) const OF_PLAN: ExitCodes = ExitCodes(&[NOTHING, INVALID, CHANGES, LOSES]);
/// The plan of a create: it loses nothing.
pub(crate) const OF_PLANNED_CREATE: ExitCodes = ExitCodes(&[NOTHING, INVALID, CHANGES]);

const NOTHING: (u8, &str) = (0, "with --detailed-exitcode: nothing would change");
/// The command failed, or its arguments are not valid: 2 has another meaning.
pub(crate) const INVALID: (u8, &str) = (FAILED, "with --detailed-exitcode: also an invalid command line");
const CHANGES: (u8, &str) = (2, "with --detailed-exitcode: something would change");
const LOSES: (u8, &str) = (5, "with --detailed-exitcode: something would be lost");

/// The codes in lines.
fn listed(codes: &[(u8, &str)]) -> String {
    let mut text = String::from("Exit codes:");
    for (code, meaning) in codes {
        // Writing to a string cannot fail.
        _ = write!(text, "\n  {code:<4} {meaning}");
    }
    text
}

/// A command whose `--help` lists its exit codes, and those of its subcommands theirs.
pub(crate) fn documented(command: Command) -> Command {
    let codes = if command.get_name() == "kiln" { Some(OF_ALL) } else { command.get::<ExitCodes>().map(|own| own.0) };
    let command = match codes {
        Some(codes) => {
            let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
            command.after_long_help(format!("{before}{}", listed(codes)))
        }
        None => command,
    };
    command.mut_subcommands(documented)
}
