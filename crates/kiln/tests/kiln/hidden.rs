//! Values of hidden parameters are planted in stacks and looked for at every door of a service, and in the files of
//! `--local`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use kiln_cloud::{Connector, Credentials, Options, SharedClient, StackCloud, TlsOptions};
use kiln_plan::hidden::{Door, Shows};
use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_store::{EventQuery, SqlStore, Store as _};
use kiln_testcloud::Testcloud;
use kiln_value::{Secret, value};

use crate::lsp::Editor;
use crate::run::{Folder, Ran};
use crate::running::Running;

/// The values, by how they come into a stack, and what functions make of them.
const PLANTED: [&str; 11] = [
    "planted-given",
    "planted-standard",
    "planted-tree",
    "planted-file",
    "planted-inner",
    "planted-update",
    "PLANTED-GIVEN",
    "PLANTED-UPDATE",
    "planted+given",
    "planted+update",
    "PLANTED+",
];
const MASK: &str = "******";

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
parameters:
  given: {type: string, hidden: true}
  standard: {type: string, hidden: true, default: planted-standard}
  tree: {type: json, hidden: true}
  of_file: {type: string, hidden: true}
resources:
  value:
    type: OS::Heat::Value
    properties:
      value:
        - {list_join: ['', [a, {get_param: given}, b]]}
        - {str_replace: {template: password=PW;, params: {PW: {get_param: standard}}}}
        - {get_param: [tree, key]}
        - {get_param: of_file}
    metadata: {word: {get_param: given}}
  derived:
    type: OS::Heat::Value
    properties:
      value:
        upper: &upper {yaql: {expression: $.data.toUpper(), data: {get_param: given}}}
        of_attribute: {yaql: {expression: $.data.toUpper(), data: {get_attr: [value, value, 0]}}}
        merged:
          map_merge:
            - {public: said-in-public}
            - plus: &plus {str_replace: {template: {get_param: given}, params: {'-': '+'}}}
    metadata: {word: *upper}
  net: {type: OS::Neutron::Net, properties: {name: {get_param: given}}}
  loud: {type: OS::Neutron::Net, properties: {name: *upper}}
  script:
    type: OS::Heat::Value
    properties:
      value:
        str_replace:
          params: {PW: {get_param: given}}
          template: |
            echo said-in-public
            login PW
  child: {type: child.yaml, properties: {passed: {get_param: given}, derived: *plus}}
";
/// A stack shows its outputs to those who may see it, but a plan hides them.
const OUTPUTS: &str = "outputs:
  upper: {value: *upper}
  of_attribute: {value: {get_attr: [derived, value]}}
";
const CHILD: &str = "\
heat_template_version: 2018-08-31
parameters:
  passed: {type: string}
  derived: {type: string}
  inner: {type: string, hidden: true, default: planted-inner}
resources:
  value: {type: OS::Heat::Value, properties: {value: [{get_param: passed}, {get_param: inner}]}}
  upper: {type: OS::Heat::Value, properties: {value: {yaql: {expression: $.data.toUpper(), data: {get_param: passed}}}}}
  twice: {type: OS::Heat::Value, properties: {value: {yaql: {expression: $.data.toUpper(), data: {get_param: derived}}}}}
";
const CHILD_DEFAULT: &str = r#"\"default\": \"planted-inner\""#;
/// Its value is known only when it is created.
const FAILING: &str = "\
heat_template_version: 2018-08-31
parameters: {given: {type: string, hidden: true}}
resources:
  held: {type: OS::Heat::Value, properties: {value: {get_param: given}}}
  random: {type: OS::Heat::RandomString, properties: {length: {get_attr: [held, value]}}}
  derived:
    type: OS::Heat::RandomString
    properties: {length: {yaql: {expression: $.data.toUpper(), data: {get_attr: [held, value]}}}}
";

/// A service with stacks that have planted values.
struct World {
    folder: Folder,
    cloud: Testcloud,
    service: Running,
    /// The addresses of the REST API and the CloudFormation API.
    rest: String,
    cfn: String,
    /// The user in the cloud.
    user: Arc<StackCloud>,
    token: String,
    project: String,
}

