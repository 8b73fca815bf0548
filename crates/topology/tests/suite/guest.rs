//! The user data of servers, run on this machine: the operations run in their order, and the result is reported to the
//! address of the wait condition, which the test serves.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_topology::TypeFiles;
use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{Lowered, by_cloud_init, lower};
use kiln_topology::tosca;
use kiln_value::{Map, Value, text};

fn service(nodes: &str) -> Lowered {
    let text =
        format!("tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n{nodes}");
    let files = HashMap::from([("t.yaml".to_owned(), text)]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    lower(&graph, "t.yaml").unwrap()
}

fn components(text: &str) -> Lowered {
    let library = Library::of(&TypeFiles::shipped().unwrap()).unwrap();
    let read = blueprint::read(text, &library).map_err(|(_, refusals)| refusals).unwrap();
    lower(&read.graph().unwrap().0, "heat.yaml").unwrap()
}

/// Resolves functions as the service does.
fn resolve(value: &mut Value, files: &[(&str, &str)]) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| resolve(item, files)),
        Value::Map(map) => {
            map.values_mut().for_each(|item| resolve(item, files));
            if let Some(Value::Str(name)) = map.get("get_file") {
                *value = files.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}")).1.into();
            } else if let Some([Value::Str(by), Value::List(items)]) = map.get("list_join").and_then(Value::as_list) {
                let items: Vec<String> = items.iter().map(text::str).collect();
                *value = items.join(by).into();
            } else if let Some(replace) = map.get("str_replace") {
                let mut result = replace.str_at("template").unwrap().to_owned();
                for (name, value) in replace.get("params").unwrap().as_map().unwrap() {
                    let value = value.as_str().map_or_else(|| text::json(value), str::to_owned);
                    result = result.replace(name, &value);
                }
                *value = result.into();
            }
        }
        _ => {}
    }
}

/// A guest: its folder, and what it reported.
struct Guest {
    folder: PathBuf,
    report: Value,
}

impl Guest {
    /// Runs the user data of `server` with these files in a shell.
    fn run(name: &str, lowered: Lowered, server: &str, files: &[(&str, &str)]) -> Self {
        Self::start(name, lowered, server, files, |folder| {
            let mut command = Command::new("sh");
            command.arg(folder.join("user-data")).env("KILN_FOLDER", folder);
            command
        })
    }

