//! Asks before something is destroyed or interrupted.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use clap::builder::FalseyValueParser;

use crate::failure::{Failure, Outcome};

/// Whether the command waits for an answer, so that it has changed nothing if it is interrupted.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// Whether the command waits for an answer.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.load(Ordering::SeqCst)
}

/// Confirmation of what destroys or interrupts something.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ConfirmArgs {
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Replace, delete, forget or interrupt nothing without --yes or an answer on the terminal (KILN_REQUIRE_YES)
    #[arg(
        long,
        env = "KILN_REQUIRE_YES",
        hide_env_values = true,
        hide_short_help = true,
        value_parser = FalseyValueParser::new()
    )]
    require_yes: bool,
}

impl ConfirmArgs {
    /// Whether a confirmation is needed. Scripts are not asked, unless they want to be stopped.
    pub(crate) fn is_needed(self) -> bool {
        !self.yes && (self.require_yes || std::io::stdin().is_terminal())
    }

    /// Asks, if a confirmation is demanded of a command that asks for none by default, as the `openstack` client.
    ///
    /// # Errors
    /// As [`ConfirmArgs::confirm`].
    pub(crate) async fn if_demanded(self, question: &str) -> Outcome {
        if self.require_yes && !self.yes { self.confirm(question).await } else { Ok(()) }
    }

    /// Asks a yes/no question on the terminal. Every answer that does not start with `y` means no.
    ///
    /// # Errors
    /// If the answer is no or Ctrl-C; without a terminal always.
    pub(crate) async fn confirm(self, question: &str) -> Outcome {
        if !std::io::stdin().is_terminal() {
            let failure =
                Failure::new("the command replaces, deletes, forgets or interrupts something; nothing was changed");
            return Err(failure.hint("use --yes to confirm it (--require-yes or KILN_REQUIRE_YES is set)"));
        }
        eprint!("{question}");
        std::io::stderr().flush().map_err(|error| Failure::new(error.to_string()))?;
        IS_ASKING.store(true, Ordering::SeqCst);
        let answer = line().await?;
        IS_ASKING.store(false, Ordering::SeqCst);
        if answer.trim().to_lowercase().starts_with('y') {
            return Ok(());
        }
        Err(Failure::new("not confirmed; nothing was changed"))
    }
}

/// Reads a line of standard input, in a thread that the end of the process does not wait for.
async fn line() -> Outcome<String> {
    let (sender, line) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        _ = sender.send(read.map(|_| line));
    });
    match line.await {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(error)) => Err(Failure::new(error.to_string())),
        Err(_) => Ok(String::new()),
    }
}
