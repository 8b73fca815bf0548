//! Migrations of the schema.
//!
//! They are numbered, written in code, and safe to run at every start and from several processes at once. SQLite and
//! PostgreSQL change tables in a transaction under a lock. MariaDB and MySQL commit each DDL statement immediately, and
//! a named lock does not cover the nodes of a cluster: there each statement may run twice, and "already exists" means
//! success.

mod m0001_first;
mod m0002_inbox;
mod m0003_rings;
mod m0004_snapshots;
mod m0006_change_sets;
mod m0007_software;
mod m0008_stack_list;
mod m0009_outbox;
mod m0010_orphans;
mod m0011_stack_names;
mod m0012_physical_ids;
mod m0013_resource_names;
mod m0014_event_order;
mod m0015_operations;
mod m0016_plans;
mod m0017_guards;
mod m0018_take_over;
mod m0019_settings;
mod m0020_webhooks;
mod m0021_drift;
mod m0022_quotas;
mod m0023_stacks_of_all;
mod m0024_drift_repair;
mod m0025_projects_of_heat;
mod m0026_durations;
mod m0027_claims;
mod m0028_worksheets;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};

use super::columns::Columns;
use super::dialect::Dialect;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::Error;

/// A step of a migration.
enum Change {
    /// A statement for every database, with the placeholders of [`Dialect::define`].
    All(&'static str),
    /// Widens columns of short texts to any text, each with `NULL` or `NOT NULL`.
    Widen { table: &'static str, columns: &'static [(&'static str, &'static str)] },
}

impl Change {
    /// The statement; `None` if the database needs none.
    fn statement(&self, dialect: Dialect) -> Option<String> {
        match self {
            Self::All(statement) => Some(dialect.define(statement)),
            Self::Widen { table, columns } => {
                let columns = columns.iter().map(|(column, null)| dialect.widen(column, null));
                let changes: Vec<String> = columns.collect::<Option<_>>()?;
                Some(format!("ALTER TABLE {table} {}", changes.join(", ")))
            }
        }
    }
}

/// The changes of each migration; the first has number 1. Append only.
const MIGRATIONS: &[&[Change]] = &[
    m0001_first::CHANGES,
    m0002_inbox::CHANGES,
    m0003_rings::CHANGES,
    m0004_snapshots::CHANGES,
    m0006_change_sets::CHANGES,
    m0007_software::CHANGES,
    m0008_stack_list::CHANGES,
    m0009_outbox::CHANGES,
    m0010_orphans::CHANGES,
    m0011_stack_names::CHANGES,
    m0012_physical_ids::CHANGES,
    m0013_resource_names::CHANGES,
    m0014_event_order::CHANGES,
    m0015_operations::CHANGES,
    m0016_plans::CHANGES,
    m0017_guards::CHANGES,
    m0018_take_over::CHANGES,
    m0019_settings::CHANGES,
    m0020_webhooks::CHANGES,
    m0021_drift::CHANGES,
    m0022_quotas::CHANGES,
    m0023_stacks_of_all::CHANGES,
    m0024_drift_repair::CHANGES,
    m0025_projects_of_heat::CHANGES,
    m0026_durations::CHANGES,
    m0027_claims::CHANGES,
    m0028_worksheets::CHANGES,
];

/// The oldest version of the schema whose programs can use the present one. A migration that only adds what older programs
/// do not need leaves it as it is, so that an upgrade can be taken back without a restore.
const OLDEST_USABLE: usize = 10;

/// The version of the schema that this program makes.
pub const SCHEMA: usize = MIGRATIONS.len();

/// The version of the schema with plans, and that with guards: what programs know.
pub(crate) const WITH_PLANS: usize = 15;
/// See [`WITH_PLANS`].
pub(crate) const WITH_GUARDS: usize = 16;

/// An arbitrary number that no other application of the database uses.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7236119543)";

impl SqlStore {
    /// A schema that is up to date is not touched, so that the account of a service needs no right to define tables.
    pub(super) async fn bring_up_to_date(&self) -> Result<(), Error> {
        let versions = self.schema_versions().await?;
        if versions.state() == SchemaState::Current && versions.floor != usize::MAX {
            return Ok(());
        }
        if self.dialect.has_transactional_ddl() {
            self.retry(|| async {
                let tx = self.begin().await?;
                if self.dialect == Dialect::Postgres {
                    tx.execute_unprepared(POSTGRES_LOCK).await?;
                }
                migrate(&tx, self.dialect).await?;
                tx.commit().await
            })
            .await
        } else {
            self.retry(|| async { migrate(&self.writer, self.dialect).await }).await
        }
    }
}

async fn migrate(db: &impl ConnectionTrait, dialect: Dialect) -> Result<(), Fault> {
    let table = format!(
        "CREATE TABLE IF NOT EXISTS {} (version {{int}} NOT NULL PRIMARY KEY, done {{int}} NOT NULL) {{table}}",
        schema::VERSION
    );
    db.execute_unprepared(&dialect.define(&table)).await?;
    let table = format!("CREATE TABLE IF NOT EXISTS {} (floor {{int}} NOT NULL PRIMARY KEY) {{table}}", schema::FLOOR);
    db.execute_unprepared(&dialect.define(&table)).await?;
    let done = version(db).await?;
    if done > SCHEMA {
        return match (SchemaVersions { done, latest: SCHEMA, floor: floor(db).await? }).state() {
            SchemaState::UsableNewer => Ok(()),
            _ => Err(Error::Unusable(
                format!(
                    "its schema has version {done}, from a newer version of Kiln; this version supports up to {SCHEMA}"
                )
                .into(),
            )
            .into()),
        };
    }
    for (index, changes) in MIGRATIONS.iter().enumerate().skip(done) {
        for statement in changes.iter().filter_map(|change| change.statement(dialect)) {
            match db.execute_unprepared(&statement).await.map_err(Fault::from) {
                Err(fault) if !fault.says_exists() => return Err(fault),
                _ => {}
            }
        }
        let number = i64::try_from(index + 1).unwrap_or(i64::MAX);
        let mut insert = Query::insert();
        insert
            .into_table(schema::VERSION)
            .columns(["version", "done"])
            .values([number.into(), dialect.now()])?
            .on_conflict(OnConflict::column("version").do_nothing_on(["version"]).to_owned());
        db.execute(&insert).await?;
        tracing::info!(migration = number, "database schema upgraded");
    }
    let mut insert = Query::insert();
    insert
        .into_table(schema::FLOOR)
        .columns(["floor"])
        .values([i64::try_from(OLDEST_USABLE).unwrap_or(i64::MAX).into()])?
        .on_conflict(OnConflict::column("floor").do_nothing_on(["floor"]).to_owned());
    db.execute(&insert).await?;
    Ok(())
}

/// The schema of a database, and that of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersions {
    /// The version of the database; 0: none yet.
    pub done: usize,
    /// The version that this program makes.
    pub latest: usize,
    /// The oldest version whose programs can use the database.
    pub floor: usize,
}

