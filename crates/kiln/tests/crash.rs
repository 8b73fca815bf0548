//! kill -9 of the only engine in the middle of a create: another one, started afterwards, completes the stack, with
//! nothing made twice and nothing lost.
//!
//! `kiln api` and `kiln engine` are processes of their own on one database (SQLite, and the servers that
//! `KILN_TEST_DATABASES` names), the cloud is simulated in the test. A seed chooses when the engine dies.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kiln_testcloud::{THREE_TIER, Testcloud};

const KILN: &str = env!("CARGO_BIN_EXE_kiln");
const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/three-tier.yaml");

/// A process that does not outlive the test.
struct Process(Child);

impl Process {
    fn start(role: &str, config: &Path) -> Self {
        let child = Command::new(KILN)
            .args([role, "--config-file"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("kiln starts");
        Self(child)
    }

    /// SIGKILL: nothing is finished, nothing given back.
    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("gone");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A database, and where in a create the engine dies: after so many requests to the cloud.
struct Scene {
    database: String,
    deaths: Vec<usize>,
}

struct Bench {
    cloud: Testcloud,
    config: PathBuf,
    port: u16,
    _folder: tempfile::TempDir,
    _api: Process,
    engine: Process,
}

impl Bench {
    async fn new(database: &str) -> Self {
        let cloud = Testcloud::builder()
            .latency(Duration::from_millis(5))
            .build_time(Duration::from_millis(400))
            .start()
            .await
            .expect("a simulated cloud");
        let folder = tempfile::tempdir().expect("a folder");
        let database = match database {
            "sqlite" => format!("sqlite://{}", folder.path().join("kiln.db").display()),
            url => url.to_owned(),
        };
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let heat = cloud.users().heat;
        let config = folder.path().join("kiln.conf");
        let text = format!(
            "[DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\n\
             [database]\nconnection = {database}\n\
             [heat_api]\nbind_host = 127.0.0.1\nbind_port = {port}\n\
             [kiln]\nlease = 1\n\
             [keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n\
             user_domain_name = Default\nproject_domain_name = Default\n",
            cloud.auth_url(),
            heat.user,
            heat.password,
            heat.project,
        );
        std::fs::write(&config, text).expect("written");
        let api = Process::start("api", &config);
        let engine = Process::start("engine", &config);
        let bench = Self { cloud, config, port, _folder: folder, _api: api, engine };
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "the API does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bench
    }

    /// A command of the client, as the user demo; its output.
    async fn client(&self, args: &[&str]) -> String {
        let demo = self.cloud.users().demo;
        let output = tokio::process::Command::new(KILN)
            .args(args)
            .env_clear()
            .env("HOME", self.config.parent().expect("a folder"))
            .env("OS_AUTH_URL", self.cloud.auth_url())
            .env("OS_USERNAME", demo.user)
            .env("OS_PASSWORD", demo.password)
            .env("OS_PROJECT_NAME", demo.project)
            .env("OS_USER_DOMAIN_NAME", "Default")
            .env("OS_PROJECT_DOMAIN_NAME", "Default")
            .env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", format!("http://127.0.0.1:{}/v1/%(project_id)s", self.port))
            .output()
            .await
            .expect("kiln runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The stack's status when it is not in progress any more.
    async fn settled(&self) -> String {
        let start = Instant::now();
        loop {
            let status = self.client(&["stack", "show", "crash", "-f", "value", "-c", "stack_status"]).await;
            if !status.contains("IN_PROGRESS") {
                return status.trim().to_owned();
            }
            assert!(start.elapsed() < Duration::from_secs(90), "stuck in {status}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn survives(scene: &Scene, seed: u64) {
    let mut bench = Bench::new(&scene.database).await;
    let before = bench.cloud.snapshot();
    bench.client(&["stack", "create", "-t", TEMPLATE, "crash"]).await;
    for requests in &scene.deaths {
        let from = bench.cloud.journal().list().len();
        let start = Instant::now();
        while bench.cloud.journal().list().len() < from + requests && start.elapsed() < Duration::from_secs(5) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bench.engine.kill();
        bench.engine = Process::start("engine", &bench.config);
    }
    let place = format!("{}, seed {seed}, killed after {:?} requests", scene.database, scene.deaths);
    assert_eq!(bench.settled().await, "CREATE_COMPLETE", "{place}");
    let (old, new) = (before.counts(), bench.cloud.snapshot().counts());
    for (kind, count) in THREE_TIER {
        assert_eq!(new[kind] - old[kind], count, "{place}: {kind}");
    }
    bench.client(&["stack", "delete", "--yes", "--wait", "crash"]).await;
    assert_eq!(before.added_in(&bench.cloud.snapshot()), Vec::<String>::new(), "{place}: left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_completes_although_its_engine_is_killed() {
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    let databases: Vec<&str> =
        std::iter::once("sqlite").chain(servers.split_whitespace().filter(|url| url.starts_with("postgres"))).collect();
    let seeds: u64 = std::env::var("KILN_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for database in databases {
        for seed in 0..seeds {
            // Points spread over the create, which takes some 70 requests; every other time it dies twice.
            let draw = |n: u64| usize::try_from((seed + n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58).unwrap_or(7) + 1;
            let deaths = if seed % 2 == 0 { vec![draw(1)] } else { vec![draw(1) / 2, draw(2)] };
            survives(&Scene { database: database.to_owned(), deaths }, seed).await;
        }
    }
}
