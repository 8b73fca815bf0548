//! Stacks in databases that Heat itself has made (`tests/heat_database/make.py`) come under Kiln.
//!
//! ```sh
//! crates/store/tests/databases.sh .ci/tests kiln:kiln take_over -- --include-ignored
//! ```

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kiln_resource::Method;
use kiln_testcloud::{Action, Fault, Service, Testcloud};
use kiln_value::value;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement};
use serde_json::{Map, Value};

use crate::cloud_user::CloudUser;
use crate::databases::{servers, servers_or_cluster, with_url};
use crate::full::health;
use crate::run::{Folder, Ran};
use crate::running::Running;

/// The project in these databases.
pub(crate) const PROJECT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// The databases, and one of them changed to what legacy stacks look like.
const WAYS: [&str; 3] = ["convergence", "convergence-encrypted", LEGACY];
const LEGACY: &str = "legacy";
/// What no output and no table of Kiln may show in clear.
const PLANTED: [&str; 3] = ["parameter-planted", "user-password-planted", "config-planted"];

/// A database of Heat, and the configurations of Heat and Kiln.
pub(crate) struct Heat {
    pub(crate) folder: Folder,
    pub(crate) db: DatabaseConnection,
    /// The configuration files of Kiln and of Heat.
    pub(crate) kiln_conf: String,
    pub(crate) source: String,
}

impl Heat {
    /// Fills an empty database with the rows that Heat has made. Kiln gets the same database, so that it encrypts everything.
    pub(crate) async fn load(name: &str, way: &str, cloud: &Testcloud, url: impl FnOnce(&Path) -> String) -> Self {
        let folder = Folder::new(&format!("take-over-{name}-{}", way.replace('/', "-")));
        let url = url(folder.path());
        let db = made_by_heat(&url, if way == LEGACY { "convergence" } else { way }).await;
        if way == LEGACY {
            let no = if db.get_database_backend() == DbBackend::Postgres { "FALSE" } else { "0" };
            db.execute_unprepared(&format!("UPDATE stack SET convergence = {no}, current_traversal = NULL"))
                .await
                .unwrap();
            let rows = "UPDATE resource SET current_template_id = NULL, requires = '[]', needed_by = '[]'";
            db.execute_unprepared(rows).await.unwrap();
            // A legacy delete leaves the template as it is.
            let template = "UPDATE stack SET raw_template_id = prev_raw_template_id WHERE name = 'gone'";
            db.execute_unprepared(template).await.unwrap();
        }
        let kiln_conf = with_url(&folder, cloud, &url);
        let text = std::fs::read_to_string(&kiln_conf).unwrap();
        std::fs::write(
            &kiln_conf,
            text.replace("[DEFAULT]\n", "[DEFAULT]\nencrypt_parameters_and_properties = true\n"),
        )
        .unwrap();
        let source = folder.path().join("heat.conf").display().to_string();
        let encrypts = way.contains("encrypted");
        let text =
            format!("[DEFAULT]\nencrypt_parameters_and_properties = {encrypts}\n[database]\nconnection = {url}\n");
        std::fs::write(&source, text).unwrap();
        Self { folder, db, kiln_conf, source }
    }

    pub(crate) fn take_over(&self, command: &str, more: &[&str]) -> Ran {
        let mut words = vec!["manage", "take-over", command, "--config-file", &self.kiln_conf];
        if matches!(command, "inventory" | "import" | "compare" | "switch" | "finish") {
            words.extend(["--heat-config", &self.source]);
        }
        words.extend(more);
        let ran = self.folder.run(&words);
        for planted in PLANTED {
            assert!(!ran.out.contains(planted) && !ran.err.contains(planted), "{command} shows {planted}: {ran:?}");
        }
        ran
    }

    /// The results of an import by the names of the stacks.
    pub(crate) fn import(&self, more: &[&str]) -> String {
        let words: Vec<&str> =
            ["-f", "value", "-c", "Stack Name", "-c", "Result"].into_iter().chain(more.iter().copied()).collect();
        self.take_over("import", &words).ok()
    }

    /// A command of the demo user of the cloud, for a service.
    pub(crate) fn client(&self, cloud: &Testcloud, url: &str, words: &[&str]) -> Ran {
        self.folder.client(cloud, url, words).output().unwrap().into()
    }

    /// Gives all stacks to the project of the demo user of the cloud; its ID.
    pub(crate) async fn move_to_demo(&self, cloud: &Testcloud) -> String {
        let service = Running::start(self.folder.kiln(&["serve", "--config-file", &self.kiln_conf]));
        let config = ["software", "config", "create", "probe", "--group", "script"];
        self.client(cloud, &service.url(), &config).ok();
        assert_eq!(service.stop().0, 0);
        let project = self.values("SELECT project FROM kiln_software_config").await.remove(0);
        self.db.execute_unprepared("DELETE FROM kiln_software_config").await.unwrap();
        for table in ["stack", "software_config", "software_deployment"] {
            self.db.execute_unprepared(&format!("UPDATE {table} SET tenant = '{project}'")).await.unwrap();
        }
        project
    }

    /// The comparison of the stacks by their names.
    pub(crate) fn compared(&self, more: &[&str]) -> String {
        let columns = ["-f", "value", "-c", "Stack Name", "-c", "State", "-c", "Differences", "-c", "Can Go Back"];
        self.take_over("compare", &[&columns, more].concat()).ok()
    }

    pub(crate) async fn values(&self, query: &str) -> Vec<String> {
        let query = Statement::from_string(self.db.get_database_backend(), query);
        let rows = self.db.query_all_raw(query).await.unwrap();
        rows.iter().map(|row| row.try_get_by_index::<Option<String>>(0).unwrap().unwrap_or_default()).collect()
    }

    /// Everything in Kiln's tables that is a text.
    async fn texts(&self) -> String {
        let mut all = String::new();
        for (table, columns) in [
            ("kiln_content", "body"),
            ("kiln_resource", "COALESCE(definition, '') || COALESCE(data, '') || COALESCE(attributes, '')"),
            ("kiln_event", "COALESCE(properties, '')"),
            ("kiln_credentials", "envelope"),
            ("kiln_software_config", "body"),
        ] {
            let columns = if self.db.get_database_backend() == DbBackend::MySql && columns.contains("||") {
                columns.replace("COALESCE", "IFNULL").replace(" || ", ", ").replacen("IFNULL", "CONCAT(IFNULL", 1) + ")"
            } else {
                columns.to_owned()
            };
            for value in self.values(&format!("SELECT {columns} FROM {table}")).await {
                writeln!(all, "{value}").unwrap();
            }
        }
        all
    }
}

/// Fills an empty database with the rows that Heat has made.
async fn made_by_heat(url: &str, way: &str) -> DatabaseConnection {
    let db = Box::pin(Database::connect(url)).await.unwrap();
    for (table, content) in &tables_of_heat(way) {
        fill(&db, table, content).await;
    }
    db
}

