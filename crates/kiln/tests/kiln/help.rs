//! The output of `--help`.

use crate::run::{Folder, Ran};

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
        assert!(script.contains("KILN_COMPLETE") && script.len() < 10_000, "{shell}: {script}");
    }
}

/// A script asks for each completion; `tests/completion.py` presses the key in all shells.
#[test]
fn bash_completes_commands_options_values_and_files() {
    let folder = Folder::new("completion-bash");
    folder.write("web.yaml", "");
    let script = folder.write("kiln.bash", &folder.run(&["completion", "bash"]).ok());
    let completed = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let text = format!(
            "source {}; COMP_WORDS=({} ''); unset 'COMP_WORDS[-1]'; [ -n '{last}' ] || COMP_WORDS+=(''); COMP_CWORD={}; \
             COMP_TYPE=9; _clap_complete_kiln kiln '{last}' '{before}'; printf '%s ' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
        );
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_kiln")).parent().unwrap();
        let mut bash = std::process::Command::new("bash");
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
        let ran = Ran::from(
            bash.args(["--norc", "-c", &text]).current_dir(folder.path()).env("PATH", path).output().unwrap(),
        );
        ran.ok().trim().to_owned()
    };
    assert_eq!(completed("kiln stack cre"), "create");
    assert_eq!(completed("kiln stack list --os-cl"), "--os-cloud");
    assert_eq!(completed("kiln completion fi"), "fish");
    assert_eq!(completed("kiln template lint we"), "web.yaml");
    assert_eq!(completed("kiln template function show str_s"), "str_split");
    assert_eq!(completed("kiln resource-type show OS::Blazar::H"), "OS::Blazar::Host");
    assert!(completed("kiln ").split(' ').any(|word| word == "resource-type"));
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
