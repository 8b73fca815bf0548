//! `kiln man`: the man pages, from the same source as `--help`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use kiln_config::reference;

use crate::cli;
use crate::commands::effect::Effect;
use crate::failure::Outcome;

/// Write the man pages of all commands
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Writes one page for each command (kiln-stack-create.1) and kiln.conf.5.

Example:
  kiln man man1")]
pub(crate) struct ManArgs {
    /// Folder for the pages; it is created
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl ManArgs {
    pub(crate) fn run(self) -> Outcome {
        let folder = &self.folder;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        clap_mangen::generate_to(cli::command(), folder).with_context(|| folder.display().to_string())?;
        let file = folder.join("kiln.conf.5");
        std::fs::write(&file, reference::man(env!("CARGO_PKG_VERSION"))).with_context(|| file.display().to_string())?;
        Ok(())
    }
}