    /// Runs it as root in a root file system of its own, with the programs of this machine and other ones before these.
    fn run_in_root(name: &str, lowered: Lowered, server: &str, files: &[(&str, &str)], tools: &[(&str, &str)]) -> Self {
        Self::start(name, lowered, server, files, |folder| {
            for place in ["usr", "dev", "etc/yum.repos.d", "opt/bin", "tmp", "var/lib/jetty/webapps"] {
                std::fs::create_dir_all(folder.join(place)).unwrap();
            }
            for link in ["bin", "lib", "lib64", "sbin"] {
                symlink(format!("usr/{link}"), folder.join(link)).unwrap();
            }
            for (tool, script) in tools {
                let path = folder.join("opt/bin").join(tool);
                std::fs::write(&path, script).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            std::fs::create_dir_all(folder.join("opt/usual")).unwrap();
            for tool in USUAL {
                symlink(format!("/usr/bin/{tool}"), folder.join("opt/usual").join(tool)).unwrap();
            }
            let script = "mount --rbind /usr usr && mount --rbind /dev dev && exec env -i PATH=/opt/bin:/opt/usual \
                          /usr/sbin/chroot . /bin/sh /user-data";
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "sh", "-ec", script]).current_dir(folder);
            command
        })
    }

    fn start(
        name: &str,
        lowered: Lowered,
        server: &str,
        files: &[(&str, &str)],
        command: impl FnOnce(&Path) -> Command,
    ) -> Self {
        let lowered = by_cloud_init(lowered).unwrap();
        let resources = lowered.template.get("resources").unwrap().as_map().unwrap();
        assert!(resources.values().all(|r| !r.str_at("type").unwrap().contains("SoftwareDeployment")));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/signal", listener.local_addr().unwrap());
        let mut user_data = resources[server].get("properties").unwrap().get("user_data").unwrap().clone();
        let of_handle = |value: &mut Value| {
            let params = value.as_map_mut().unwrap().get_mut("str_replace").unwrap().as_map_mut().unwrap();
            let params = params.get_mut("params").unwrap().as_map_mut().unwrap();
            params.insert("@KILN_URL@".to_owned(), url.into());
            params.insert("@KILN_TOKEN@".to_owned(), "secret".into());
        };
        of_handle(&mut user_data);
        resolve(&mut user_data, files);
        let folder = std::env::temp_dir().join(format!("kiln-guest-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("user-data"), user_data.as_str().unwrap()).unwrap();
        let mut guest = command(&folder).spawn().unwrap();
        let begin = reported(&listener);
        assert_eq!((begin.str_at("id"), begin.str_at("status")), (Some("begin"), Some("SUCCESS")));
        let report = reported(&listener);
        assert_eq!(report.str_at("id"), Some("end"));
        guest.wait().unwrap();
        Self { folder, report }
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn assert_success(&self) {
        assert_eq!(self.report.str_at("status"), Some("SUCCESS"), "{:?}", self.report);
    }

    /// The reason of a failure.
    fn failure(&self) -> &str {
        assert_eq!(self.report.str_at("status"), Some("FAILURE"), "{:?}", self.report);
        self.report.str_at("reason").unwrap()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// The programs that every image has. Others of this machine must not be found.
const USUAL: [&str; 19] = [
    "sh", "python3", "cat", "tar", "gzip", "base64", "sed", "mktemp", "chmod", "mkdir", "rm", "basename", "ls",
    "install", "printf", "pwd", "env", "dirname", "id",
];

/// The body of the next request to the address of the wait condition.
fn reported(listener: &TcpListener) -> Value {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut has_token) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        has_token |= lower.trim() == "x-auth-token: secret";
        if line.trim().is_empty() {
            break;
        }
    }
    assert!(has_token);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    kiln_yaml::json::parse(std::str::from_utf8(&body).unwrap()).unwrap()
}

const TWO: &str = "    app:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}, {dependency: base}]
      interfaces:
        Standard:
          create: {implementation: second.sh, inputs: {word: \"it's $HOME\", me: {get_attribute: [HOST, private_address]}}}
    base:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}]
      interfaces: {Standard: {start: first.sh}}
    server: {type: tosca.nodes.Compute}
";

#[test]
fn operations_run_in_their_order_with_their_inputs() {
    let first = "#!/bin/sh\necho first >> \"$KILN_FOLDER/out\"\n";
    let second = "#!/bin/sh\nprintf '%s|%s\\n' \"$word\" \"$me\" >> \"$KILN_FOLDER/out\"\n";
    let guest = Guest::run("order", service(TWO), "server", &[("first.sh", first), ("second.sh", second)]);
    guest.assert_success();
    assert_eq!(guest.text("out"), "first\nit's $HOME|127.0.0.1\n");
}

#[test]
fn a_failure_names_the_operation_its_exit_code_and_the_end_of_its_output() {
    let first = "#!/bin/sh\nseq 1000\necho 'no such package'\nexit 3\n";
    let second = "#!/bin/sh\ntouch \"$KILN_FOLDER/out\"\n";
    let guest = Guest::run("failure", service(TWO), "server", &[("first.sh", first), ("second.sh", second)]);
    let reason = guest.failure();
    assert!(reason.starts_with("base_start failed with exit code 3: "), "{reason}");
    assert!(reason.ends_with("\n999\n1000\nno such package") && reason.len() < 1100, "{reason}");
    assert!(!guest.folder.join("out").exists());
    // What cannot even begin is reported too.
    let guest = Guest::run("broken", service(TWO), "server", &[("first.sh", "#!/no/such/shell\n"), ("second.sh", "")]);
    assert_eq!(guest.failure(), "base_start cannot be run: No such file or directory");
}

const RELATED: &str = "    app:
      type: tosca.nodes.SoftwareComponent
      requirements:
      - host: server
      - database:
          node: db
          relationship:
            type: tosca.relationships.ConnectsTo
            interfaces:
              Configure:
                pre_configure_source: {implementation: step.sh, inputs: {name: pre_source}}
                post_configure_target: {implementation: step.sh, inputs: {name: post_target}}
                post_configure_source:
                  implementation: step.sh
                  inputs: {name: post_source, more: {get_operation_output: [TARGET, Standard, create, secret]}}
      interfaces:
        Standard:
          create: {implementation: step.sh, inputs: {name: app_create}}
          configure:
            implementation: step.sh
            inputs: {name: app_configure, more: {concat: ['url:', {get_operation_output: [SELF, Standard, create, url]}]}}
          start: {implementation: step.sh, inputs: {name: app_start}}
    db:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}]
      interfaces:
        Standard:
          create: {implementation: step.sh, inputs: {name: db_create}}
          configure: {implementation: step.sh, inputs: {name: db_configure}}
          start: {implementation: step.sh, inputs: {name: db_start}}
    server: {type: tosca.nodes.Compute}
