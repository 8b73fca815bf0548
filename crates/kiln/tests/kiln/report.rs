//! Reports of a running service, systemd's notifications, man pages.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use kiln_testcloud::{Account, Testcloud};

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire::received;

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
    service.wait_for("report written");
    service.signal("KILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_asks_the_api_for_a_report() {
    let folder = Folder::new("asked-report");
    let cloud = Testcloud::builder().start().await.unwrap();
    let socket = folder.path().join("api.sock");
    let config = folder.configured(&cloud, &format!("unknown_option = 1\n[kiln]\napi_socket = {}\n", socket.display()));
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let url = url.split(',').next().unwrap();
    let ask = |account: &Account, args: &[&str]| -> Ran {
        let mut command = folder.kiln(&[&["manage", "report"], args].concat());
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", account.user);
        command.env("OS_PASSWORD", account.password).env("OS_PROJECT_NAME", account.project);
        command.env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", format!("{url}/v1/%(project_id)s"));
        command.output().unwrap().into()
    };
    let users = cloud.users();
    let at_socket = format!("unix:{}", socket.display());
    for args in [&["--service"][..], &["--service", url], &["--service", &at_socket]] {
        let text = ask(&users.admin, args).ok();
        for expected in [
            "Guru Meditation",
            &format!("pid = {}\n", service.pid()),
            "alive tasks = ",
            ": up, seen ",
            "unknown_option is not an option",
            "[keystone_authtoken] password = ***",
        ] {
            assert!(text.contains(expected), "{args:?}: {expected} is not in\n{text}");
        }
        assert!(!text.contains(&format!("= {}", users.heat.password)) && !text.contains("0123456789abcdef"), "{text}");
        let refused = ask(&users.demo, args);
        assert!(refused.code == 1 && refused.out.is_empty(), "{refused:?}");
        assert!(refused.err.contains("You are not authorized to use service:report."), "{refused:?}");
    }
    let stranger = ask(&Account { password: "wrong", ..users.admin }, &["--service", url]);
    assert!(stranger.code == 1 && stranger.out.is_empty(), "{stranger:?}");
    for (args, code, expected) in [
        (&["--service", "localhost:8004"][..], 1, "use http://HOST:PORT, https://HOST:PORT or unix:/PATH"),
        (&["--service", "http://127.0.0.1:1"], 4, "127.0.0.1:1"),
        (&["--service", "unix:/nowhere/api.sock"], 4, "kiln.invalid"),
        (&["--service", url, "--pid", "1"], 2, "cannot be used with"),
        (&["--service", url, "--config-file", &config], 2, "cannot be used with"),
    ] {
        let refused = ask(&users.admin, args);
        assert!(refused.code == code && refused.err.contains(expected), "{args:?}: {refused:?}");
    }
    assert_eq!(service.stop().0, 0);
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
        let length = received(&socket, &mut buffer);
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
