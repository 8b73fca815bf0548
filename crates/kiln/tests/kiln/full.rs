//! A database without room: a limit of the size of files stands for a full disk.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::Folder;
use crate::running::Running;
use crate::wire::get;

pub(crate) fn health(url: &str) -> String {
    get(url.trim_start_matches("http://"), "/healthcheck")
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

/// A small file system, which only root can mount.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(place: &'a Path) -> Option<Self> {
        std::fs::create_dir(place).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(place).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(place))
    }

    /// Uses all its space.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.0.join("filler")).unwrap();
        for size in [4096, 1] {
            while filler.write_all(&vec![1; size]).is_ok() {}
        }
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

/// An API without an engine that nobody sends a request that changes something.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_only_reads_sees_a_full_disk() {
    let folder = Folder::new("full-reader");
    let place = folder.path().join("disk");
    let Some(disk) = Disk::mount(&place) else {
        println!("no small file system can be mounted: left out");
        return;
    };
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    let text = std::fs::read_to_string(&config).unwrap();
    let (here, there) = (format!("{}/kiln.db", folder.path().display()), format!("{}/kiln.db", place.display()));
    std::fs::write(&config, text.replace(&here, &there)).unwrap();
    folder.run(&["manage", "db", "sync", "--config-file", &config]).ok();
    let service = Running::start(folder.kiln(&["api", "--config-file", &config]));
    let url = service.url();
    disk.fill();
    let full = health(&url);
    assert!(full.starts_with("HTTP/1.1 503") && full.contains("database: full\n"), "{full}\n{}", service.log());
    service.signal("KILL");
}