impl World {
    async fn new() -> Self {
        let folder = Folder::new("hidden");
        let cloud = Testcloud::builder().start().await.unwrap();
        let more = "enable_stack_abandon = true\n[kiln]\naudit = true\naudit_ignore_methods = HEAD\n[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = 0\n";
        let config = folder.configured(&cloud, more);
        let mut command = folder.kiln(&["serve", "--config-file", &config]);
        command.env("RUST_LOG", "debug");
        let service = Running::start(command);
        let addresses = service.wait_for("serving address=");
        let (rest, other) = addresses.split_once(" cfn=").unwrap();
        let (rest, cfn) = (rest.to_owned(), other.split(' ').next().unwrap().to_owned());
        let demo = cloud.users().demo;
        let connector = Connector::new(
            Arc::new(SharedClient::new(&TlsOptions::default()).unwrap()),
            Options::new(cloud.auth_url().parse().unwrap()),
        );
        let credentials = Credentials::password(demo.user, demo.password, demo.project, "Default");
        let token = connector.session(credentials.clone()).token().await.unwrap();
        let project = token.info.project.as_ref().unwrap().id.clone();
        let (user, token) = (connector.cloud(&credentials).await, token.secret.expose().clone());
        folder.write("t.yaml", TEMPLATE);
        folder.write("child.yaml", CHILD);
        folder.write("failing.yaml", FAILING);
        folder.write("env.yaml", "parameters: {of_file: planted-file}\n");
        let world = Self { folder, cloud, service, rest, cfn, user, token, project };
        world.kiln(&World::content("create", &["--wait", "--poll", "0.05", "main"], "planted-given")).ok();
        world.folder.write("t.yaml", &format!("{TEMPLATE}{OUTPUTS}"));
        let failing = ["stack", "create", "-t", "failing.yaml", "--parameter", "given=planted-given", "--wait"];
        let failed = world.kiln(&[&failing[..], &["--poll", "0.05", "failing"]].concat());
        assert_eq!(failed.code, 3, "{}", failed.err);
        world
    }

