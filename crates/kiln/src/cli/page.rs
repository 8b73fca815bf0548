//! The page of the manual with all commands (`docs/commands.md`).

use std::fmt::Write as _;

use clap::{Args as _, CommandFactory as _};
use kiln_console::output::OutputArgs;

use super::Cli;
use crate::exit_code::{ExitCodes, OF_ALL};

fn page() -> String {
    let mut command = Cli::command().version(None);
    command.build();
    let mut page = String::from(
        "# Commands\n\nAll commands with their arguments, made from the program. `kiln COMMAND --help` shows more \
         details.\n",
    );
    exit_codes(&mut page, &command);
    page.push_str("\n## Options of every command\n");
    arguments(&mut page, command.get_arguments());
    page.push_str("\n## Options of commands that print a result\n");
    let output = clap::Command::new("output");
    arguments(&mut page, OutputArgs::augment_args(output).get_arguments());
    for below in command.get_subcommands() {
        section(&mut page, below, "kiln");
    }
    page
}

/// The table of the exit codes: for all commands, then for each command that has its own.
fn exit_codes(page: &mut String, command: &clap::Command) {
    fn own<'a>(command: &'a clap::Command, name: &str, found: &mut Vec<(String, &'a ExitCodes)>) {
        found.extend(command.get::<ExitCodes>().map(|codes| (format!("`{name}`"), codes)));
        for below in command.get_subcommands() {
            own(below, &format!("{name} {}", below.get_name()), found);
        }
    }
    page.push_str("\n## Exit codes\n\n| command | exit code | meaning |\n| --- | --- | --- |\n");
    let all = ("all".to_owned(), &ExitCodes(OF_ALL));
    let mut found = vec![all];
    own(command, "kiln", &mut found);
    for (name, ExitCodes(codes)) in found {
        for (code, meaning) in *codes {
            _ = writeln!(page, "| {name} | {code} | {meaning} |");
        }
    }
}

fn section(page: &mut String, command: &clap::Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    if command.has_subcommands() {
        if above == "kiln" {
            _ = write!(page, "\n## `{name}`\n\n{about}.\n");
        }
        command.get_subcommands().for_each(|below| section(page, below, &name));
        return;
    }
    let level = if above == "kiln" { "##" } else { "###" };
    let usage = command.clone().render_usage().to_string().replace("Usage: ", "");
    _ = write!(page, "\n{level} `{name}`\n\n{about}.\n\n`{}`\n", usage.trim());
    arguments(page, command.get_arguments().filter(|argument| !argument.is_global_set() && !is_of_output(argument)));
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("  kiln ")).collect();
    if !examples.is_empty() {
        page.push_str("\nExamples:\n\n");
    }
    for example in examples {
        let (command, remark) = example.split_once("   ").unwrap_or((example, ""));
        let remark = if remark.is_empty() { String::new() } else { format!(": {}", remark.trim()) };
        _ = writeln!(page, "- `kiln {}`{remark}", command.trim());
    }
}

/// Whether an option is one of commands that print a result: all that have this heading.
fn is_of_output(argument: &clap::Arg) -> bool {
    argument.get_help_heading() == Some("Output")
}

fn arguments<'a>(page: &mut String, all: impl Iterator<Item = &'a clap::Arg>) {
    let mut rows = all.filter(|argument| !argument.is_hide_set() && argument.get_id() != "help").peekable();
    if rows.peek().is_some() {
        page.push_str("\n| argument | meaning |\n| --- | --- |\n");
    }
    for argument in rows {
        let value = argument.get_value_names().filter(|_| argument.get_action().takes_values()).unwrap_or_default();
        let value = value.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let name = match (argument.get_long(), argument.get_short()) {
            (Some(long), Some(short)) => format!("-{short}, --{long} {value}"),
            (Some(long), None) => format!("--{long} {value}"),
            (None, Some(short)) => format!("-{short} {value}"),
            (None, None) => value,
        };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let possible = argument.get_possible_values();
        let possible: Vec<&str> = possible.iter().map(clap::builder::PossibleValue::get_name).collect();
        let is_flag = !argument.get_action().takes_values();
        let possible =
            if possible.is_empty() || is_flag { String::new() } else { format!(" ({})", possible.join(", ")) };
        let help = format!("{help}{possible}").replace('|', "\\|").replace('<', "&lt;");
        _ = writeln!(page, "| `{}` | {help} |", name.trim());
    }
}

#[test]
fn the_page_of_the_manual_is_that_of_the_program() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = page();
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == page, "KILN_UPDATE_DATA=1 .ci/tests kiln:bin page_of_the_manual writes docs/commands.md");
}

#[test]
fn only_output_options_have_their_heading() {
    fn check(command: &clap::Command, known: &[String]) {
        for argument in command.get_arguments().filter(|argument| is_of_output(argument)) {
            let id = argument.get_id().to_string();
            assert!(known.contains(&id), "{}: --help shows {id} below Output", command.get_name());
        }
        command.get_subcommands().for_each(|below| check(below, known));
    }
    let known = OutputArgs::augment_args(clap::Command::new("output"));
    let known: Vec<String> = known.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    check(&Cli::command(), &known);
}
