//! `kiln lsp`: a language server for templates.

use clap::Args;
use kiln_value::Chain;

use crate::cli::{Global, LocalArgs};
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Run the language server for templates
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Editors start this command; editors/README.md in the source describes the set-up for VS Code, \
Neovim, Helix and Emacs. It implements the Language Server Protocol over standard input and output. \
For templates it provides diagnostics with quick fixes, completion, signature help, hover, \
definitions, references, highlights, rename, symbols of the file and the workspace, links to files, \
folding, semantic tokens and formatting; for environments all of these except signature help, \
folding and semantic tokens; for blueprints, TOSCA and type files of these diagnostics, completion \
and hover. Use --resource-types-dir and --plugin to add your own resource types, and \
--topology-types-dir for types of blueprints and TOSCA.")]
pub(crate) struct LspArgs {
    /// Use standard input and output, which is always the case
    #[arg(long, hide = true)]
    stdio: bool,
}

impl LspArgs {
    /// Serves until the client sends `exit` or disconnects.
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        let catalog = global.local.catalog().await?;
        // Errors in type files are shown in the editor when they are opened.
        let types = global.local.topology_types().or_else(|error| {
            tracing::error!("{}", Chain(&*error));
            LocalArgs::default().topology_types()
        })?;
        let served = tokio::task::spawn_blocking(move || kiln_lsp::serve(catalog, types)).await;
        match served {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Failure::new("the client disconnected without a shutdown request")),
            Ok(Err(error)) => Err(Failure::new(format!("language server: {error}"))),
            Err(error) => Err(Failure::new(format!("language server: {error}"))),
        }
    }
}