/// What a program can do with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is no schema yet.
    Missing,
    /// It will be upgraded.
    Older,
    /// It is as this program makes it.
    Current,
    /// A newer program made it, and this one can use it.
    UsableNewer,
    /// A newer program made it, and this one cannot use it.
    TooNew,
}

impl SchemaVersions {
    /// What this program can do with the database.
    pub fn state(self) -> SchemaState {
        match self {
            Self { done: 0, .. } => SchemaState::Missing,
            Self { done, latest, .. } if done < latest => SchemaState::Older,
            Self { done, latest, .. } if done == latest => SchemaState::Current,
            Self { floor, latest, .. } if floor <= latest => SchemaState::UsableNewer,
            _ => SchemaState::TooNew,
        }
    }
}

/// The number of the last completed migration; 0: none.
pub(super) async fn version(db: &impl ConnectionTrait) -> Result<usize, Fault> {
    Ok(largest(db, "version", schema::VERSION).await?.unwrap_or(0))
}

/// The oldest version whose programs can use the database: only its own, if nothing is stored.
pub(super) async fn floor(db: &impl ConnectionTrait) -> Result<usize, Fault> {
    Ok(largest(db, "floor", schema::FLOOR).await?.unwrap_or(usize::MAX))
}

async fn largest(db: &impl ConnectionTrait, column: &'static str, table: &'static str) -> Result<Option<usize>, Fault> {
    let query = Query::select().expr(Expr::col(column).max()).from(table).to_owned();
    let row = db.query_one(&query).await?;
    let Some(number) = row.as_ref().map(|row| Columns::of(row).optional_int()).transpose()?.flatten() else {
        return Ok(None);
    };
    let damaged = |_| Error::Damaged(format!("{column} {number} of the schema").into());
    Ok(Some(usize::try_from(number).map_err(damaged)?))
}
