//! The console commands of Heat, by their own names.

use std::io::Write as _;
use std::process::{Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::running::Running;

/// A link with a name of Heat.
fn heats(folder: &Folder, name: &str, args: &[&str]) -> Command {
    let link = folder.path().join("bin").join(name);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kiln"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.args(args).current_dir(folder.path()).stdin(Stdio::null()).env_clear().env("HOME", folder.path());
    command
}

fn asked(folder: &Folder, cloud: &Testcloud, url: &str, args: &[&str]) -> Ran {
    folder.client(cloud, url, args).output().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn heat_manage_is_that_of_heat() {
    let folder = Folder::new("heat-manage");
    let cloud = Testcloud::builder().build_time(std::time::Duration::from_secs(8)).start().await.unwrap();
    let config = folder.configured(&cloud, "");
    let manage = |args: &[&str]| {
        let ran = heats(&folder, "heat-manage", &[&["--config-file", &config], args].concat()).output();
        Ran::from(ran.unwrap())
    };
    let is = |ran: &Ran, code: i32, out: &str, err: &str| {
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, out, err));
    };
    is(&manage(&["db_version"]), 0, "None\n", "");
    let check = |code: i32, text: &str| {
        let ran = heats(&folder, "heat-status", &["--config-file", &config, "upgrade", "check"]).output();
        let ran = Ran::from(ran.unwrap());
        assert!(ran.code == code && ran.out.contains(text) && ran.err.is_empty(), "{ran:?}");
    };
    // The file does not exist: `mode=rwc` creates it without tables.
    check(1, "| Result: Warning ");
    is(&manage(&["db_sync"]), 0, "", "");
    let version = manage(&["db_version"]).ok();
    assert!(version.trim().parse::<u32>().unwrap() >= 9, "{version}");
    check(0, "| Check: Encryption Key ");
    let refused = "ERROR: You requested an sqlalchemy-migrate database version; this is no longer supported\n";
    is(&manage(&["db_sync", "25"]), 1, "", refused);
    is(&manage(&["purge_deleted", "many"]), 1, "", "ERROR: age should be an integer\n");
    is(&manage(&["purge_deleted", "-g", "hours", "-p", "p", "-b", "5", "1"]), 0, "", "");
    assert_eq!(manage(&["purge_deleted", "-g", "weeks"]).code, 2);
    is(&manage(&["update_params", "encrypt"]), 0, "", "");
    is(&manage(&["resource_data_list", "7"]), 1, "", "ERROR: no resource data found\n");
    is(&manage(&["migrate_convergence_1", "7"]), 1, "", "ERROR: Stack with id 7 can not be found.\n");
    assert!(manage(&["migrate_properties_data"]).ok().starts_with("This command has been deprecated"));

    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let template = "heat_template_version: 2018-08-31\nresources:\n  word: {type: OS::Heat::RandomString}\n  \
                    server: {type: OS::Nova::Server, properties: {image: cirros, flavor: m1.tiny}}\n";
    folder.write("web.yaml", template);
    let first = service.url();
    asked(&folder, &cloud, &first, &["stack", "create", "-t", "web.yaml", "web"]).ok();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let rows = |url: &str| asked(&folder, &cloud, url, &["stack", "resource", "list", "web", "-f", "json"]).json();
    let state = |rows: &serde_json::Value, name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["resource_name"] == name).unwrap().clone();
        row["resource_status"].as_str().unwrap().to_owned()
    };
    while state(&rows(&first), "server") != "CREATE_IN_PROGRESS" || state(&rows(&first), "word") != "CREATE_COMPLETE" {
        assert!(std::time::Instant::now() < end, "{}", service.log());
    }
    let id = asked(&folder, &cloud, &first, &["stack", "show", "web", "-c", "id", "-f", "value"]).ok();
    let listed = manage(&["service", "list"]).ok();
    assert!(listed.starts_with("Hostname         Binary           Engine_Id") && listed.contains(" up "), "{listed}");
    // The process is killed: its engine stays in the list, and the stack stays in progress.
    service.signal("KILL");
    drop(service);
    is(&manage(&["migrate_convergence_1", id.trim()]), 0, "", "");
    let reset = |answer: &str| {
        let mut command = heats(&folder, "heat-manage", &["--config-file", &config, "reset_stack_status", id.trim()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap()).ok()
    };
    assert!(reset("n\n").ends_with("Continue ? [y/N]\n"));
    reset("yes\n");
    let service = Running::start(folder.kiln(&["api", "--config-file", &config]));
    let second = service.url();
    let show = asked(&folder, &cloud, &second, &["stack", "show", "web", "-f", "json"]).json();
    assert_eq!(show["stack_status"], "CREATE_FAILED");
    assert_eq!(show["stack_status_reason"], "Stack status manually reset");
    let rows = rows(&second);
    assert_eq!((state(&rows, "server").as_str(), state(&rows, "word").as_str()), ("CREATE_FAILED", "CREATE_COMPLETE"));
    is(&manage(&["service", "clean"]), 0, "Dead engines are removed.\n", "");
    // A deletion works afterwards.
    drop(service);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let third = service.url();
    asked(&folder, &cloud, &third, &["stack", "delete", "--yes", "--wait", "web"]).ok();
    drop(service);
    is(&manage(&["purge_deleted", "0"]), 0, "", "");
    is(
        &manage(&["migrate_convergence_1", id.trim()]),
        1,
        "",
        &format!("ERROR: Stack with id {} can not be found.\n", id.trim()),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_options_of_oslo_log_are_those_of_heat() {
    let folder = Folder::new("oslo-options");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "log_file = service.log\n");
    let run = |name: &str, args: &[&str]| Ran::from(heats(&folder, name, args).output().unwrap());
    let manage = |args: &[&str]| run("heat-manage", &[&["--config-file", &config], args, &["db_sync"]].concat());
    for name in ["heat-manage", "heat-status", "heat-keystone-setup-domain"] {
        assert_eq!(run(name, &["--version"]).ok(), format!("{}\n", env!("CARGO_PKG_VERSION")));
        let script = run(name, &["--shell_completion", "bash"]).ok();
        let line = script.lines().find(|line| line.trim_start().starts_with("complete -F ")).unwrap();
        assert!(line.ends_with(&format!(" {name}")), "{line}");
    }
    for name in ["heat-manage", "heat-status"] {
        let ran = run(name, &[]);
        assert!(ran.code == 2 && ran.out.is_empty() && ran.err.contains(&format!("Usage: {name} ")), "{ran:?}");
    }
    // The log file of the services is not that of a command.
    let ran = manage(&["--nodebug", "--nouse-json", "--nouse-syslog", "--syslog-log-facility", "LOG_USER"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert!(!folder.path().join("service.log").exists());
    manage(&["--log-dir", ".", "-d"]).ok();
    assert!(folder.path().join("service.log").exists());
    let ran = manage(&["--logfile", "own.log", "--debug", "--use-json"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert!(folder.path().join("own.log").exists());
    for (args, option) in [
        (&["--use-syslog"][..], "--use-syslog"),
        (&["--log-config", "a.conf"], "--log-config-append"),
        (&["--log-date-format", "%Y"], "--log-date-format"),
    ] {
        let ran = manage(args);
        assert!(ran.code == 1 && ran.err.starts_with(&format!("ERROR: {option} is not supported: ")), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heat_keystone_setup_domain_is_that_of_heat() {
    let folder = Folder::new("setup-domain");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut command = heats(&folder, "heat-keystone-setup-domain", &["--stack-user-domain-name", "stacks"]);
    command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", "admin").env("OS_PASSWORD", "password");
    command.env("OS_PROJECT_NAME", "admin").env("HEAT_DOMAIN_PASSWORD", "pw");
    let out = Ran::from(command.output().unwrap()).ok();
    assert!(
        out.starts_with("\nPlease update your heat.conf with the following in [DEFAULT]\n\nstack_user_domain_id="),
        "{out}"
    );
    assert!(out.ends_with("stack_domain_admin=heat_stack_admin\nstack_domain_admin_password=pw\n"), "{out}");
}
