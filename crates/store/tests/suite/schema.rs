//! A program on a database of a newer one: it can be used while nothing has changed that this one needs.

use kiln_store::{Error, SchemaState, SqlStore, Store as _};

use crate::bed::{beds, options};

#[tokio::test]
async fn a_newer_schema_can_be_used_above_its_floor() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_shared() {
            continue;
        }
        let store = SqlStore::open(options(bed.url())).await.unwrap();
        let versions = store.schema_versions().await.unwrap();
        assert_eq!(versions.state(), SchemaState::Current);
        assert!(versions.floor <= versions.latest);
        let newer = versions.latest + 1;
        bed.execute(&format!("INSERT INTO kiln_schema_version (version, done) VALUES ({newer}, 0)")).await;
        store.migrate().await.unwrap();
        assert_eq!(store.schema_versions().await.unwrap().state(), SchemaState::UsableNewer);
        bed.execute(&format!("INSERT INTO kiln_schema_floor (floor) VALUES ({newer})")).await;
        let refused = store.migrate().await.unwrap_err();
        assert!(
            matches!(&refused, Error::Unusable(why) if why.to_string().contains("from a newer version")),
            "{refused}"
        );
        assert_eq!(store.schema_versions().await.unwrap().state(), SchemaState::TooNew);
        // A version before the floor was stored: only its own programs use it.
        bed.execute("DELETE FROM kiln_schema_floor").await;
        assert_eq!(store.schema_versions().await.unwrap().state(), SchemaState::TooNew);
        drop(store);
        bed.end().await;
    }
}

/// The code says what a text may not, and not in each language of a server.
#[tokio::test]
async fn an_error_of_a_database_has_its_code() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            bed.execute("DROP TABLE kiln_plan").await;
            let error = bed.store.count_plans("p").await.unwrap_err().to_string();
            let code = match bed.url().split_once(':') {
                Some(("sqlite", _)) => "(code: 1)",
                Some(("postgres", _)) => "42P01",
                _ => "1146 (42S02)",
            };
            assert!(error.contains(code), "{error}");
        }
        bed.end().await;
    }
}

/// PostgreSQL, whose accounts a test may create: the account of a service owns no table and may define none.
#[tokio::test]
async fn a_service_without_the_right_to_define_tables_starts() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.url().starts_with("postgres") {
            continue;
        }
        let role = format!("role_{}", uuid::Uuid::new_v4().simple());
        bed.execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
        ))
        .await;
        let (_, place) = bed.url().split_once('@').unwrap();
        let store = SqlStore::open(options(&format!("postgres://{role}@{place}"))).await.unwrap();
        store.migrate().await.unwrap();
        drop(store);
        // A schema of an earlier version needs the right.
        bed.execute("DELETE FROM kiln_schema_version WHERE version > 1").await;
        let store = SqlStore::open(options(&format!("postgres://{role}@{place}"))).await.unwrap();
        let refused = store.migrate().await.unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{refused}");
        drop(store);
        bed.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
        bed.end().await;
    }
}
