//! `kiln import …`: brings objects that exist under Kiln.

mod commit;
mod objects;
mod scan;
mod selection;
mod write;

group! {
    /// Commands for imports.
    ImportCommand {
        Scan(scan::ScanArgs),
        Write(write::WriteArgs),
        Commit(commit::CommitArgs),
    }
}

impl ImportCommand {
    /// The name of the stack on which the command starts an operation; empty if it starts none.
    pub(crate) fn changed(&self) -> &str {
        if let Self::Commit(args) = self { args.name() } else { "" }
    }
}