";

const STEP: &str = "#!/bin/sh
echo \"$name $more\" >> \"$KILN_FOLDER/out\"
echo \"$name: secret\" > \"$heat_outputs_path.secret\"
echo \"http://$name/\" > \"$heat_outputs_path.url\"
";

#[test]
fn relationships_are_configured_between_their_nodes_and_outputs_are_passed_on() {
    let guest = Guest::run("related", service(RELATED), "server", &[("step.sh", STEP)]);
    guest.assert_success();
    let out = guest.text("out");
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    let place = |line: &str| lines.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}: {out}"));
    let behind = [
        ("db_create", "db_configure"),
        ("db_configure", "post_target"),
        ("post_target", "db_start"),
        ("db_start", "pre_source"),
        ("app_create", "pre_source"),
        ("pre_source", "app_configure url:http://app_create/"),
        ("app_configure url:http://app_create/", "post_source db_create: secret"),
        ("post_source db_create: secret", "app_start"),
    ];
    for (first, second) in behind {
        assert!(place(first) < place(second), "{first}, {second}: {out}");
    }
    assert_eq!(lines.len(), 9);
    // An output that is not written is a failure of its operation.
    let guest = Guest::run("unwritten", service(RELATED), "server", &[("step.sh", "#!/bin/sh\n")]);
    assert_eq!(guest.failure(), "db_create has not written its output secret.");
}

#[test]
fn relationships_are_configured_before_the_start_of_nodes_without_configure() {
    let without =
        |node: &str| format!("          configure: {{implementation: step.sh, inputs: {{name: {node}_configure}}}}\n");
    let app = "          configure:\n            implementation: step.sh\n            inputs: {name: app_configure, more: {concat: \
               ['url:', {get_operation_output: [SELF, Standard, create, url]}]}}\n";
    let text = RELATED.replace(app, "").replace(&without("db"), "");
    let guest = Guest::run("started", service(&text), "server", &[("step.sh", STEP)]);
    guest.assert_success();
    let out = guest.text("out");
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    let place = |line: &str| lines.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}: {out}"));
    assert_eq!(lines.len(), 7, "{out}");
    for (first, second) in [("app_create", "pre_source"), ("pre_source", "app_start"), ("post_target", "db_start")] {
        assert!(place(first) < place(second), "{first}, {second}: {out}");
    }
}

#[test]
fn outputs_outside_of_their_server_are_refused() {
    let other = RELATED.replace("requirements: [{host: server}]", "requirements: [{host: other}]");
    let refused = by_cloud_init(service(&format!("{other}    other: {{type: tosca.nodes.Compute}}\n"))).unwrap_err();
    assert_eq!(
        refused[0].message,
        "An output of db_create_deploy is used outside of its server, where cloud-init cannot return it."
    );
}

/// Whether a root file system of its own can be made here.
fn has_namespaces() -> bool {
    Command::new("unshare").args(["--map-root-user", "--mount", "true"]).status().is_ok_and(|status| status.success())
}

/// A tool that writes its name, arguments and what it reads into a file.
const TOOL: &str = "#!/bin/sh\necho \"$(basename \"$0\") $*\" >> /ran\n";

/// An archive with a file `index.php`, in base64.
fn archive() -> String {
    let script = "cd \"$(mktemp -d)\" && echo hello > index.php && tar cz index.php | base64 -w0";
    let made = Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(made.stdout).unwrap()
}