/// The tables that Heat has made, with their rows: `releases/RELEASE-WAY` with all stacks, or the way of a small database of
/// the newest release.
pub(crate) fn tables_of_heat(way: &str) -> Map<String, Value> {
    let made = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/heat_database");
    let mut text = String::new();
    if way.starts_with("releases/") {
        let file = std::fs::File::open(made.join(format!("{way}.json.gz"))).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        text = std::fs::read_to_string(made.join(format!("27-{way}.json"))).unwrap();
    }
    serde_json::from_str(&text).unwrap()
}

/// Writes the configuration `heat.conf` of a Heat with stacks into a folder.
pub(crate) async fn heat_in(folder: &Folder) {
    let url = sqlite(folder.path());
    made_by_heat(&url, "convergence").await;
    folder.write("heat.conf", &format!("[database]\nconnection = {url}\n"));
}

/// Creates a table and inserts its rows.
async fn fill(db: &DatabaseConnection, table: &str, content: &Value) {
    let backend = db.get_database_backend();
    let quoted = |name: &str| if backend == DbBackend::MySql { format!("`{name}`") } else { format!("\"{name}\"") };
    let columns = content["columns"].as_object().unwrap();
    let defined: Vec<String> = columns
        .iter()
        .map(|(name, kind)| {
            let kind = match kind.as_str().unwrap() {
                "int" if name == "id" => match backend {
                    DbBackend::Postgres => "SERIAL PRIMARY KEY",
                    DbBackend::MySql => "INTEGER AUTO_INCREMENT PRIMARY KEY",
                    _ => "INTEGER PRIMARY KEY AUTOINCREMENT",
                },
                "bigint" => "BIGINT",
                "tinyint" if backend == DbBackend::Postgres => "BOOLEAN",
                "int" | "tinyint" => "INTEGER",
                "datetime" if backend == DbBackend::Postgres => "TIMESTAMP",
                "datetime" => "DATETIME",
                "longtext" | "text" | "mediumtext" if backend == DbBackend::MySql => "LONGTEXT",
                "varchar" => "VARCHAR(255)",
                _ => "TEXT",
            };
            format!("{} {kind}", quoted(name))
        })
        .collect();
    db.execute_unprepared(&format!("CREATE TABLE {} ({})", quoted(table), defined.join(", "))).await.unwrap();
    for row in content["rows"].as_array().unwrap() {
        let values = row.as_array().unwrap().iter().zip(columns.values());
        let values: Vec<String> = values
            .map(|(value, kind)| match value {
                Value::Null => "NULL".to_owned(),
                Value::Number(number) if kind == "tinyint" && backend == DbBackend::Postgres => {
                    (number.as_i64() == Some(1)).to_string()
                }
                Value::Number(number) => number.to_string(),
                Value::String(text) => {
                    let text = text.replace('\'', "''");
                    if backend == DbBackend::MySql {
                        format!("'{}'", text.replace('\\', "\\\\"))
                    } else {
                        format!("'{text}'")
                    }
                }
                other => panic!("{other}"),
            })
            .collect();
        db.execute_unprepared(&format!("INSERT INTO {} VALUES ({})", quoted(table), values.join(", "))).await.unwrap();
    }
    if backend == DbBackend::Postgres && columns.get("id").is_some_and(|kind| kind == "int") {
        let next = format!("SELECT setval('{table}_id_seq', (SELECT COALESCE(MAX(id), 1) FROM {table}))");
        db.execute_unprepared(&next).await.unwrap();
    }
}

