//! Kiln started on a database of Heat.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --include-ignored heat_database
//! ```

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database, DbBackend};

use crate::databases::{servers, with_url};
use crate::run::Folder;
use crate::running::Running;

/// What of Heat's tables says which stacks there are, with two live stacks, a nested and a deleted one.
const HEAT: &[&str] = &[
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
    "CREATE TABLE raw_template (id INTEGER PRIMARY KEY, template TEXT)",
    "CREATE TABLE stack (id VARCHAR(36) PRIMARY KEY, name VARCHAR(255), owner_id VARCHAR(36), raw_template_id INTEGER, \
     deleted_at DATETIME, tenant VARCHAR(255))",
    "INSERT INTO stack VALUES ('a', 'a', NULL, 1, NULL, 'p'), ('b', 'b', NULL, 1, NULL, 'p'), ('c', 'a-c', 'a', 1, NULL, \
     'p'), ('d', 'd', NULL, 1, '2026-01-01 00:00:00', 'q')",
];

#[tokio::test(flavor = "multi_thread")]
async fn live_stacks_of_heat_are_not_passed_over_in_silence() {
    let folder = Folder::new("heat-database");
    let url = format!("sqlite://{}/kiln.db?mode=rwc", folder.path().display());
    live_stacks_are_told(&folder, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn live_stacks_of_heat_are_found_on_servers() {
    for server in servers() {
        let folder = Folder::new("heat-database-server");
        server.with_database(async |database| live_stacks_are_told(&folder, &server.database(database)).await).await;
    }
}

/// For an empty database.
async fn live_stacks_are_told(folder: &Folder, url: &str) {
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = with_url(folder, &cloud, url);
    let db = Box::pin(Database::connect(url)).await.unwrap();
    for statement in HEAT {
        let statement = match db.get_database_backend() {
            DbBackend::Postgres => statement.replace("DATETIME", "TIMESTAMP"),
            _ => (*statement).to_owned(),
        };
        db.execute_unprepared(&statement).await.unwrap();
    }
    let told = "this database contains 2 live stacks of Heat, which Kiln does not show";
    for role in ["api", "engine"] {
        let service = Running::start(folder.kiln(&[role, "--config-file", &config]));
        let log = service.wait_for(told);
        assert!(service.log().lines().any(|line| line.contains("ERROR") && line.contains(&log)), "{}", service.log());
    }
    let doctor = folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(
        doctor.code == 1 && doctor.out.contains(&format!("failed  stacks of Heat             {told}")),
        "{doctor:?}"
    );
    let status = folder.run(&["heat-status", "--config-file", &config, "upgrade", "check", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    let check = found["checks"].as_array().unwrap().iter().find(|check| check["check"] == "Stacks of Heat").unwrap();
    assert!(check["result"] == 2 && check["details"].as_str().unwrap().starts_with(told), "{status:?}");
    assert_eq!(status.code, 2);

    // Without a live stack, there is nothing to tell.
    db.execute_unprepared("UPDATE stack SET deleted_at = '2026-01-02 00:00:00'").await.unwrap();
    let doctor = folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(doctor.code == 0 && !doctor.out.contains("stacks of Heat"), "{doctor:?}");
}
