//! The fence around projects that have left a Heat, in the database of that Heat.

use std::fmt;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{DeleteStatement, Expr, ExprTrait, InsertStatement, Query};

use super::dialect::Dialect;
use super::heat_writing::HeatWriter;
use super::pool::{Pool, Transaction};
use super::statement_retry::{Fault, Losses};
use super::{Options, dialect_of};
use crate::Error;

/// What the error of a refused write says.
const FENCED: &str = "this project belongs to Kiln: kiln manage take-over switch";
/// The tables whose rows are refused: the column with the project, or with the stack.
const FENCED_TABLES: [(&str, &str); 6] = [
    ("stack", "tenant"),
    ("software_config", "tenant"),
    ("software_deployment", "tenant"),
    ("resource", "stack_id"),
    ("event", "stack_id"),
    ("snapshot", "stack_id"),
];

/// All tables of Heat, in the order in which they can be dropped: a table comes before those that it refers to. The tables with
/// the version of the schema are the last ones.
pub const HEAT_TABLES: [&str; 18] = [
    "resource_data",
    "event",
    "resource_snapshot",
    "snapshot",
    "stack_lock",
    "stack_tag",
    "sync_point",
    "resource",
    "resource_properties_data",
    "software_deployment",
    "software_config",
    "service",
    "stack",
    "user_creds",
    "raw_template",
    "raw_template_files",
    "alembic_version",
    "migrate_version",
];

/// A fence around projects in the database of Heat: its tables refuse every change of their stacks, whoever makes it.
#[derive(Clone)]
pub struct HeatFence {
    pool: Pool,
    dialect: Dialect,
}

impl HeatFence {
    /// Connects as a user who may define tables and triggers. `options`: the URL of Heat's database.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let (pool, _) = options.connect(&Losses::default()).await?;
        let dialect = dialect_of(&pool).await?;
        Ok(Self { pool, dialect })
    }

    /// Refuses changes of the stacks of a project from now on.
    pub async fn raise(&self, project: &str) -> Result<(), Error> {
        for statement in self.definitions() {
            match self.pool.execute_unprepared(&statement).await.map_err(Fault::from) {
                Err(fault) if !fault.says_exists() => return Err(fault.into()),
                _ => {}
            }
        }
        match self.pool.execute(&raised(project)?).await.map_err(Fault::from) {
            Err(fault) if !fault.is_duplicate() => Err(fault.into()),
            _ => Ok(()),
        }
    }

    /// Accepts changes of the stacks of a project again.
    pub async fn lower(&self, project: &str) -> Result<(), Error> {
        match self.pool.execute(&lowered(project)).await.map_err(Fault::from) {
            Err(fault) if !fault.says_missing() => Err(fault.into()),
            _ => Ok(()),
        }
    }

    /// Drops all tables of Heat. The list of the fenced projects stays, so that the database can still be recognized.
    pub async fn drop_tables(&self) -> Result<(), Error> {
        for table in HEAT_TABLES {
            self.run(&format!("DROP TABLE IF EXISTS {table}")).await?;
        }
        if self.dialect == Dialect::Postgres {
            for kind in ["tenant", "stack_id"] {
                self.run(&format!("DROP FUNCTION IF EXISTS kiln_heat_fence_{kind}()")).await?;
            }
        }
        Ok(())
    }

    /// Drops the list of the fenced projects, after [`HeatFence::drop_tables`].
    pub async fn remove(&self) -> Result<(), Error> {
        self.run("DROP TABLE IF EXISTS kiln_heat_fence").await
    }

    async fn run(&self, statement: &str) -> Result<(), Error> {
        Ok(self.pool.execute_unprepared(statement).await.map(drop).map_err(Fault::from)?)
    }

    /// Begins to write rows of a project whose fence is raised.
    pub async fn pass(&self, project: &str) -> Result<HeatWriter, Error> {
        let tx = Transaction::begin(&self.pool).await?;
        Ok(HeatWriter::begin(tx, self.dialect, project).await?)
    }

    /// The table of the fenced projects, and the triggers.
    fn definitions(&self) -> Vec<String> {
        let name = if self.dialect == Dialect::Sqlite { "TEXT" } else { "VARCHAR(255)" };
        let mut all = vec![format!("CREATE TABLE IF NOT EXISTS kiln_heat_fence (project {name} NOT NULL PRIMARY KEY)")];
        if self.dialect == Dialect::Postgres {
            for kind in ["tenant", "stack_id"] {
                let test = condition(kind, "was");
                all.push(format!(
                    "CREATE OR REPLACE FUNCTION kiln_heat_fence_{kind}() RETURNS trigger AS $$ DECLARE was RECORD; BEGIN \
                     IF TG_OP = 'INSERT' THEN was := NEW; ELSE was := OLD; END IF; \
                     IF {test} THEN RAISE EXCEPTION '{FENCED}'; END IF; \
                     IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
                ));
            }
        }
        for (table, column) in FENCED_TABLES {
            for (action, row) in [("INSERT", "NEW"), ("UPDATE", "OLD"), ("DELETE", "OLD")] {
                let trigger = format!("kiln_heat_fence_{table}_{}", action.to_lowercase());
                let test = condition(column, row);
                all.push(match self.dialect {
                    Dialect::Sqlite => format!(
                        "CREATE TRIGGER IF NOT EXISTS {trigger} BEFORE {action} ON {table} WHEN {test} \
                         BEGIN SELECT RAISE(ABORT, '{FENCED}'); END"
                    ),
                    Dialect::Postgres => format!(
                        "CREATE OR REPLACE TRIGGER {trigger} BEFORE {action} ON {table} FOR EACH ROW EXECUTE FUNCTION \
                         kiln_heat_fence_{column}()"
                    ),
                    Dialect::MariaDb | Dialect::MySql => format!(
                        "CREATE TRIGGER IF NOT EXISTS {trigger} BEFORE {action} ON {table} FOR EACH ROW BEGIN IF {test} THEN \
                         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{FENCED}'; END IF; END"
                    ),
                });
            }
        }
        all
    }
}

impl fmt::Debug for HeatFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeatFence").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// The statement that fences a project.
pub(super) fn raised(project: &str) -> Result<InsertStatement, Fault> {
    let mut insert = Query::insert();
    insert.into_table("kiln_heat_fence").columns(["project"]).values([project.into()]).map_err(Fault::from)?;
    Ok(insert)
}

/// The statement that ends the fence of a project.
pub(super) fn lowered(project: &str) -> DeleteStatement {
    Query::delete().from_table("kiln_heat_fence").and_where(Expr::col("project").eq(project)).to_owned()
}

/// That a row is of a fenced project.
fn condition(column: &str, row: &str) -> String {
    if column == "tenant" {
        format!("EXISTS (SELECT 1 FROM kiln_heat_fence WHERE project = {row}.tenant)")
    } else {
        format!(
            "EXISTS (SELECT 1 FROM kiln_heat_fence INNER JOIN stack ON stack.tenant = kiln_heat_fence.project WHERE stack.id = \
             {row}.stack_id)"
        )
    }
}
