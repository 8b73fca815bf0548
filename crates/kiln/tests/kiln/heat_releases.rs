//! Databases that each release of Heat has made (`tests/heat_database/make.py`) come under Kiln, and go back as they were.
//!
//! ```sh
//! crates/store/tests/databases.sh .ci/tests kiln:kiln heat_releases -- --include-ignored
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, DbBackend};
use serde_json::Value;

use crate::databases::servers_or_cluster;
use crate::take_over::{Heat, PROJECT, sqlite, tables_of_heat};

/// All of them: `releases/RELEASE-WAY`.
fn databases() -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/heat_database/releases");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.map(|file| format!("releases/{}", file.trim_end_matches(".json.gz"))).collect();
    names.sort();
    names
}

/// The rows of Heat's tables, in any order of them.
async fn rows(heat: &Heat, name: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (table, content) in tables_of_heat(name) {
        let columns: Vec<&str> = content["columns"].as_object().unwrap().keys().map(String::as_str).collect();
        let query = match heat.db.get_database_backend() {
            DbBackend::Postgres => format!("SELECT CAST(row_to_json({table}) AS TEXT) FROM {table}"),
            DbBackend::MySql => format!("SELECT CAST(JSON_ARRAY(`{}`) AS CHAR) FROM {table}", columns.join("`, `")),
            _ => format!("SELECT json_array(\"{}\") FROM {table}", columns.join("\", \"")),
        };
        all.extend(heat.values(&query).await.into_iter().map(|row| format!("{table} {row}")));
    }
    all
}

/// Takes all stacks over and gives them back, without a change of any row.
async fn goes_there_and_back(heat: &Heat, name: &str) {
    let legacy = name.contains("legacy");
    let inventory = heat.take_over("inventory", &["-f", "json"]);
    let found: Value = serde_json::from_str(&inventory.out).unwrap();
    let project = &found["projects"][PROJECT];
    let (stacks, nested, ready) = (&project["stacks"], &project["nested"], &project["ready"]);
    let expected: [i64; 3] = if legacy { [7, 5, 6] } else { [8, 4, 8] };
    assert_eq!([stacks, nested, ready].map(Value::as_i64), expected.map(Some), "{name}: {found}");
    // The plan of the first day is empty for all that have not failed.
    assert_eq!(project["unchanged"], 5, "{name}: {found}");
    let findings = project["findings"].as_array().unwrap();
    for finding in findings {
        let stack = finding["stack"].as_str().unwrap();
        assert!(["failed", "gone", "replaced"].contains(&stack), "{name}: {finding}");
    }
    // The legacy engine keeps what a failed update has replaced in a backup stack, until the next one.
    let blocked = findings.iter().any(|finding| finding["grade"] == "blocks");
    assert_eq!((blocked, inventory.code), (legacy, i32::from(legacy)), "{name}: {found}");
    if legacy {
        let refused = heat.take_over("switch", &["--project", PROJECT]);
        assert!(refused.code == 1, "{name}: {refused:?}");
        let delete = "UPDATE stack SET deleted_at = created_at WHERE name LIKE 'replaced%'";
        heat.db.execute_unprepared(delete).await.unwrap();
    }

    let before = rows(heat, name).await;
    let done = heat.take_over("switch", &["--project", PROJECT]);
    let switched = format!("Project {PROJECT}: {} stacks belong to Kiln, after ", expected[2]);
    assert!(done.out.starts_with(&switched), "{name}: {done:?}");
    let compared: Value = serde_json::from_str(&heat.take_over("compare", &["-f", "json"]).ok()).unwrap();
    for stack in compared.as_array().unwrap() {
        assert!(
            stack["Differences"].as_array().unwrap().is_empty() && stack["Can Go Back"] == "yes",
            "{name}: {stack}"
        );
    }
    heat.take_over("switch", &["--project", PROJECT, "--back"]).ok();
    let after = rows(heat, name).await;
    let changed: Vec<_> = before.symmetric_difference(&after).collect();
    assert!(changed.is_empty(), "{name}: {changed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_of_every_release_come_and_go() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for name in databases().iter().filter(|name| !name.contains("legacy")) {
        goes_there_and_back(&Heat::load("release", name, &cloud, sqlite).await, name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_stacks_of_every_release_come_and_go() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for name in databases().iter().filter(|name| name.contains("legacy")) {
        goes_there_and_back(&Heat::load("release", name, &cloud, sqlite).await, name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn stacks_of_old_and_new_releases_come_and_go_on_servers() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for server in servers_or_cluster() {
        for name in databases().iter().filter(|name| ["19-", "23-", "27-"].iter().any(|one| name.contains(one))) {
            let test = async |database: &str| {
                goes_there_and_back(
                    &Heat::load(server.kind(), name, &cloud, |_| server.database(database)).await,
                    name,
                )
                .await;
            };
            server.with_database(test).await;
        }
    }
}