    /// A create or an update with the planted values.
    fn content<'a>(command: &'a str, more: &[&'a str], given: &'a str) -> Vec<&'a str> {
        let given = if given == "planted-given" { "given=planted-given" } else { "given=planted-update" };
        let tree = r#"tree={"key": "planted-tree"}"#;
        let args = ["stack", command, "-t", "t.yaml", "-e", "env.yaml", "--parameter", given, "--parameter", tree];
        [&args[..], more].concat()
    }

    fn kiln(&self, args: &[&str]) -> Ran {
        self.folder.client(&self.cloud, &format!("http://{}", self.rest), args).output().unwrap().into()
    }

    /// The output of a command in all forms.
    fn said(&self, args: &[&str]) -> String {
        [&[][..], &["-f", "json"]].map(|form| self.kiln(&[args, form].concat())).map(|ran| ran.out + &ran.err).concat()
    }

    fn http(&self, address: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let token = &self.token;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nx-auth-token: {token}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn rest(&self, path: &str) -> String {
        self.http(&self.rest, &format!("/v1/{}{path}", self.project))
    }

    fn id(&self, stack: &str) -> String {
        self.kiln(&["stack", "show", stack, "-f", "value", "-c", "id"]).ok().trim().to_owned()
    }

    /// The store of the service.
    async fn store(&self) -> SqlStore {
        let url = format!("sqlite://{}/kiln.db", self.folder.path().display());
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        SqlStore::open(kiln_store::Options::new(url, key)).await.unwrap()
    }

    /// What is shown of a plan that is saved, and refused.
    fn saved_plan(&self) -> String {
        let told = self.kiln(&Self::content("plan", &["--out", "main.plan", "main"], "planted-update")).ok();
        let file = std::fs::read_to_string(self.folder.path().join("main.plan")).unwrap();
        let id = serde_json::from_str::<serde_json::Value>(&file).unwrap()["id"].as_str().unwrap().to_owned();
        let listed = self.said(&["plan", "list"]) + &self.rest("/plans") + &self.rest(&format!("/plans/{id}"));
        let shown = ["text", "markdown", "yaml"].map(|form| self.kiln(&["plan", "show", &id, "-f", form]).ok());
        self.kiln(&["plan", "reject", &id]).ok();
        let refused = self.said(&["stack", "apply", &id]);
        assert!(refused.contains("it was rejected") && listed.matches(&id).count() == 4, "{refused} {listed}");
        [told, file, listed, shown.concat(), refused].concat()
    }

    /// An action of the CloudFormation API.
    fn action(&self, action: &str, parameters: &[(&str, &str)]) -> String {
        let pairs = std::iter::once(("Action", action)).chain(parameters.iter().copied());
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.http(&self.cfn, &format!("/v1/?{query}"))
    }

    /// What a scan says of the objects of stacks, and a generated template that takes one of them.
    fn scanned(&self) -> String {
        let started = self.action("StartResourceScan", &[]);
        let id = ("ResourceScanId", element(&started, "ResourceScanId"));
        let shown = self.action("DescribeResourceScan", &[id]) + &self.action("ListResourceScanResources", &[id]);
        assert!(shown.contains("<ManagedByStack>true</ManagedByStack>"), "{shown}");
        // Nor can a value be guessed.
        for filter in ["ResourceIdentifier", "TagKey"] {
            let guessed = self.action("ListResourceScanResources", &[id, (filter, "planted-given")]);
            assert!(guessed.contains("<Resources></Resources>"), "{guessed}");
        }
        let net = self.kiln(&["stack", "resource", "show", "main", "net", "-f", "json"]).json();
        let object = [
            ("GeneratedTemplateName", "found"),
            ("Resources.member.1.ResourceType", "OS::Neutron::Net"),
            ("Resources.member.1.ResourceIdentifier.entry.1.key", "PhysicalResourceId"),
            ("Resources.member.1.ResourceIdentifier.entry.1.value", net["physical_resource_id"].as_str().unwrap()),
        ];
        let refused = self.action("CreateGeneratedTemplate", &object);
        assert!(refused.contains("it belongs to the resource net of the stack main"), "{refused}");
        shown + &refused
    }

    /// A refactoring of a stack that cannot be executed.
    fn stack_refactor(&self, template: &str) -> String {
        let template = std::fs::read_to_string(self.folder.path().join(template)).unwrap();
        // A request to this API has no files.
        let lines = template.lines().filter(|line| !line.contains("child.yaml"));
        let template = lines.flat_map(|line| [line, "\n"]).collect::<String>();
        let parameters = [
            ("StackDefinitions.member.1.StackName", "main"),
            ("StackDefinitions.member.1.TemplateBody", template.as_str()),
            ("ResourceMappings.member.1.Source.StackName", "main"),
            ("ResourceMappings.member.1.Source.LogicalResourceId", "net"),
            ("ResourceMappings.member.1.Destination.StackName", "main"),
            ("ResourceMappings.member.1.Destination.LogicalResourceId", "renamed"),
        ];
        let made = self.action("CreateStackRefactor", &parameters);
        let id = ("StackRefactorId", element(&made, "StackRefactorId"));
        let shown = ["DescribeStackRefactor", "ListStackRefactorActions", "ListStackRefactors", "ExecuteStackRefactor"];
        let shown = shown.map(|action| {
            let parameters = [id];
            self.action(action, if action == "ListStackRefactors" { &[] } else { &parameters })
        });
        let shown = shown.concat();
        assert_eq!(shown.matches("main/bad would").count(), 2, "{shown}");
        shown
    }

    /// What a door shows. A door without a case does not compile.
    async fn shown(&self, door: Door) -> String {
        let main = format!("/stacks/main/{}", self.id("main"));
        match door {
            Door::CreatePreview => self.said(&Self::content("create", &["--dry-run", "other"], "planted-given")),
            Door::UpdatePreview => self.said(&Self::content("update", &["--dry-run", "main"], "planted-update")),
            Door::Plan => {
                let plan = |more: &[&str]| self.said(&Self::content("plan", more, "planted-update"));
                let of_update = plan(&["main"]);
                let others = ["--replace", "--delete"].map(|option| {
                    let of =
                        if option == "--replace" { &["--replace", "loud", "main"][..] } else { &["--delete", "main"] };
                    self.said(&[&["stack", "plan"], of].concat())
                });
                let deleted = self.rest(&format!("{main}/preview_delete"));
                [of_update, plan(&["other"]), others.concat(), deleted, self.saved_plan()].concat()
            }
            Door::PlanMarkdown => {
                let plan = |stack| Self::content("plan", &["-f", "markdown", stack], "planted-update");
                ["main", "other"].map(|stack| self.kiln(&plan(stack)).ok()).concat()
            }
            Door::PlanPage => {
                for (stack, file) in [("main", "update.html"), ("other", "create.html")] {
                    self.kiln(&Self::content("plan", &["--html", file, stack], "planted-update")).ok();
                }
                let page = |file| std::fs::read_to_string(self.folder.path().join(file)).unwrap();
                ["update.html", "create.html"].map(page).concat()
            }
            Door::ChangeSet => {
                let query = "/v1/?Action=CreateChangeSet&StackName=main&ChangeSetName=one&UsePreviousTemplate=true\
                             &Parameters.member.1.ParameterKey=given&Parameters.member.1.ParameterValue=planted-update";
                let query = ["tree", "of_file"].iter().zip(2..).fold(query.to_owned(), |query, (name, number)| {
                    let member = format!("&Parameters.member.{number}");
                    format!("{query}{member}.ParameterKey={name}{member}.UsePreviousValue=true")
                });
                let made = self.http(&self.cfn, &query);
                assert!(made.starts_with("HTTP/1.1 200"), "{made}");
                self.http(&self.cfn, "/v1/?Action=DescribeChangeSet&StackName=main&ChangeSetName=one")
            }
            Door::Drift => {
                for name in ["net", "loud"] {
                    let network = self.kiln(&["stack", "resource", "show", "main", name, "-f", "json"]).json();
                    let path = format!("/v2.0/networks/{}", network["physical_resource_id"].as_str().unwrap());
                    let change = value!({"network": {"name": "theirs"}});
                    self.user.call(CloudRequest::new("network", Method::Put, path).body(change)).await.unwrap();
                }
                let drift = self.said(&["stack", "drift", "main"]);
                assert!(drift.contains("theirs"), "{drift}");
                let refreshed = self.said(&["stack", "plan", "--delete", "--refresh", "main"]);
                assert!(refreshed.contains("changed outside of Kiln") && refreshed.contains("theirs"), "{refreshed}");
                // Both need the hidden parameter: the repair masks it, and the acceptance does not write into a template.
                let repair = self.said(&["stack", "drift", "main", "--repair"]);
                assert!(repair.contains("~ net"), "{repair}");
                let accept = self.said(&["stack", "drift", "main", "--accept"]);
                assert!(accept.contains("cannot be accepted"), "{accept}");
                drift + &refreshed + &repair + &accept
            }
            Door::Import => {
                let body = value!({"network": {"name": "found"}});
                let made =
                    self.user.call(CloudRequest::new("network", Method::Post, "/v2.0/networks").body(body)).await;
                let id = made.unwrap().body.get("network").unwrap().str_at("id").unwrap().to_owned();
                let objects = value!({"objects": {"n": {"type": "OS::Neutron::Net", "resource_id": id}}});
                self.folder.write("import.import.json", &kiln_value::text::json(&objects));
                self.folder.write(
                    "import.yaml",
                    "heat_template_version: 2018-08-31\nparameters: {given: {type: string, hidden: true}}\nresources:\n  \
                     n: {type: OS::Neutron::Net, properties: {name: {get_param: given}}}\n",
                );
                let commit =
                    ["import", "commit", "-t", "import.yaml", "--parameter", "given=planted-given", "imported"];
                let said = self.said(&commit) + &self.said(&[&commit[..], &["--dry-run"]].concat());
                assert_eq!(said.matches("found").count(), 4, "{said}");
                said + &self.scanned()
            }
            Door::Refactor => {
                let bad =
                    "  bad: {type: OS::Heat::RandomString, properties: {length: {get_attr: [value, value, 0]}}}\n";
                self.folder.write("renamed.yaml", &format!("{}{bad}", TEMPLATE.replace("  net:", "  renamed:")));
                self.folder.write(
                    "moves.yaml",
                    "stacks: {main: {template: renamed.yaml}}\nmoves: [{from: main/net, to: main/renamed}]\n",
                );
                let refactor = ["stack", "refactor", "--moves", "moves.yaml"];
                let said = self.said(&refactor) + &self.said(&[&refactor[..], &["--plan"]].concat());
                assert_eq!(said.matches("main/bad would").count(), 4, "{said}");
                said + &self.stack_refactor("renamed.yaml")
            }
            Door::Parameters => {
                let described = self.http(&self.cfn, "/v1/?Action=DescribeStacks&StackName=main");
                self.said(&["stack", "show", "main"]) + &described
            }
            Door::Environment => self.rest(&format!("{main}/environment")),
            // A template is shown as it was given, with its defaults.
            Door::Files => self.rest(&format!("{main}/files")).replace(CHILD_DEFAULT, ""),
            Door::Revision => {
                let shown = self.rest(&format!("{main}/revisions/1"));
                let shown = shown.replace(CHILD_DEFAULT, "").replace("\"default\":\"planted-standard\"", "");
                shown + &self.kiln(&["stack", "revision", "diff", "main", "1"]).ok()
            }
            Door::Error => {
                self.folder.write("wrong.yaml", &FAILING.replace("{get_attr: [held, value]}", "{get_param: given}"));
                let given = ["-t", "wrong.yaml", "--parameter", "given=planted-given"];
                let offline = self.said(&[&["template", "validate", "--offline"], &given[..]].concat());
                assert!(offline.contains(MASK), "{offline}");
                offline + &self.said(&[&["stack", "create", "other"], &given[..]].concat())
            }
            Door::Reason => {
                let listed = self.said(&["stack", "event", "list", "failing"]);
                let shown = self.said(&["stack", "resource", "show", "failing", "random"]);
                let streamed = self.rest(&format!("/stacks/failing/{}/events?wait=1", self.id("failing")));
                let failures = self.said(&["stack", "failures", "list", "failing"]);
                let timeline = ["text", "svg", "json"].map(|f| self.said(&["stack", "timeline", "failing", "-f", f]));
                [listed, shown, streamed, failures, timeline.concat()].concat()
            }
            Door::Event => {
                let stack = self.id("main").parse().unwrap();
                let query = EventQuery { stacks: vec![stack], ..EventQuery::default() };
                let events = self.store().await.events(&query).await.unwrap();
                format!("{:?}", events.iter().map(|event| &event.properties).collect::<Vec<_>>())
            }
            Door::EventProperties => {
                let events = self.kiln(&["stack", "event", "list", "main", "-f", "json"]).json();
                let events = events.as_array().unwrap();
                let of = |event: &serde_json::Value| {
                    let (name, id) = (event["resource_name"].as_str().unwrap(), event["id"].as_str().unwrap());
                    self.rest(&format!("{main}/resources/{name}/events/{id}"))
                };
                events.iter().map(of).collect()
            }
            Door::Archive => {
                self.kiln(&Self::content("create", &["--wait", "--poll", "0.05", "gone"], "planted-given")).ok();
                self.kiln(&["stack", "delete", "--wait", "--poll", "0.05", "gone"]).ok();
                let purge = ["manage", "purge-deleted", "--days", "0", "--archive", "purged.jsonl"];
                let told = self.folder.run(&[&purge[..], &["--config-file", "kiln.conf"]].concat()).ok();
                assert!(told.starts_with("Archived 2 stacks."), "{told}");
                std::fs::read_to_string(self.folder.path().join("purged.jsonl")).unwrap()
            }
            Door::Export => {
                for tool in ["terraform", "openstack"] {
                    let objects = self.kiln(&["stack", "release", "main", "--dry-run", "--to", tool]).ok();
                    assert!(!PLANTED.iter().any(|planted| objects.contains(planted)), "{objects}");
                }
                self.kiln(&["stack", "export", "main"]).ok()
            }
            Door::Log => self.service.log(),
            Door::Report => self.folder.run(&["manage", "report", "--config-file", "kiln.conf"]).ok(),
            Door::Graph => {
                let given = Self::content("create", &[], "planted-given");
                let drawn = ["dot", "mermaid", "svg", "json"].map(|form| {
                    let graph = ["template", "graph", "t.yaml", "-f", form];
                    self.folder.run(&[&graph[..], &given[4..]].concat()).ok()
                });
                drawn.concat()
            }
            Door::Validation => {
                let given = Self::content("create", &["--show-nested"], "planted-given");
                let validate = [&["template", "validate"], &given[2..]].concat();
                self.said(&validate) + &self.said(&[&validate[..], &["--offline"]].concat())
            }
            Door::Editor => {
                let wrong = FAILING.replace("hidden: true", "hidden: true, default: planted-given");
                let wrong = wrong.replace("{get_attr: [held, value]}", "{get_param: given}");
                let mut editor = Editor::start(&self.folder, "edited.yaml", &wrong);
                let told = format!("{:?}", editor.told());
                editor.leave();
                told
            }
        }
    }
}

