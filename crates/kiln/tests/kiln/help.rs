//! The output of `--help`.

use crate::run::Folder;

#[test]
fn help_teaches() {
    let folder = Folder::new("help");
    for (name, args) in [
        ("kiln", &["-h"][..]),
        ("stack", &["stack", "-h"]),
        ("stack-create", &["stack", "create", "-h"]),
        ("serve", &["serve", "-h"]),
        ("engine", &["engine", "-h"]),
        ("demo", &["demo", "-h"]),
    ] {
        insta::assert_snapshot!(name, folder.run(args).ok());
    }
}

#[test]
fn every_shell_gets_its_completion() {
    let folder = Folder::new("completion");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(&["completion", shell]).ok();
        assert!(script.contains("resource-type"), "{shell}");
    }
}
