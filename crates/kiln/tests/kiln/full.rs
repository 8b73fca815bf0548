//! A database without room: a limit of the size of files stands for a full disk.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::Folder;
use crate::running::Running;

fn health(url: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.write_all(b"GET /healthcheck HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_shows_in_healthcheck() {
    let folder = Folder::new("full");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    folder.run(&["manage", "db", "sync", "--config-file", &config]).ok();
    let mut command = Command::new("bash");
    // Blocks of 1024 bytes. The signal would end the process.
    let limited =
        format!("trap '' XFSZ; ulimit -f 2500; exec {} serve --config-file {config}", env!("CARGO_BIN_EXE_kiln"));
    command.args(["-c", &limited]).stdin(Stdio::null()).env_clear().env("HOME", folder.path());
    let service = Running::start(command);
    let url = service.url();
    assert!(health(&url).starts_with("HTTP/1.1 200") && health(&url).contains("database: up\n"), "{}", health(&url));
    let create = |number: usize| {
        let text = format!("{number}").repeat(400_000 / format!("{number}").len());
        let template =
            folder.write("large.yaml", &format!("heat_template_version: 2018-08-31\ndescription: '{text}'\n"));
        let name = format!("s{number}");
        folder.client(&cloud, &url, &["stack", "create", "-t", template.to_str().unwrap(), &name]).output().unwrap()
    };
    let refused = (10..40).map(create).find(|created| !created.status.success()).expect("a full disk");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!error.contains(&folder.path().display().to_string()), "{error}");
    let full = health(&url);
    assert!(full.starts_with("HTTP/1.1 503") && full.contains("database: full\n"), "{full}\n{}", service.log());
    assert!(service.log().contains("ERROR the database has no room"), "{}", service.log());
    service.signal("KILL");
}