#[test]
fn the_software_of_blueprints_is_installed() {
    if !has_namespaces() {
        println!("skipped: no user namespaces");
        return;
    }
    let lowered = components(
        "components:\n  web:\n    type: server\n    requires:\n    - run: {type: rpm, rpms: [php, httpd], repos: \
         ['http://rpms/']}\n    - unpack: {type: tgz, content: app.tgz, target: /var/html}\n    - run: \
         setup\n  setup: {type: com.example.script.ShellScript, content: setup.sh}\n",
    );
    let setup = "IyEvYmluL3NoCmNhdCAvdmFyL2h0bWwvaW5kZXgucGhwID4gL3NldHVwCg==";
    let archive = archive();
    let files = [("app.tgz.base64", archive.as_str()), ("setup.sh.base64", setup)];
    let guest = Guest::run_in_root("blueprint", lowered, "web", &files, &[("dnf", TOOL)]);
    guest.assert_success();
    assert_eq!(guest.text("ran"), "dnf install -y php httpd\n");
    assert_eq!(guest.text("setup"), "hello\n");
    assert!(guest.text("etc/yum.repos.d/kiln-1.repo").contains("baseurl=http://rpms/"));
}

#[test]
fn scripts_stand_for_the_hooks_of_agents() {
    if !has_namespaces() {
        println!("skipped: no user namespaces");
        return;
    }
    let lowered = components(
        "components:\n  web: {type: server, requires: {run: [site, play, proxy, stack]}}\n  site: {type: puppet, \
         content: site.pp, facts: {role: web}, only_tags: a}\n  play: {type: ansible, content: play.yaml, variables: {size: \
         3}}\n  proxy: {type: container, image: nginx, ports: ['80:8080'], environment: ['A=b c'], command: run \
         'x y'}\n  stack: {type: compose, content: compose.yaml}\n",
    );
    let puppet = "#!/bin/sh\nfor last; do :; done\necho \"puppet $FACTER_role $(cat \"$last\") $*\" >> /ran\nexit 2\n";
    let ansible = "#!/bin/sh\necho \"ansible $(cat \"${7#@}\") $(cat \"$5\")\" >> /ran\n";
    let compose = "#!/bin/sh\necho \"compose $(pwd) $(cat docker-compose.yml) $*\" >> /ran\n";
    let docker = "#!/bin/sh\nfor one; do printf '<%s>' \"$one\"; done >> /ran\necho >> /ran\n";
    let tools = [("puppet", puppet), ("ansible-playbook", ansible), ("docker-compose", compose), ("docker", docker)];
    let files = [("site.pp", "node default {}"), ("play.yaml", "- hosts: localhost"), ("compose.yaml", "services: {}")];
    let guest = Guest::run_in_root("hooks", lowered, "web", &files, &tools);
    guest.assert_success();
    let ran = guest.text("ran");
    let lines: Vec<&str> = ran.lines().collect();
    let start = "puppet web node default {} apply --color false --detailed-exitcodes --tags a /tmp/";
    assert!(lines[0].starts_with(start), "{ran}");
    assert_eq!(lines[1], "ansible {\"size\": 3} - hosts: localhost");
    assert_eq!(
        lines[2],
        "<run><--detach><--restart><always><--name><proxy><--publish><80:8080><--env><A=b c><nginx><run><x y>"
    );
    assert_eq!(lines[3], "compose /var/lib/kiln/compose/stack services: {} up -d --no-build");
}

#[test]
fn missing_tools_are_installed_and_their_failure_is_told() {
    if !has_namespaces() {
        println!("skipped: no user namespaces");
        return;
    }
    let lowered = || {
        components(
            "components:\n  web: {type: server, requires: {run: site}}\n  site: {type: puppet, content: site.pp}\n",
        )
    };
    let files = [("site.pp", "")];
    let made = "#!/bin/sh\necho \"$0 $*\" >> /ran\n[ \"$1\" != install ] || printf '#!/bin/sh\\nexit 6\\n' > \
                /opt/bin/puppet\nchmod +x /opt/bin/* \n";
    let guest = Guest::run_in_root("installs", lowered(), "web", &files, &[("apt-get", made)]);
    // Puppet was installed, and failed.
    assert_eq!(guest.failure(), "site_configure failed with exit code 6: ");
    assert_eq!(guest.text("ran"), "/opt/bin/apt-get update\n/opt/bin/apt-get install -y puppet\n");
    let away = "#!/bin/sh\necho 'no mirror' >&2\nexit 100\n";
    let guest = Guest::run_in_root("mirror", lowered(), "web", &files, &[("apt-get", away)]);
    assert_eq!(guest.failure(), "site_configure failed with exit code 100: no mirror");
}