/// The text of the first element with a name.
fn element<'t>(text: &'t str, name: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("no {name}: {text}"));
    rest.split_once('<').unwrap().0
}

fn planted_in(text: &str) -> Vec<&'static str> {
    PLANTED.into_iter().filter(|value| text.contains(value)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_door_of_a_service_shows_a_hidden_value() {
    let world = World::new().await;
    for door in Door::ALL {
        let shown = world.shown(*door).await;
        let (masks, planted) = (shown.contains(MASK), planted_in(&shown));
        match door.shows() {
            Shows::Masked => assert!(masks && planted.is_empty(), "{door:?}: {planted:?} in {shown}"),
            Shows::NoValues => assert!(!shown.is_empty() && planted.is_empty(), "{door:?}: {planted:?} in {shown}"),
            Shows::All => assert!(planted.contains(&"planted-given") && planted.contains(&"planted-tree"), "{shown}"),
        }
        let plan = matches!(
            door,
            Door::CreatePreview
                | Door::UpdatePreview
                | Door::Plan
                | Door::PlanMarkdown
                | Door::PlanPage
                | Door::EventProperties
        );
        assert!(!plan || shown.contains("said-in-public"), "{door:?} hides what is public: {shown}");
    }
    let (code, log) = world.service.stop();
    assert!(code == 0 && log.contains("DEBUG"), "{log}");
    assert_eq!(planted_in(&log), [""; 0], "{log}");
}

/// The permissions of a file.
#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Looks for planted values in all files of a folder, whose names and contents it returns as text.
fn content(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let one =
        |file: std::path::PathBuf| format!("{}: {}", file.display(), std::fs::read(&file).unwrap().escape_ascii());
    files.map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_database_of_local_belongs_to_its_owner_and_is_encrypted() {
    let folder = Folder::new("hidden-local");
    folder.write("t.yaml", FAILING.split("  random:").next().unwrap());
    let data = folder.path().join(".local/share/kiln");
    let database = data.join("stacks.db");
    let kiln = |args: &[&str]| Ran::from(folder.kiln(args).env_remove("KILN_DATABASE").output().unwrap()).ok();
    let create = ["--local", "stack", "create", "-t", "t.yaml", "--parameter", "given=planted-given"];
    kiln(&[&create[..], &["one"]].concat());
    let is_safe = || {
        assert_eq!(mode(&data), 0o700);
        for file in std::fs::read_dir(&data).unwrap().map(|file| file.unwrap().path()) {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        assert_eq!(planted_in(&content(&data)), [""; 0]);
    };
    is_safe();

    // A database of an earlier version: values in clear, and readable by others.
    let key = std::fs::read_to_string(data.join("stacks.db.key")).unwrap();
    let open = || {
        let url = format!("sqlite://{}", database.display());
        SqlStore::open(kiln_store::Options::new(url, Secret::new(key.trim().to_owned())))
    };
    open().await.unwrap().reencrypt().await.unwrap();
    for (path, mode) in [(&data, 0o755), (&database, 0o644)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    assert_eq!(planted_in(&content(&data)), ["planted-given"]);
    assert!(kiln(&["--local", "stack", "list"]).contains("CREATE_COMPLETE"));
    is_safe();
    let other = folder.path().join("other/by url.db");
    std::fs::create_dir(other.parent().unwrap()).unwrap();
    let url = format!("sqlite://{}?mode=rwc", other.display().to_string().replace(' ', "%20"));
    kiln(&[&create[..], &["--database", &url, "two"]].concat());
    assert_eq!((mode(&other), planted_in(&content(other.parent().unwrap()))), (0o600, vec![]));
}
