//! Reports of a running service, systemd's notifications, man pages.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_report_tells_what_runs_and_what_it_waits_for() {
    let folder = Folder::new("report");
    let cloud = Testcloud::builder().build_time(Duration::from_secs(30)).start().await.unwrap();
    let log_dir = folder.path().join("reports");
    std::fs::create_dir(&log_dir).unwrap();
    let more = format!("unknown_option = 1\n[oslo_reports]\nlog_dir = {}\n", log_dir.display());
    let config = folder.configured(&cloud, &more);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    folder.write(
        "web.yaml",
        "heat_template_version: 2018-08-31\nresources:\n  server: {type: OS::Nova::Server, properties: {image: cirros, \
         flavor: m1.tiny}}\n  after: {type: OS::Heat::Value, properties: {value: {get_attr: [server, name]}}}\n",
    );
    let create = folder.client(&cloud, &url, &["stack", "create", "-t", "web.yaml", "web"]).output();
    Ran::from(create.unwrap()).ok();

    let end = Instant::now() + Duration::from_secs(20);
    let outside = loop {
        let report = folder.run(&["manage", "report", "--config-file", &config]).ok();
        if report.contains("waits for object ") {
            break report;
        }
        assert!(Instant::now() < end, "{report}");
    };
    assert!(outside.contains(": up, ") && outside.contains(" 1 leases\n"), "{outside}");
    folder.run(&["manage", "report", "--pid", &service.pid()]).ok();
    let report = loop {
        let file = std::fs::read_dir(&log_dir).unwrap().next();
        let text = file.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap_or_default();
        if text.contains("[heat_api] bind_port = 0") {
            break text;
        }
        assert!(Instant::now() < end, "no report in {}: {text}\n{}", log_dir.display(), service.log());
        std::thread::sleep(Duration::from_millis(50));
    };
    for text in [
        "Guru Meditation",
        "product = Kiln",
        "VmRSS = ",
        "alive tasks = ",
        "connections to the database for writes = 1, ",
        "parsed templates, environments and files = ",
        "web CREATE_IN_PROGRESS: engine ",
        "    server OS::Nova::Server CREATE_IN_PROGRESS: waits for object ",
        "WARN",
        "unknown_option is not an option",
        "[keystone_authtoken] password = ***",
    ] {
        assert!(report.contains(text), "{text} is not in\n{report}");
    }
    assert!(!report.contains(&format!("= {}\n", cloud.users().heat.password)), "{report}");
    assert!(!report.contains("0123456789abcdef"), "{report}");
    // It still works.
    assert!(service.log().contains("report written"));
    service.signal("KILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_of_start_life_and_end() {
    let folder = Folder::new("systemd");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = folder.kiln(&["serve", "--config-file", &config]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    let service = Running::start(command);
    let next = || {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(next(), "READY=1");
    service.wait_for("read configuration file");
    for _ in 0..3 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    service.signal("TERM");
    let end = Instant::now() + Duration::from_secs(20);
    while next() != "STOPPING=1" {
        assert!(Instant::now() < end);
    }
    assert_eq!(service.wait().0, 0);
}

#[test]
fn every_command_has_a_man_page() {
    let folder = Folder::new("man");
    folder.run(&["man", "pages"]).ok();
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert!(page("kiln.1").contains(".SH NAME\nkiln"));
    assert!(page("kiln-stack-create.1").contains("\\-\\-template") || page("kiln-stack-create.1").contains("template"));
    assert!(page("kiln-manage-doctor.1").contains("doctor"));
    assert!(page("kiln.conf.5").contains(".B max_template_size"));
}
