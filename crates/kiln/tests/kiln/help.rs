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
fn commands_of_other_tools_are_explained() {
    let folder = Folder::new("help-intents");
    for (args, instead) in [
        (&["plan"][..], "kiln stack plan"),
        (&["destroy"], "kiln stack delete"),
        (&["apply"], "kiln stack create"),
        (&["stack", "destroy"], "kiln stack delete"),
        (&["stack", "diff"], "kiln stack plan"),
        (&["lint"], "kiln template"),
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains(instead) && !ran.err.contains("similar"), "{args:?}: {}", ran.err);
    }
    // Others get what is written alike.
    assert!(folder.run(&["stack", "crate"]).err.contains("'create'"));
}
