//! Commands of other tools: what they are called here.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A word that people know from other tools, and what to use instead.
const INTENTS: &[(&[&str], &str)] = &[
    (&["kiln plan", "diff", "preview"], "'kiln stack plan' shows what would change"),
    (
        &["apply", "deploy", "up"],
        "use 'kiln stack create' for a new stack, 'kiln stack update' for one that exists, and 'kiln stack apply' for a \
         saved plan",
    ),
    (&["destroy", "rm", "remove", "down"], "use 'kiln stack delete'"),
    (&["ls"], "use 'kiln stack list'"),
    (&["init"], "no preparation is needed: 'kiln demo' shows a stack, 'kiln stack create' creates one"),
    (&["refresh"], "'kiln stack drift' compares a stack with the cloud, and with --repair plans its repair"),
    (&["events", "logs"], "use 'kiln stack event list --follow'"),
    (&["outputs"], "use 'kiln stack output list'"),
    (&["state", "resources"], "use 'kiln stack resource list'"),
    (
        &["create", "update", "delete", "show", "list", "drift", "cancel", "wait"],
        "commands for stacks begin with 'kiln stack'",
    ),
    (&["validate", "lint", "fmt", "format", "graph"], "commands for templates begin with 'kiln template'"),
];

/// Reports a command line that is not valid. With `--detailed-exitcode`, 2 says that something would change.
pub(crate) fn refused(error: clap::Error) -> ! {
    let is_detailed = std::env::args_os().any(|argument| argument == "--detailed-exitcode");
    let error = explained(error);
    if is_detailed && error.use_stderr() {
        // Nobody reads it if it cannot be written.
        _ = error.print();
        std::process::exit(1);
    }
    error.exit()
}

/// Adds to an unknown command what it is called here, instead of a command with similar letters.
fn explained(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let known = INTENTS.iter().find(|(words, _)| words.contains(&given.as_str()));
    // Without a command, it is the group that is given: `kiln plan`.
    let is_known = matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand);
    if let Some((_, instead)) = known.filter(|_| is_known) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*instead).into()]));
    }
    error
}
