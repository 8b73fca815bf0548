//! Connections to a server that are older than `connection_recycle_time`.

use std::collections::BTreeSet;
use std::time::Duration;

use kiln_store::{Options, SqlStore, Store as _};
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement};

use crate::bed::{beds, options};

/// The sessions on this database, without the one that asks.
async fn sessions(db: &DatabaseConnection) -> BTreeSet<String> {
    let query = match db.get_database_backend() {
        DbBackend::Postgres => {
            "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        }
        _ => {
            "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        }
    };
    let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), query)).await.unwrap();
    rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

#[tokio::test]
async fn an_old_connection_is_not_used_again() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_server() {
            continue;
        }
        let mut one = ConnectOptions::new(bed.url());
        one.max_connections(1);
        let db = Box::pin(Database::connect(one)).await.unwrap();
        for (max_age, is_used_again) in [(None, true), (Some(Duration::ZERO), false)] {
            let store = SqlStore::open(Options { max_age, ..options(bed.url()) }).await.unwrap();
            store.engines().await.unwrap();
            let before = sessions(&db).await;
            store.engines().await.unwrap();
            let after = sessions(&db).await;
            assert_eq!(after.is_subset(&before), is_used_again, "{max_age:?}: {before:?}, {after:?}");
        }
        db.close().await.unwrap();
        bed.end().await;
    }
}
