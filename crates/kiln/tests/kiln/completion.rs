//! Completion in shells.

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::Duration;

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::service::Service;

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

/// What bash completes at the end of a line; no message is printed.
fn completed(mut kiln: Command, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    kiln.arg("--").args(&words).env("KILN_COMPLETE", "bash").env("_CLAP_IFS", " ");
    kiln.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_COMPLETE_COMP_TYPE", "9");
    let ran = Ran::from(kiln.output().unwrap());
    assert_eq!(ran.err, "", "{line}");
    ran.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_service_are_completed() {
    let folder = Folder::new("completion-service");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    folder.write("inner.yaml", "heat_template_version: 2018-08-31\nresources: {deep: {type: OS::Heat::None}}\n");
    let template = "heat_template_version: 2018-08-31\nresources:\n  word: {type: OS::Heat::RandomString}\n  \
                    inner: {type: inner.yaml}\noutputs: {text: {value: x}}\n";
    folder.write("web.yaml", template);
    service.asked(&folder, &cloud, &["stack", "create", "-t", "web.yaml", "--wait", "website"]).ok();
    let asked = |line: &str| {
        let mut kiln = folder.client(&cloud, &service.url, &[]);
        kiln.env("KILN_COMPLETE_TIMEOUT", "60");
        completed(kiln, line)
    };
    assert_eq!(asked("kiln stack show we"), "website");
    assert_eq!(asked("kiln stack delete other we"), "website");
    assert_eq!(asked("kiln stack resource show website w"), "word");
    assert_eq!(asked("kiln stack resource show website inner/"), "inner/deep");
    assert_eq!(asked("kiln stack event list website --resource w"), "word");
    assert_eq!(asked("kiln stack output show website t"), "text");
    // Nothing of these is known.
    assert_eq!(asked("kiln stack resource show other w"), "");
    assert_eq!(asked("kiln --os-password wrong stack show we"), "");
}

#[test]
fn names_of_a_database_are_completed() {
    let folder = Folder::new("completion-local");
    folder.write("web.yaml", "heat_template_version: 2018-08-31\nresources: {word: {type: OS::Heat::RandomString}}\n");
    folder.local(&["stack", "create", "-t", "web.yaml", "website"]).ok();
    let asked = |line: &str| {
        let mut kiln = folder.kiln(&[]);
        kiln.env("KILN_COMPLETE_TIMEOUT", "60").env("KILN_PLUGINS", "/nowhere/plugin");
        completed(kiln, line)
    };
    assert_eq!(asked("kiln --local stack resource show website w"), "word");
    // Without a cloud there are no names, and a missing database is not created.
    assert_eq!(asked("kiln stack show we"), "");
    assert_eq!(asked("kiln --local --database missing.db stack show we"), "");
    assert!(!folder.path().join("missing.db").exists());
}

/// A service that answers too late is not waited for.
#[test]
fn a_slow_service_completes_nothing() {
    let folder = Folder::new("completion-slow");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/p", listener.local_addr().unwrap());
    let answering = |delay: Duration| {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            std::thread::sleep(delay);
            let body = r#"{"stacks": [{"id": "1", "stack_name": "website"}]}"#;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            // A client that has gone does not read it.
            _ = write!(client, "{head}\r\n\r\n{body}");
        })
    };
    let line = format!("kiln --os-auth-type none --os-endpoint {url} stack show we");
    let patient = answering(Duration::ZERO);
    let mut kiln = folder.kiln(&[]);
    kiln.env("KILN_COMPLETE_TIMEOUT", "60");
    assert_eq!(completed(kiln, &line), "website");
    patient.join().unwrap();
    answering(Duration::from_secs(10));
    assert_eq!(completed(folder.kiln(&[]), &line), "");
}
