//! Rows that no Heat writes: each is refused by name or read, whatever it contains.

#![expect(clippy::unwrap_used, reason = "a test: it fails where a result is not as expected")]

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use kiln_plan::ResourceTypes;
use kiln_resource::{Registry, shipped};
use kiln_store::{Options, SqlStore, Store as _};
use kiln_take_over::{Converter, HeatDatabase, HeatKey, Import, Outcome, Selection, inventory};
use kiln_value::Secret;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection};
use serde_json::{Map, Value};

/// Heat's default key.
const KEY: &str = "notgood but just long enough i t";

/// The tables of `tests/heat_database/27-convergence-encrypted.json`, in a file.
struct Heat {
    folder: PathBuf,
    tables: Map<String, Value>,
    db: DatabaseConnection,
}

impl Heat {
    async fn load() -> Self {
        let folder = std::env::temp_dir().join(format!("kiln-hostile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let db = Box::pin(Database::connect(format!("sqlite://{}/heat.db?mode=rwc", folder.display()))).await.unwrap();
        let rows = include_str!("../../../tests/heat_database/27-convergence-encrypted.json");
        let tables: Map<String, Value> = serde_json::from_str(rows).unwrap();
        for (table, content) in &tables {
            let columns: Vec<String> =
                content["columns"].as_object().unwrap().keys().map(|name| format!("\"{name}\"")).collect();
            db.execute_unprepared(&format!("CREATE TABLE {table} ({})", columns.join(", "))).await.unwrap();
            for row in content["rows"].as_array().unwrap() {
                let values: Vec<String> = row.as_array().unwrap().iter().map(literal).collect();
                db.execute_unprepared(&format!("INSERT INTO {table} VALUES ({})", values.join(", "))).await.unwrap();
            }
        }
        Self { folder, tables, db }
    }

    async fn set(&self, table: &str, column: &str, row: usize, value: &str) {
        let update = format!("UPDATE {table} SET \"{column}\" = {value} WHERE rowid = {}", row + 1);
        self.db.execute_unprepared(&update).await.unwrap();
    }
}

impl Drop for Heat {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// The values that a column gets, one after the other.
fn hostile() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(3000), "]".repeat(3000));
    let texts = [
        "",
        "null",
        "0",
        "-9223372036854775808",
        "x",
        "[]",
        "{}",
        "[null]",
        "{\"a\": null}",
        "{\"parameters\": [], \"resource_registry\": 1, \"encrypted_param_names\": [\"secret\", 1, \"none\"]}",
        "{\"parameters\": {\"secret\": [\"cryptography_decrypt_v1\", \"gAAA\"]}, \"encrypted_param_names\": [\"secret\"]}",
        "{\"resources\": {\"random\": []}, \"heat_template_version\": \"2018-08-31\"}",
        "{\"value\": [\"heat_decrypt\", \"x\"]}",
        "\u{1f600}\u{feff}",
        "9999-99-99 99:99:99",
        "-0001-01-01 00:00:00",
        "\\",
    ];
    let mut all: Vec<String> =
        vec!["NULL".to_owned(), "1e400".to_owned(), "x'80049500'".to_owned(), "char(97, 0, 98)".to_owned()];
    all.extend(texts.into_iter().map(|text| literal(&text.into())));
    all.push(literal(&deep.into()));
    all.push("hex(zeroblob(500000))".to_owned());
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_stops_the_others() {
    let heat = Heat::load().await;
    let options = |file: &str| {
        Options::new(format!("sqlite://{}/{file}?mode=rwc", heat.folder.display()), Secret::new(KEY[..32].to_owned()))
    };
    let database = HeatDatabase::open(&options("heat.db")).await.unwrap();
    let store = SqlStore::open(options("kiln.db")).await.unwrap();
    store.migrate().await.unwrap();
    let types = Arc::new(ResourceTypes::new(Registry::build(shipped::types().unwrap(), |_| None)));
    let key = HeatKey::new(&Secret::new(KEY.to_owned())).unwrap();
    let converter = Converter { types, key, trustee: None, events: 0 };
    let import = Import { heat: &database, converter: &converter, store: &store, dry_run: false };
    let all = Selection::default();
    let found = inventory(&database, &converter, &all, |_, _| {}).await.unwrap();
    assert!(found.is_ready(), "{found:?}");
    let (mut done, mut refused) = (0, 0);
    for (table, content) in &heat.tables {
        if matches!(table.as_str(), "alembic_version" | "service" | "sync_point" | "stack_lock") {
            continue;
        }
        let columns: Vec<&String> = content["columns"].as_object().unwrap().keys().collect();
        let rows = content["rows"].as_array().unwrap();
        for (at, column) in columns.iter().enumerate() {
            for (number, value) in hostile().into_iter().enumerate() {
                // Each third value of each column, and another row each time.
                if (at + number) % 3 != 0 {
                    continue;
                }
                let row = (at + number) % rows.len().max(1);
                let Some(was) = rows.get(row).and_then(|row| row.get(at)) else { continue };
                heat.set(table, column, row, &value).await;
                let mut outcomes = Vec::new();
                let run = import.run(&all, |one, _, _| outcomes.push(one.outcome)).await;
                // What a whole project cannot do without is an error with the row.
                if let Err(error) = run {
                    let error = kiln_value::Chain(&error).to_string();
                    assert!(
                        table.starts_with("software") && error.contains(table),
                        "{table}.{column} = {value:.80}: {error}"
                    );
                }
                refused += usize::from(outcomes.contains(&Outcome::Refused));
                done += 1;
                heat.set(table, column, row, &literal(was)).await;
            }
        }
    }
    assert!(done > 500 && refused > 50, "{done} values, {refused} refused");
    let again = inventory(&database, &converter, &all, |_, _| {}).await.unwrap();
    assert!(again.is_ready());
    assert!(store.now().await.unwrap() > Timestamp::UNIX_EPOCH);
}