pub(crate) fn sqlite(folder: &Path) -> String {
    format!("sqlite://{}/heat.db?mode=rwc", folder.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_of_heat_come_under_kiln_and_go_back() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for way in WAYS {
        come_and_go(&Heat::load("sqlite", way, &cloud, sqlite).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn stacks_of_heat_come_under_kiln_and_go_back_on_servers() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for server in servers_or_cluster() {
        for way in ["convergence-encrypted", "legacy"] {
            let test = async |database: &str| {
                let heat = Heat::load(server.kind(), way, &cloud, |_| server.database(database)).await;
                come_and_go(&heat).await;
            };
            server.with_database(test).await;
        }
    }
}

async fn come_and_go(heat: &Heat) {
    // What is there.
    let found: Value = serde_json::from_str(&heat.take_over("inventory", &["-f", "json"]).ok()).unwrap();
    let project = &found["projects"][PROJECT];
    assert_eq!(
        (&project["stacks"], &project["nested"], &project["ready"]),
        (&3.into(), &2.into(), &3.into()),
        "{found}"
    );
    // Only stacks that have failed have something to do.
    assert!(project["findings"].as_array().unwrap().iter().all(|finding| finding["stack"] != "web"), "{found}");

    // Import: restartable, and nobody sees it.
    assert_eq!(heat.import(&["--dry-run"]), "failed imported\ngone imported\nweb imported\n");
    assert_eq!(heat.take_over("status", &["-f", "value"]).ok(), "");
    assert_eq!(heat.import(&[]), "failed imported\ngone imported\nweb imported\n");
    assert_eq!(heat.import(&[]), "failed unchanged\ngone unchanged\nweb unchanged\n");
    let uuids = "SELECT uuid FROM resource INNER JOIN stack ON stack.id = resource.stack_id WHERE deleted_at IS NULL ORDER BY uuid";
    assert_eq!(heat.values("SELECT id FROM kiln_resource ORDER BY id").await, heat.values(uuids).await);
    let events =
        "SELECT uuid FROM event INNER JOIN stack ON stack.id = event.stack_id WHERE deleted_at IS NULL ORDER BY uuid";
    assert_eq!(heat.values("SELECT id FROM kiln_event ORDER BY id").await, heat.values(events).await);
    let projects = heat.values("SELECT DISTINCT project FROM kiln_stack").await;
    assert_eq!(projects, [format!("heat:{PROJECT}")]);
    let work = "SELECT id FROM kiln_stack WHERE due IS NOT NULL OR settled < generation";
    assert_eq!(heat.values(work).await, [""; 0]);
    let texts = heat.texts().await;
    assert!(PLANTED.iter().all(|planted| !texts.contains(planted)), "{texts}");

    // What changes in Heat is imported again, alone.
    let change = "UPDATE stack SET status_reason = 'changed' WHERE name = 'web'";
    heat.db.execute_unprepared(change).await.unwrap();
    assert_eq!(heat.import(&[]), "failed unchanged\ngone unchanged\nweb imported\n");

    // Every field is as in Heat.
    assert_eq!(heat.compared(&[]), "failed imported [] yes\ngone imported [] yes\nweb imported [] yes\n");
    let change = "UPDATE stack SET status_reason = 'again' WHERE name = 'web'";
    heat.db.execute_unprepared(change).await.unwrap();
    let compared = heat.take_over("compare", &["--stack", "web"]);
    assert!(compared.code == 1 && compared.out.contains("state differs"), "{compared:?}");
    heat.import(&[]);

    // Switch and back.
    let only = ["--project", PROJECT];
    let rehearsed = heat.take_over("switch", &["--project", PROJECT, "--rehearse"]).ok();
    assert!(rehearsed.starts_with(&format!("Project {PROJECT}: 3 stacks can be switched, in about ")), "{rehearsed}");
    assert_eq!(heat.values("SELECT DISTINCT project FROM kiln_stack").await, [format!("heat:{PROJECT}")]);
    heat.db.execute_unprepared("UPDATE resource SET status_reason = 'not fenced'").await.unwrap();
    let done = heat.take_over("switch", &only).ok();
    assert!(done.starts_with(&format!("Project {PROJECT}: 3 stacks belong to Kiln, after ")), "{done}");
    for refused in [
        "UPDATE stack SET status_reason = 'again' WHERE name = 'web'",
        "UPDATE resource SET status_reason = 'again'",
        "DELETE FROM event",
        "INSERT INTO stack (id, name, tenant) VALUES ('x', 'x', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
    ] {
        let error = heat.db.execute_unprepared(refused).await.unwrap_err().to_string();
        assert!(error.contains("belongs to Kiln"), "{refused}: {error}");
    }
    let other = "INSERT INTO stack (id, name, tenant) VALUES ('x', 'x', 'another project')";
    heat.db.execute_unprepared(other).await.unwrap();
    heat.db.execute_unprepared("DELETE FROM stack WHERE id = 'x'").await.unwrap();
    assert_eq!(heat.import(&[]), "failed switched\ngone switched\nweb switched\n");
    assert_eq!(heat.take_over("drop", &[]).ok(), "Dropped 0 imported stacks.\n");
    let back = heat.take_over("switch", &["--project", PROJECT, "--back"]);
    assert_eq!(back.ok(), format!("Project {PROJECT}: 3 stacks belong to Heat.\n"));
    heat.db.execute_unprepared("UPDATE resource SET status_reason = 'again'").await.unwrap();

    // A stack that is in progress does not go back.
    heat.take_over("switch", &only).ok();
    heat.db.execute_unprepared("UPDATE kiln_stack SET generation = 2 WHERE name = 'web'").await.unwrap();
    let back = heat.take_over("switch", &["--project", PROJECT, "--back"]);
    assert!(back.code == 1 && back.err.contains("is in progress"), "{back:?}");
    heat.db.execute_unprepared("UPDATE kiln_stack SET generation = 1 WHERE name = 'web'").await.unwrap();
    heat.take_over("switch", &["--project", PROJECT, "--back"]).ok();

    assert_eq!(heat.take_over("drop", &[]).ok(), "Dropped 3 imported stacks.\n");
    for table in ["stack", "resource", "event", "event_order", "lease", "tag", "snapshot", "credentials", "take_over"] {
        let left = heat.values(&format!("SELECT 'a row' FROM kiln_{table}")).await;
        assert_eq!(left, [""; 0], "kiln_{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_names_what_would_stop_the_switch() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("rehearsal", "convergence", &cloud, sqlite).await;
    let rehearse = ["--project", PROJECT, "--rehearse"];
    let state = async |status: &str| {
        let update = format!("UPDATE stack SET status = '{status}' WHERE name = 'web'");
        heat.db.execute_unprepared(&update).await.unwrap();
    };
    state("IN_PROGRESS").await;
    let stopped = heat.take_over("switch", &rehearse);
    assert!(stopped.code == 1 && stopped.out.contains("its state is UPDATE_IN_PROGRESS"), "{stopped:?}");
    let file = heat.folder.path().join("report.html");
    let report = |command: &str| {
        heat.take_over(command, &["--html", &file.display().to_string()]);
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(PLANTED.iter().all(|planted| !page.contains(planted)), "{page}");
        page
    };
    let page = report("inventory");
    assert!(page.contains("<p>2 of 3 stacks can be taken over. Release of Heat: 2026.1 (26)"), "{page}");
    assert!(page.contains("<td>its state is UPDATE_IN_PROGRESS</td>"), "{page}");
    state("COMPLETE").await;
    heat.take_over("switch", &rehearse).ok();
    let page = report("compare");
    assert!(page.contains("<p>3 stacks were compared, 0 of them need attention."), "{page}");

    // A stack of Kiln has the name of one of Heat.
    for update in
        ["project = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' WHERE name = 'gone'", "live_name = 'gone' WHERE name = 'web'"]
    {
        heat.db.execute_unprepared(&format!("UPDATE kiln_stack SET {update}")).await.unwrap();
    }
    let stopped = heat.take_over("switch", &rehearse);
    assert!(stopped.code == 1 && stopped.err.contains("has the name of a stack of Heat"), "{stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_is_named_and_the_rest_is_imported() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let template = "UPDATE raw_template SET template = ";
    let of_failed = " WHERE id = (SELECT raw_template_id FROM stack WHERE name = 'failed')";
    for (change, told) in [
        ("UPDATE stack SET status = 'IN_PROGRESS' WHERE name = 'failed'", "its state is CREATE_IN_PROGRESS"),
        ("UPDATE stack SET raw_template_id = 999 WHERE name = 'failed'", "its template is gone"),
        (&format!("{template}'{{'{of_failed}"), "template is not JSON"),
        (&format!("{template}'{{\"heat_template_version\": \"1999-01-01\"}}'{of_failed}"), "Kiln refuses its template"),
        (
            &format!(
                "{template}'{{\"heat_template_version\": \"2018-08-31\", \"resources\": {{\"a\": {{\"type\": \"Own::Type\"}}}}}}'\
                 {of_failed}"
            ),
            "Own::Type",
        ),
        ("UPDATE resource SET created_at = 'never' WHERE name = 'bad'", "created_at is not a time"),
        ("UPDATE resource SET rsrc_metadata = '[]' WHERE name = 'bad'", "rsrc_metadata is not a JSON object"),
        ("UPDATE stack SET id = 'x' WHERE name = 'failed'", "the ID \"x\" of a stack is not a UUID"),
        (
            "INSERT INTO stack (id, name, tenant, raw_template_id, action, status, created_at) SELECT \
             'bbbbbbbb-0000-0000-0000-000000000000', name, tenant, raw_template_id, action, status, created_at FROM stack \
             WHERE name = 'failed'",
            "1 other live stacks of the project have the same name",
        ),
    ] {
        let heat = Heat::load("hostile", "convergence", &cloud, sqlite).await;
        heat.db.execute_unprepared(change).await.unwrap();
        let inventory = heat.take_over("inventory", &[]);
        assert!(inventory.code == 1 && inventory.out.contains(told), "{change}: {inventory:?}");
        let import = heat.take_over("import", &["-f", "value", "-c", "Stack Name", "-c", "Result", "-c", "Reason"]);
        assert!(
            import.code == 1 && import.out.contains("failed refused") && import.out.contains(told),
            "{change}: {import:?}"
        );
        assert!(import.out.contains("web imported"), "{change}: {import:?}");
        let switch = heat.take_over("switch", &["--project", PROJECT]);
        assert!(switch.code == 1 && switch.err.contains("could not be imported"), "{change}: {switch:?}");
        heat.db.execute_unprepared("UPDATE stack SET status_reason = 'free'").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_values_are_in_no_finding() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("hidden", "convergence", &cloud, sqlite).await;
    // The plan of the first day sets the hidden value.
    let properties = "UPDATE resource_properties_data SET data = '{\"value\": \"other\"}' WHERE id = (SELECT \
                      rsrc_prop_data_id FROM resource WHERE name = 'hidden')";
    heat.db.execute_unprepared(properties).await.unwrap();
    let inventory = heat.take_over("inventory", &[]);
    assert!(inventory.out.contains("hidden: the next update would change it"), "{inventory:?}");
    // A template that takes the hidden value for a number.
    let number = "UPDATE raw_template SET template = REPLACE(template, '\"secret\": {\"type\": \"string\"', '\"secret\": \
                  {\"type\": \"number\"')";
    heat.db.execute_unprepared(number).await.unwrap();
    let inventory = heat.take_over("inventory", &[]);
    assert!(inventory.out.contains("could not convert string"), "{inventory:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_heat_that_kiln_does_not_have_are_told() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("settings", "convergence", &cloud, sqlite).await;
    let folder = heat.folder.path().join("of-heat");
    std::fs::create_dir(&folder).unwrap();
    let parameter =
        format!("resource_registry: {{'My::Type': 'file:///a.yaml'}}\nparameters: {{key: {}}}\n", PLANTED[0]);
    std::fs::write(folder.join("a.yaml"), parameter).unwrap();
    std::fs::write(
        heat.folder.path().join("policy-of-heat.json"),
        format!("{{\"stacks:create\": \"role:{}\"}}", PLANTED[1]),
    )
    .unwrap();
    let text = std::fs::read_to_string(&heat.source).unwrap();
    let more = format!(
        "[DEFAULT]\nplugin_dirs = /usr/lib/heat\nmax_stacks_per_tenant = 7\nenvironment_dir = {0}\n\
         stack_domain_admin_password = {1}\n[oslo_policy]\npolicy_file = policy-of-heat.json\n",
        folder.display(),
        PLANTED[2]
    );
    std::fs::write(&heat.source, more + &text).unwrap();
    let told = heat.take_over("inventory", &[]).ok();
    for part in [
        "heat.conf:2: note: [DEFAULT] plugin_dirs has no effect",
        "heat.conf:3: warning: [DEFAULT] max_stacks_per_tenant is \"7\" in Heat and \"512\" in Kiln",
        "[DEFAULT] environment_dir has another content: resource_registry My::Type is only in Heat",
        "[DEFAULT] environment_dir has another content: parameters key is only in Heat",
        "[oslo_policy] policy_file has another content: rule stacks:create is only in Heat",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let found: Value = serde_json::from_str(&heat.take_over("inventory", &["-f", "json"]).ok()).unwrap();
    assert!(found["settings"].as_array().unwrap().iter().any(|one| one["option"] == "plugin_dirs"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_named_and_nothing_is_imported() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("key", "convergence-encrypted", &cloud, sqlite).await;
    let text = std::fs::read_to_string(&heat.source).unwrap();
    std::fs::write(&heat.source, format!("[DEFAULT]\nauth_encryption_key = another key of a Heat\n{text}")).unwrap();
    let ran = heat.take_over("inventory", &[]);
    assert!(ran.code == 1 && ran.out.contains("the key does not decrypt it"), "{ran:?}");
    let ran = heat.take_over("import", &["-f", "value", "-c", "Result"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "refused\nrefused\nrefused\n"), "{ran:?}");
    assert_eq!(heat.values("SELECT id FROM kiln_stack").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_manual_work() {
    let page = include_str!("../../../../docs/moving-from-heat.md");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    kiln ")).collect();
    assert_eq!(commands.len(), 11, "{commands:?}");
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("manual", "convergence", &cloud, sqlite).await;
    for command in commands {
        let words = command.split(' ').map(|word| match word {
            "345de0deed754a2ab8091344a1397b46" => PROJECT,
            "kiln.conf" => &heat.kiln_conf,
            "heat" => "heat.db",
            word => word,
        });
        if command.contains("finish") {
            heat.take_over("switch", &["--project", PROJECT]).ok();
        }
        let ran = heat.folder.run(&words.collect::<Vec<_>>());
        if command.contains("--live") {
            // No cloud has the trusts of this database.
            assert!(ran.code == 1 && ran.out.contains("Kiln gets no token with its"), "{ran:?}");
        } else {
            ran.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_is_finished_when_all_stacks_belong_to_kiln() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("finish", "convergence", &cloud, sqlite).await;
    finish(&heat, "heat.db").await;
    // The database of another service is left alone.
    let url = format!("sqlite://{}", heat.folder.path().join("other.db").display());
    let other = Box::pin(Database::connect(format!("{url}?mode=rwc"))).await.unwrap();
    other.execute_unprepared("CREATE TABLE service (id INTEGER)").await.unwrap();
    std::fs::write(&heat.source, format!("[DEFAULT]\n[database]\nconnection = {url}\n")).unwrap();
    let ran = heat.take_over("finish", &["--drop-heat-tables", "other.db"]);
    assert!(ran.code == 1 && ran.err.contains("it has no tables of Heat"), "{ran:?}");
    other.execute_unprepared("SELECT id FROM service").await.unwrap();

    // An interruption after each table.
    for dropped in [1, 8, 13, 15, 17] {
        let heat = Heat::load("finish-again", "convergence", &cloud, sqlite).await;
        heat.take_over("switch", &["--project", PROJECT]).ok();
        for table in kiln_store::HEAT_TABLES.iter().take(dropped) {
            heat.db.execute_unprepared(&format!("DROP TABLE IF EXISTS {table}")).await.unwrap();
        }
        let done = heat.take_over("finish", &["--drop-heat-tables", "heat.db"]).ok();
        assert_eq!(done, "The tables of Heat are dropped. 3 stacks that it had made belong to Kiln.\n", "{dropped}");
        assert_eq!(heat.take_over("status", &["-f", "value"]).ok(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn a_take_over_is_finished_on_servers() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for server in servers() {
        let name = format!("finish-{}", server.kind());
        let test = async |database: &str| {
            let heat = Heat::load(&name, "convergence", &cloud, |_| server.database(database)).await;
            finish(&heat, database).await;
        };
        server.with_database(test).await;
    }
}

async fn finish(heat: &Heat, database: &str) {
    let drop = ["--drop-heat-tables", database];
    let refused = heat.take_over("finish", &drop);
    assert!(refused.code == 1 && refused.out.contains(&format!("Project {PROJECT}: failed, gone, web")), "{refused:?}");
    heat.import(&[]);
    let refused = heat.take_over("finish", &drop);
    assert!(refused.code == 1 && refused.err.contains("3 stacks do not belong to Kiln"), "{refused:?}");
    heat.take_over("switch", &["--project", PROJECT]).ok();
    let told = heat.take_over("finish", &[]).ok();
    assert!(told.contains(&format!("--drop-heat-tables {database}")), "{told}");
    let refused = heat.take_over("finish", &["--drop-heat-tables", "another"]);
    assert!(refused.code == 1 && refused.err.contains("nothing was changed"), "{refused:?}");
    assert_eq!(heat.values("SELECT name FROM stack WHERE owner_id IS NULL AND deleted_at IS NULL").await.len(), 3);
    let done = heat.take_over("finish", &drop).ok();
    assert_eq!(done, "The tables of Heat are dropped. 3 stacks that it had made belong to Kiln.\n");
    let made = tables_of_heat("convergence");
    assert_eq!(made.len(), 17);
    for table in made.keys().map(String::as_str).chain(["kiln_heat_fence"]) {
        assert!(heat.db.execute_unprepared(&format!("SELECT 1 FROM {table}")).await.is_err(), "{table}");
    }
    assert_eq!(heat.values("SELECT root FROM kiln_take_over").await, [""; 0]);
    assert_eq!(
        heat.values("SELECT name FROM kiln_stack WHERE parent_stack IS NULL ORDER BY name").await,
        ["failed", "gone", "web"]
    );
    let back = heat.take_over("switch", &["--project", PROJECT, "--back"]);
    assert!(back.code == 1 && back.err.contains("the database has no tables of Heat"), "{back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_that_are_none_of_a_heat_are_told() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("none", "convergence", &cloud, sqlite).await;
    heat.db.execute_unprepared("UPDATE alembic_version SET version_num = 'x'").await.unwrap();
    let ran = heat.take_over("inventory", &[]);
    assert!(ran.code == 1 && ran.err.contains("a schema that this version does not know"), "{ran:?}");
    heat.db.execute_unprepared("DROP TABLE alembic_version").await.unwrap();
    heat.db.execute_unprepared("CREATE TABLE migrate_version (version INTEGER)").await.unwrap();
    heat.db.execute_unprepared("INSERT INTO migrate_version VALUES (80)").await.unwrap();
    let ran = heat.take_over("inventory", &[]);
    assert!(ran.code == 1 && ran.err.contains("schema 80, of before Rocky (11): not supported"), "{ran:?}");
    heat.db.execute_unprepared("UPDATE migrate_version SET version = 86").await.unwrap();
    heat.take_over("inventory", &["--project", "none"]).ok();
    heat.db.execute_unprepared("DROP TABLE raw_template").await.unwrap();
    let ran = heat.take_over("inventory", &[]);
    assert!(ran.code == 1 && ran.err.contains("the database has no tables of Heat"), "{ran:?}");
}

const NEW: &str = "
heat_template_version: 2018-08-31
parameters: {secret: {type: string, hidden: true}}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: 9}}
  hidden: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::RandomString, properties: {salt: {get_resource: word}}}}
";
const WEB: &str = "
heat_template_version: 2018-08-31
parameters:
  secret: {type: string, hidden: true, default: hush}
  count: {type: number, default: 2}
resources:
  random: {type: OS::Heat::RandomString, properties: {length: 12}}
  more: {type: OS::Heat::Value, properties: {value: [{get_param: secret}, {get_attr: [random, value]}]}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: OS::Heat::RandomString, properties: {length: 8}}
";

/// The stacks are changed by a Kiln, and Heat gets them back as they are then.
async fn change_and_go_back(heat: &Heat, cloud: &Testcloud) {
    let project = heat.move_to_demo(cloud).await;
    let only = ["--project", project.as_str()];
    heat.take_over("switch", &only).ok();
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &heat.kiln_conf]));
    let url = service.url();
    let template = |name: &str, text: &str| heat.folder.write(name, text).display().to_string();
    let (web, new) = (template("web.yaml", WEB), template("new.yaml", NEW));
    let secret = "secret=parameter-planted";
    for words in [
        vec!["stack", "update", "web", "-t", &web, "--parameter", secret, "--parameter", "count=4", "--wait"],
        vec!["stack", "create", "new", "-t", &new, "--parameter", secret, "--tags", "red,black", "--wait"],
        vec!["stack", "snapshot", "create", "web", "--name", "kept"],
        vec!["stack", "delete", "--yes", "--wait", "gone"],
        vec!["software", "config", "create", "own", "--group", "script"],
    ] {
        heat.client(cloud, &url, &words).ok();
    }
    assert_eq!(service.stop().0, 0);

    // What this Heat cannot store is named, and nothing changes.
    let compared = heat.take_over("compare", &only);
    assert!(compared.code == 1 && compared.out.contains("was made by Kiln"), "{compared:?}");
    for told in ["template differs", "it is not in Heat", "it is deleted in Kiln", "more: this resource is not in Heat"]
    {
        assert!(compared.out.contains(told), "{told}: {compared:?}");
    }
    let back = ["--project", project.as_str(), "--back"];
    let refused = heat.take_over("switch", &back);
    assert!(refused.code == 1 && refused.err.contains("Heat cannot store 1 stacks"), "{refused:?}");
    heat.db.execute_unprepared("DELETE FROM kiln_snapshot").await.unwrap();

    // All or nothing of a stack, and then the rest.
    let full = match heat.db.get_database_backend() {
        DbBackend::Sqlite => "CREATE TRIGGER full BEFORE INSERT ON stack_tag BEGIN SELECT RAISE(ABORT, 'full'); END",
        DbBackend::MySql => "CREATE TRIGGER full BEFORE INSERT ON stack_tag FOR EACH ROW SIGNAL SQLSTATE '45000'",
        _ => "ALTER TABLE stack_tag ADD CONSTRAINT full_ CHECK (tag <> 'black')",
    };
    heat.db.execute_unprepared(full).await.unwrap();
    let stopped = heat.take_over("switch", &back);
    assert_eq!(stopped.code, 1, "{stopped:?}");
    let live = "SELECT name FROM stack WHERE deleted_at IS NULL AND owner_id IS NULL ORDER BY name";
    assert_eq!(heat.values(live).await, ["failed", "web"]);
    let free = match heat.db.get_database_backend() {
        DbBackend::Postgres => "ALTER TABLE stack_tag DROP CONSTRAINT full_",
        _ => "DROP TRIGGER full",
    };
    heat.db.execute_unprepared(free).await.unwrap();
    let fenced = heat.db.execute_unprepared("UPDATE stack SET status_reason = '' WHERE name = 'web'").await;
    assert!(fenced.unwrap_err().to_string().contains("belongs to Kiln"));
    // Meanwhile no import overwrites it, and no request reaches it.
    assert_eq!(heat.import(&[]), "failed unchanged\nweb switched\n");
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &heat.kiln_conf]));
    let url = service.url();
    let refused = heat.client(cloud, &url, &["stack", "list"]);
    assert!(refused.code != 0 && refused.err.contains("belong to another Orchestration service"), "{refused:?}");
    let health = health(&url);
    assert!(health.contains("heat: 1 projects belong to it"), "{health}");
    assert_eq!(service.stop().0, 0);

    let done = heat.take_over("switch", &back);
    assert_eq!(done.ok(), format!("Project {project}: 2 stacks belong to Heat.\n"));
    assert_eq!(heat.values(live).await, ["failed", "new", "web"]);
    let names = "SELECT resource.name FROM resource INNER JOIN stack ON stack.id = resource.stack_id WHERE stack.name = 'web' \
                 ORDER BY resource.name";
    assert_eq!(heat.values(names).await, ["group", "more", "random"]);
    // The convergence engine never updates a stack without a traversal.
    let lost = "SELECT name FROM stack WHERE deleted_at IS NULL AND current_traversal IS NULL AND convergence = ";
    let yes = if heat.db.get_database_backend() == DbBackend::Postgres { "TRUE" } else { "1" };
    assert_eq!(heat.values(&format!("{lost}{yes}")).await, [""; 0]);
    let depths = "SELECT CAST(nested_depth AS CHAR(1)) FROM stack WHERE name LIKE 'new-%'";
    assert_eq!(heat.values(depths).await, ["1"]);
    let tags = "SELECT tag FROM stack_tag INNER JOIN stack ON stack.id = stack_tag.stack_id WHERE name = 'new' ORDER BY stack_tag.id";
    assert_eq!(heat.values(tags).await, ["red", "black"]);
    assert_eq!(heat.values("SELECT name FROM software_config ORDER BY name").await, ["own", "script"]);
    let deleted = "SELECT action FROM stack WHERE name = 'gone' AND deleted_at IS NOT NULL";
    assert_eq!(heat.values(deleted).await, ["DELETE"]);

    // What a Heat that encrypts gets is encrypted with its key.
    if std::fs::read_to_string(&heat.source).unwrap().contains("properties = true") {
        for (table, column) in [
            ("raw_template", "environment"),
            ("resource_properties_data", "data"),
            ("resource_data", "value"),
            ("user_creds", "password"),
        ] {
            let stored = heat.values(&format!("SELECT {column} FROM {table}")).await.concat();
            assert!(PLANTED.iter().all(|planted| !stored.contains(planted)), "{table}: {stored}");
        }
    }

    // Heat's rows say the same as Kiln's: every field, and the next import changes nothing.
    assert_eq!(heat.compared(&[]), "failed imported [] yes\nnew imported [] yes\nweb imported [] yes\n");
    assert_eq!(heat.import(&[]), "failed unchanged\nnew unchanged\nweb unchanged\n");
    let inventory: Value = serde_json::from_str(&heat.take_over("inventory", &["-f", "json"]).ok()).unwrap();
    let found = &inventory["projects"][&project]["findings"];
    assert!(found.as_array().unwrap().iter().all(|finding| finding["stack"] == "failed"), "{inventory}");

    // And Kiln gets them again, also one that runs already.
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &heat.kiln_conf]));
    let url = service.url();
    assert_ne!(heat.client(cloud, &url, &["stack", "list"]).code, 0);
    heat.take_over("switch", &only).ok();
    while heat.client(cloud, &url, &["stack", "list"]).code != 0 {}
    heat.client(cloud, &url, &["stack", "update", "new", "--existing", "--wait"]).ok();
    heat.client(cloud, &url, &["stack", "delete", "--yes", "--wait", "web", "new", "failed"]).ok();
    assert_eq!(service.stop().0, 0);
    assert_eq!(heat.take_over("switch", &back).ok(), format!("Project {project}: 3 stacks belong to Heat.\n"));
    assert_eq!(heat.values(live).await, [""; 0]);
    assert_eq!(heat.values("SELECT name FROM resource").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kiln_has_changed_is_written_for_heat() {
    for way in WAYS {
        let cloud = Testcloud::builder().start().await.unwrap();
        change_and_go_back(&Heat::load("changed", way, &cloud, sqlite).await, &cloud).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn stacks_that_kiln_has_changed_are_written_for_heat_on_servers() {
    for server in servers_or_cluster() {
        let cloud = Testcloud::builder().start().await.unwrap();
        let test = async |database: &str| {
            let heat = Heat::load("changed", "convergence-encrypted", &cloud, |_| server.database(database)).await;
            change_and_go_back(&heat, &cloud).await;
        };
        server.with_database(test).await;
    }
}

const LIVE: &str = "
heat_template_version: 2018-08-31
resources:
  net: {type: OS::Neutron::Net, properties: {name: live-net}}
  # Heat stores this name without its ID.
  port: {type: OS::Neutron::Port, properties: {network: private}}
  members:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: OS::Neutron::Net, properties: {name: live-member}}}
  group:
    type: OS::Heat::AutoScalingGroup
    properties: {min_size: 1, max_size: 2, resource: {type: OS::Heat::RandomString}}
  out:
    type: OS::Heat::ScalingPolicy
    properties: {adjustment_type: change_in_capacity, auto_scaling_group_id: {get_resource: group}, scaling_adjustment: 1}
outputs:
  alarm: {value: {get_attr: [out, alarm_url]}}
";

/// A Heat with the stack `live`, whose credentials and users this cloud knows. `copy.db` is its database from when Kiln had it.
async fn with_live_stack(name: &str, cloud: &Testcloud) -> Heat {
    let heat = Heat::load(name, "convergence-encrypted", cloud, sqlite).await;
    let domain = "[DEFAULT]\nstack_user_domain_name = heat\nstack_domain_admin = heat_domain_admin\n\
                  stack_domain_admin_password = password\nheat_waitcondition_server_url = http://127.0.0.1:8000/v1/waitcondition\n";
    let text = std::fs::read_to_string(&heat.kiln_conf).unwrap();
    std::fs::write(&heat.kiln_conf, text.replacen("[DEFAULT]\n", domain, 1)).unwrap();
    let project = heat.move_to_demo(cloud).await;
    heat.take_over("switch", &["--project", &project]).ok();
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &heat.kiln_conf]));
    let template = heat.folder.write("live.yaml", LIVE).display().to_string();
    heat.client(cloud, &service.url(), &["stack", "create", "live", "-t", &template, "--wait"]).ok();
    assert_eq!(service.stop().0, 0);
    let copy = heat.folder.path().join("copy.db").display().to_string();
    heat.db.execute_unprepared(&format!("VACUUM INTO '{copy}'")).await.unwrap();
    heat.take_over("switch", &["--project", &project, "--back"]).ok();
    assert_eq!(heat.compared(&["--stack", "live"]), "live imported [] yes\n", "Heat has no IDs of names");
    // From here on Kiln knows what Heat's tables say, and nothing else.
    heat.take_over("drop", &[]).ok();
    heat.import(&[]);
    heat
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_after_a_switch_what_they_see_before() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = with_live_stack("views", &cloud).await;
    // A Kiln that has the stack answers as its Heat would.
    let own = std::fs::read_to_string(&heat.kiln_conf).unwrap();
    let config = heat.folder.write("copy.conf", &own.replace("heat.db", "copy.db")).display().to_string();
    let answering = || {
        let service = Running::start(heat.folder.kiln(&["api", "--config-file", &config]));
        std::fs::write(&heat.kiln_conf, format!("{own}[kiln]\nheat_api_url = {}\n", service.url())).unwrap();
        service
    };
    let live = || {
        let compared = heat.take_over("compare", &["--live", "-f", "json", "--stack", "live"]);
        let rows: Value = serde_json::from_str(&compared.out).unwrap_or_else(|_| panic!("{compared:?}"));
        assert_eq!(compared.code, 0, "{compared:?}");
        serde_json::from_value::<Vec<String>>(rows[0]["Live"].clone()).unwrap()
    };
    let service = answering();
    cloud.journal().clear();
    // Six for each of three stacks, and two for each type.
    assert_eq!(live(), ["3 objects read, 2 users and keys work, 30 answers of both APIs compared"]);
    assert_eq!(cloud.journal().writes(), ["POST identity /ec2tokens"]);

    assert_eq!(service.stop().0, 0);

    // What is different is named, without its value.
    let url = format!("sqlite://{}", heat.folder.path().join("copy.db").display());
    let copy = Box::pin(Database::connect(url)).await.unwrap();
    let other = "UPDATE kiln_resource SET reason = 'parameter-planted' WHERE name = 'net'";
    copy.execute_unprepared(other).await.unwrap();
    let service = answering();
    let told = live().join("\n");
    let seen = "notice: net: clients see other values: resource.resource_status_reason (in net)";
    assert!(told.contains(seen) && told.contains("resource_status_reason (in resources)"), "{told}");
    copy.execute_unprepared("DELETE FROM kiln_stack WHERE name = 'live'").await.unwrap();
    assert!(live().join("\n").contains("Heat answers 404, and Kiln 200"));
    assert_eq!(service.stop().0, 0);
    let told = live();
    assert!(told[1].starts_with("notice: Heat does not answer: "), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cloud_says_before_a_switch_what_would_not_work() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = with_live_stack("live", &cloud).await;

    let live = |stack: &str| -> (i32, String) {
        let compared = heat.take_over("compare", &["--live", "-f", "json", "--stack", stack]);
        let rows: Value = serde_json::from_str(&compared.out).unwrap_or_else(|_| panic!("{compared:?}"));
        assert_eq!(rows[0]["Differences"], serde_json::json!([]), "{compared:?}");
        (compared.code, serde_json::from_value::<Vec<String>>(rows[0]["Live"].clone()).unwrap().join("\n"))
    };
    cloud.journal().clear();
    let fine = (0, "3 objects read, 2 users and keys work".to_owned());
    assert_eq!(live("live"), fine);
    assert_eq!(cloud.journal().writes(), ["POST identity /ec2tokens"]);
    // The cloud knows nothing of the trusts of Heat's own stacks.
    let (code, told) = live("web");
    assert!(code == 1 && told.contains("blocks: Kiln gets no token with its credentials: "), "{told}");

    let (demo, admin) =
        (CloudUser::of(&cloud, cloud.users().demo).await, CloudUser::of(&cloud, cloud.users().admin).await);
    let id =
        async |user: &CloudUser, service: &str, path: &str, key: &str, is_it: &dyn Fn(&kiln_value::Value) -> bool| {
            let all = user.call(service, Method::Get, path, None).await;
            let one = all.get(key).and_then(kiln_value::Value::as_list).unwrap().iter().find(|one| is_it(one));
            one.and_then(|one| one.str_at("id")).unwrap().to_owned()
        };
    let named = |name: &'static str| move |one: &kiln_value::Value| one.str_at("name").unwrap().starts_with(name);
    // A name that means nothing any more, or another object, is no drift: nobody knows what it has meant.
    let private = id(&admin, "network", "/v2.0/networks", "networks", &named("private")).await;
    let (url, name) = (format!("/v2.0/networks/{private}"), |name: &str| value!({ "network": { "name": name } }));
    admin.call("network", Method::Put, &url, Some(name("former"))).await;
    assert_eq!(live("live"), fine);
    let other = demo.network("private").await;
    assert_eq!(live("live"), fine);
    demo.call("network", Method::Delete, &format!("/v2.0/networks/{other}"), None).await;
    admin.call("network", Method::Put, &url, Some(name("private"))).await;

    let net = id(&demo, "network", "/v2.0/networks", "networks", &named("live-net")).await;
    let member = id(&demo, "network", "/v2.0/networks", "networks", &named("live-member")).await;
    let renamed = value!({ "network": { "name": "other" } });
    demo.call("network", Method::Put, &format!("/v2.0/networks/{net}"), Some(renamed)).await;
    demo.call("network", Method::Delete, &format!("/v2.0/networks/{member}"), None).await;
    let (code, told) = live("live");
    assert_eq!(code, 0, "{told}");
    for what in ["net: others have changed its object: name", "members/0: its object does not exist in the cloud"] {
        assert!(told.contains(&format!("notice: {what}")), "{told}");
    }

    let user = id(&admin, "identity", "/v3/users", "users", &named("live-")).await;
    admin.call("identity", Method::Delete, &format!("/v3/users/{user}"), None).await;
    let (code, told) = live("live");
    assert_eq!((code, told.matches("blocks: out: K").count()), (1, 2), "{told}");
    assert!(told.contains("out: Keystone refuses its EC2 key, so its signals would be refused"), "{told}");
    let trust = id(&admin, "identity", "/v3/OS-TRUST/trusts", "trusts", &|_| true).await;
    admin.call("identity", Method::Delete, &format!("/v3/OS-TRUST/trusts/{trust}"), None).await;
    let (code, told) = live("live");
    assert!(code == 1 && told.contains("blocks: Kiln gets no token with its credentials: "), "{told}");

    // A Keystone that does not answer is no missing user.
    cloud.faults().add(Fault::new(Service::Identity, "POST", "/auth/tokens", Action::Status(503)));
    let (code, told) = live("live");
    assert!(code == 1 && told.contains("Kiln gets no token") && told.contains("503"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_does_nothing_to_a_project_that_is_heats() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("heats", "convergence", &cloud, sqlite).await;
    let back = ["--project", PROJECT, "--back"];
    let configs = "SELECT name FROM software_config ORDER BY name";
    let made_by_heat = "INSERT INTO software_config SELECT 'later', created_at, updated_at, 'later', \"group\", config, tenant FROM \
                        software_config";
    // It was never switched: only imported, or not even that.
    for before in [None, Some("import"), Some("switch")] {
        match before {
            Some("switch") => {
                heat.take_over("switch", &["--project", PROJECT]).ok();
                heat.take_over("switch", &back).ok();
            }
            Some(command) => drop(heat.take_over(command, &[]).ok()),
            None => {}
        }
        // What Heat makes after that is not in Kiln.
        heat.db.execute_unprepared(made_by_heat).await.unwrap();
        assert_eq!(heat.take_over("switch", &back).ok(), format!("Project {PROJECT}: 0 stacks belong to Heat.\n"));
        assert_eq!(heat.values(configs).await, ["later", "script"], "{before:?}");
        heat.db.execute_unprepared("DELETE FROM software_config WHERE id = 'later'").await.unwrap();
    }
}

/// Kills of each command, at moments that are spread over its run.
const KILLS: u32 = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing_and_never_lets_both_work() {
    let kills = std::env::var("KILN_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("killed", "convergence", &cloud, sqlite).await;
    let of_kiln = format!("SELECT id FROM kiln_stack WHERE project = '{PROJECT}'");
    let rows = "SELECT name FROM stack WHERE deleted_at IS NULL ORDER BY id";
    let stacks = heat.values(rows).await;
    heat.take_over("import", &["--stack", "none"]).ok();
    // What Kiln has changed, for the way back.
    let change = "UPDATE kiln_stack SET reason = 'changed by Kiln'";
    let (only, back) = (["--project", PROJECT], ["--project", PROJECT, "--back"]);
    for (command, words) in [("import", &[][..]), ("switch", &only), ("switch", &back)] {
        if words.len() == back.len() {
            heat.db.execute_unprepared(change).await.unwrap();
        }
        let begun = std::time::Instant::now();
        let mut last = std::time::Duration::from_millis(300);
        for kill in 0..kills {
            let mut all = vec!["manage", "take-over", command, "--config-file", &heat.kiln_conf];
            all.extend(["--heat-config", &heat.source]);
            all.extend(words);
            let mut process = heat.folder.kiln(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(last * kill / kills);
            process.kill().unwrap();
            process.wait().unwrap();
            // At most one of them works on the stacks.
            let is_kilns = !heat.values(&of_kiln).await.is_empty();
            let write = heat.db.execute_unprepared("UPDATE stack SET timeout = timeout").await;
            assert!(!(is_kilns && write.is_ok()), "{command} {words:?}: both after kill {kill}");
            assert_eq!(heat.values(rows).await, stacks);
            if kill == 0 {
                last = last.max(begun.elapsed());
            }
        }
        heat.take_over(command, words).ok();
    }
    assert_eq!(heat.compared(&[]), "failed imported [] yes\ngone imported [] yes\nweb imported [] yes\n");
    let reasons = "SELECT DISTINCT status_reason FROM stack WHERE deleted_at IS NULL";
    assert_eq!(heat.values(reasons).await, ["changed by Kiln"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_operators_at_once_are_one_after_the_other() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("two", "convergence", &cloud, sqlite).await;
    for (command, words) in
        [("import", &[][..]), ("switch", &["--project", PROJECT]), ("switch", &["--project", PROJECT, "--back"])]
    {
        let mut all = vec!["manage", "take-over", command, "--config-file", &heat.kiln_conf];
        all.extend(["--heat-config", &heat.source]);
        all.extend(words);
        let both =
            [(); 2].map(|()| heat.folder.kiln(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let done = both.map(|one| Ran::from(one.wait_with_output().unwrap()));
        assert!(done.iter().any(|one| one.code == 0), "{command}: {done:?}");
    }
    assert_eq!(heat.compared(&[]), "failed imported [] yes\ngone imported [] yes\nweb imported [] yes\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_follows_what_heat_changes() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("follow", "convergence", &cloud, sqlite).await;
    let words = ["manage", "take-over", "import", "--follow", "1", "--config-file", &heat.kiln_conf];
    let mut command = heat.folder.kiln(&[&words[..], &["--heat-config", &heat.source]].concat());
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap().split_once("  ").unwrap().1.to_owned();
    let first = [next(), next(), next()];
    assert!(first.iter().all(|line| line.starts_with("imported ")), "{first:?}");
    heat.db.execute_unprepared("UPDATE resource SET action = 'SIGNAL' WHERE name = 'random'").await.unwrap();
    assert!(next().starts_with("refused   web "));
    heat.db.execute_unprepared("UPDATE resource SET action = 'UPDATE' WHERE name = 'random'").await.unwrap();
    assert!(next().starts_with("imported  web "));
    heat.db.execute_unprepared("UPDATE stack SET deleted_at = created_at WHERE name = 'failed'").await.unwrap();
    assert!(next().starts_with("gone      failed "));
    let stop = std::process::Command::new("kill").args(["-TERM", &following.id().to_string()]).status().unwrap();
    assert!(stop.success() && following.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_that_are_made_during_the_way_back_go_back_too() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("busy", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    heat.take_over("switch", &["--project", &project]).ok();
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &heat.kiln_conf]));
    let url = service.url();
    let template = "heat_template_version: 2018-08-31\nresources: {word: {type: OS::Heat::RandomString}}\n";
    let template = heat.folder.write("word.yaml", template).display().to_string();
    let mut made = std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            let mut made = Vec::new();
            for number in 0.. {
                let name = format!("made-{number:03}");
                let ran = heat.client(&cloud, &url, &["stack", "create", &name, "-t", &template]);
                made.push(name);
                if ran.err.contains("belong to another Orchestration service") {
                    break;
                }
            }
            made
        });
        // Until no stack is in progress at that moment.
        let back = ["--project", project.as_str(), "--back"];
        while heat.take_over("switch", &back).code != 0 {}
        user.join().unwrap()
    });
    assert_eq!(service.stop().0, 0);
    let own = format!("SELECT name FROM kiln_stack WHERE project = '{project}'");
    assert_eq!(heat.values(&own).await, [""; 0]);
    let live =
        "SELECT name FROM stack WHERE deleted_at IS NULL AND owner_id IS NULL AND name LIKE 'made-%' ORDER BY name";
    let live = heat.values(live).await;
    // The last one was refused, or it was made and only the wait for it was refused.
    made.pop_if(|last| live.last() != Some(last));
    assert!(made.len() > 1, "{made:?}");
    assert_eq!(live, made);
}
