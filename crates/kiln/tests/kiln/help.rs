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

/// The options that select a cloud are one section, which the short help leaves out.
#[test]
fn the_long_help_has_the_options_of_the_cloud() {
    let folder = Folder::new("help-cloud");
    for command in [&[][..], &["stack", "list"]] {
        let help = |flag| folder.run(&[command, &[flag]].concat()).ok();
        let (_, section) = help("--help").split_once("\nCloud:\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let (section, rest) = section.split_once(":\n").unwrap();
        for option in ["--os-cloud ", "--os-auth-url ", "--os-password ", "--os-orchestration-endpoint ", "--insecure"]
        {
            assert!(section.contains(option) && !rest.contains(option), "{command:?} {option}");
        }
        assert!(!help("-h").contains("--os-"), "{command:?}");
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
