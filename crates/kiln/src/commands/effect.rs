//! What a command does to what exists. Each command declares it beside its help.

use clap::builder::CommandExt;

/// What a command does to what exists: `#[command(add = Effect::Reads)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing.
    Reads,
    /// It changes something and needs no confirmation, for this reason.
    Changes(&'static str),
    /// It destroys or interrupts something. It obeys `--require-yes`
    /// ([`ConfirmArgs`](crate::commands::confirm::ConfirmArgs)).
    Destroys,
}

impl CommandExt for Effect {}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_declares_its_effect() {
        fn check(command: &Command, path: &str) {
            let mut below = command.get_subcommands().filter(|below| below.get_name() != "help").peekable();
            if below.peek().is_some() {
                return below.for_each(|below| check(below, &format!("{path} {}", below.get_name())));
            }
            let obeys = command.get_arguments().any(|argument| argument.get_long() == Some("require-yes"));
            match command.get::<Effect>() {
                None => panic!("{path}: decide whether it destroys something: #[command(add = Effect::…)]"),
                Some(Effect::Destroys) => assert!(obeys, "{path}: a command that destroys something has ConfirmArgs"),
                Some(Effect::Changes(reason)) => assert!(!obeys && !reason.is_empty(), "{path}"),
                Some(Effect::Reads) => assert!(!obeys, "{path}"),
            }
        }
        check(&Cli::command(), "kiln");
    }
}
