//! `kiln dashboard`: the dashboard for one user, on the own machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kiln_testcloud::Testcloud;

use crate::plan::local;
use crate::processes::cluster::{Cluster, Limits};
use crate::run::{Folder, Ran};
use crate::wire::send;

const ONE: &str = "heat_template_version: 2018-08-31\nresources: {one: {type: OS::Heat::RandomString}}\n";

/// A running dashboard.
struct Page {
    child: Child,
    host: String,
    /// What follows the host in the address.
    path: String,
}

impl Page {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (host, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    /// The cookie of the session.
    fn open(&self) -> String {
        let answer = send(&self.host, "GET", self.path.split('#').next().unwrap(), &[], "");
        assert!(answer.starts_with("HTTP/1.1 302"), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Asks the API; `project` is what the page shows.
    fn get(&self, path: &str, cookie: &str, project: &str) -> String {
        send(&self.host, "GET", path, &[("cookie", cookie), ("x-kiln-dashboard", project)], "")
    }

    /// The project of the session.
    fn project(&self, cookie: &str) -> String {
        let session = self.get("/dashboard/session", cookie, "-");
        let body: serde_json::Value = serde_json::from_str(session.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        body["session"]["project"]["id"].as_str().unwrap().to_owned()
    }

    /// Ctrl-C; the exit code.
    fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_looks_at_a_service_that_has_no_dashboard() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let folder = Folder::new("dashboard-alone");
    let url = cluster.url().replace("/v1/%(project_id)s", "");
    folder.write("one.yaml", ONE);
    let kiln = |args: &[&str]| folder.client(&cluster.cloud, &url, args);
    Ran::from(kiln(&["stack", "create", "-t", "one.yaml", "--wait", "one"]).output().unwrap()).ok();
    let page = Page::start(kiln(&["dashboard", "--no-browser", "one"]));
    assert!(page.path.contains("#/stacks/one/"), "{}", page.path);
    let cookie = page.open();
    let project = page.project(&cookie);
    let listed = page.get("/dashboard/api/stacks", &cookie, &project);
    assert!(listed.starts_with("HTTP/1.1 200") && listed.contains("\"stack_name\":\"one\""), "{listed}");
    assert!(page.get("/dashboard/", "", "-").contains("<script"), "the page itself");
    // Events come as they happen.
    let mut stream = TcpStream::connect(&page.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "GET /dashboard/api/events HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\ncookie: {cookie}\r\n\
         x-kiln-dashboard: {project}\r\n\r\n",
        page.host
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    Ran::from(kiln(&["stack", "delete", "--yes", "one"]).output().unwrap()).ok();
    while !seen.contains("DELETE") {
        let length = match stream.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.unwrap(),
        };
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(seen.contains("text/event-stream"), "{seen}");
    assert_eq!(page.stop(), Some(0), "a stream does not hold it");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stacks_of_this_machine_are_shown_without_a_service() {
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("dashboard-local"));
    folder.write("one.yaml", ONE);
    local(&cloud, &folder, &["stack", "create", "-t", "one.yaml", "one"]).ok();
    let page = Page::start(folder.client(&cloud, "http://localhost", &["--local", "dashboard", "--no-browser"]));
    let cookie = page.open();
    let project = page.project(&cookie);
    let listed = page.get("/dashboard/api/stacks", &cookie, &project);
    assert!(listed.contains("\"stack_name\":\"one\""), "{listed}");
    let flavors = page.get("/dashboard/choices/nova.flavor", &cookie, &project);
    assert!(flavors.starts_with("HTTP/1.1 200") && flavors.contains("m1.small"), "{flavors}");
    let again = send(&page.host, "GET", &page.path, &[], "");
    assert!(again.starts_with("HTTP/1.1 403") && again.contains("can be used once"), "{again}");
    assert_eq!(page.stop(), Some(0));
}

/// The key is among the arguments of the browser, where all users of the machine can read it.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_of_the_machine_cannot_use_the_key() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("dashboard-users"));
    let page = Page::start(folder.client(&cloud, "http://localhost", &["--local", "dashboard", "--no-browser"]));
    let script = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET {} HTTP/1.1\\r\\nhost: {}\\r\\nconnection: close\\r\\n\\r\\n' >&3; cat <&3",
        page.host.replace(':', "/"),
        page.path,
        page.host
    );
    let stranger = Command::new("bash").args(["-c", &script]).uid(65534).output().unwrap();
    let answer = String::from_utf8(stranger.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("of another user"), "{answer} {:?}", stranger.stderr);
    assert!(!answer.contains("set-cookie"), "{answer}");
    // The key is still good for its user.
    page.open();
    assert_eq!(page.stop(), Some(0));
}
