//! The commands, one file per noun.

/// Declares a group of commands that use a connection, or another value (`with Global`). The arguments of a command say what
/// it is, what its effect is and how it is run: with this value, or without it and at once (`now`).
macro_rules! group {
    (@run $command:ident $context:ident) => { Box::pin($command.run($context)).await };
    (@run $command:ident $context:ident now) => {{
        _ = $context;
        $command.run()
    }};
    ($(#[$about:meta])* $group:ident { $($commands:tt)+ }) => {
        group! { $(#[$about])* $group with $crate::connect::Connection { $($commands)+ } }
    };
    ($(#[$about:meta])* $group:ident with $context:ty {
        $($(#[$attribute:meta])* $command:ident($arguments:ty) $($now:ident)?,)+
    }) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$about])*
        pub(crate) enum $group {
            $($(#[$attribute])* $command($arguments),)+
        }

        impl $group {
            /// Runs the command.
            pub(crate) async fn run(self, context: &$context) -> $crate::failure::Outcome {
                match self {
                    $(Self::$command(command) => group!(@run command context $($now)?),)+
                }
            }
        }
    };
}

pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod confirm;
pub(crate) mod dashboard;
pub(crate) mod demo;
pub(crate) mod drift;
mod duration;
pub(crate) mod edit;
pub(crate) mod effect;
pub(crate) mod export;
pub(crate) mod guard;
pub(crate) mod heat_manage;
pub(crate) mod heat_status;
pub(crate) mod import;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod manage;
pub(crate) mod open_page;
pub(crate) mod orphan;
pub(crate) mod oslo_options;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod resource_type;
pub(crate) mod serve;
pub(crate) mod software;
pub(crate) mod stack;
pub(crate) mod template;
pub(crate) mod terraform;
pub(crate) mod testcloud;
pub(crate) mod webhook;

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_file_is_a_module() {
        fn check(file: &Path) {
            let text = std::fs::read_to_string(file).unwrap();
            for entry in std::fs::read_dir(file.with_extension("")).into_iter().flatten() {
                let inner = entry.unwrap().path();
                let name = inner.file_stem().unwrap().to_str().unwrap();
                let is_declared = text.contains(&format!("mod {name};\n"));
                assert!(is_declared, "{}: declare it, and its commands, in {}", inner.display(), file.display());
                if inner.is_file() {
                    check(&inner);
                }
            }
        }
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands.rs"));
    }
}
