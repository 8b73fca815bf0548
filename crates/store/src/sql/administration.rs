//! What only operators do, by commands: these calls are not part of [`crate::Store`].

use std::collections::BTreeSet;

use jiff::Timestamp;
use kiln_resource::{OperationState, State, Status};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, Statement};

use super::columns::{Columns, micros};
use super::migrations::SchemaVersions;
use super::statement_retry::Fault;
use super::{SqlStore, migrations, schema};
use crate::{Batch, EngineId, Error, ResourceId, Settle, StackId, Store as _, TakeOverState};

/// How long a reset may take.
const RESET: std::time::Duration = std::time::Duration::from_mins(1);
/// The reason that Heat sets.
const RESET_REASON: &str = "Stack status manually reset";

impl SqlStore {
    /// The version of the database's schema, and the version that this program uses.
    pub async fn schema_versions(&self) -> Result<SchemaVersions, Error> {
        let or_missing = |found: Result<usize, Fault>, missing| match found {
            Err(fault) if fault.says_missing() => Ok(missing),
            found => found,
        };
        let done = or_missing(migrations::version(&self.reader).await, 0)?;
        let floor = or_missing(migrations::floor(&self.reader).await, usize::MAX)?;
        Ok(SchemaVersions { done, latest: migrations::SCHEMA, floor })
    }

    /// The current leases: stack, engine, and the seconds until they expire unless they are renewed; at most `limit`.
    pub async fn leases(&self, limit: u64) -> Result<Vec<(StackId, EngineId, i64)>, Error> {
        let select = Query::select()
            .columns(["stack", "owner"])
            .expr(Expr::col("expires").sub(self.outside.now()))
            .from(schema::LEASE)
            .and_where(Expr::col("expires").gt(self.outside.now()))
            .limit(limit)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let read = rows.iter().map(|row| {
                let mut columns = Columns::of(row);
                Ok((columns.parsed()?, columns.parsed()?, columns.int()? / 1_000_000))
            });
            read.collect()
        })
        .await
    }

    /// The number of live stacks of Heat in the same database that do not belong to Kiln, without nested ones. `None`: there are
    /// no such tables.
    pub async fn stacks_of_heat(&self) -> Result<Option<u64>, Error> {
        let heat = self.dialect.count_tables(&["stack", "raw_template"]);
        let kiln = self.dialect.count_tables(&[schema::TAKE_OVER]);
        let all = "SELECT COUNT(*) FROM stack WHERE deleted_at IS NULL AND owner_id IS NULL";
        let (take_over, switched) = (schema::TAKE_OVER, TakeOverState::Switched);
        let others = format!("{all} AND id NOT IN (SELECT root FROM {take_over} WHERE state = '{switched}')");
        self.retry(|| async {
            if self.count(&heat).await? < 2 {
                return Ok(None);
            }
            // The schema may be older.
            let query = if self.count(&kiln).await? == 0 { all } else { &others };
            self.count(query).await.map(Some)
        })
        .await
    }

    /// The projects with live stacks that belong to a Heat: in its tables, if they are here, or imported and not switched.
    pub async fn projects_of_heat(&self) -> Result<BTreeSet<String>, Error> {
        let heat = self.dialect.count_tables(&["stack", "raw_template"]);
        let (take_over, switched) = (schema::TAKE_OVER, TakeOverState::Switched);
        let known = format!("SELECT DISTINCT project FROM {take_over} WHERE state <> '{switched}'");
        let live = format!(
            "SELECT DISTINCT tenant FROM stack WHERE deleted_at IS NULL AND owner_id IS NULL AND id NOT IN (SELECT root FROM \
             {take_over} WHERE state = '{switched}')"
        );
        self.retry(|| async {
            let mut projects = BTreeSet::new();
            let queries = if self.count(&heat).await? < 2 { vec![&known] } else { vec![&known, &live] };
            for query in queries {
                let query = Statement::from_string(self.reader.get_database_backend(), query.as_str());
                for row in self.reader.query_all_raw(query).await? {
                    projects.extend(Columns::of(&row).optional_text()?);
                }
            }
            Ok(projects)
        })
        .await
    }

    async fn count(&self, query: &str) -> Result<u64, Fault> {
        let query = Statement::from_string(self.reader.get_database_backend(), query);
        let row = self.reader.query_one_raw(query).await?;
        row.map_or(Ok(0), |row| Columns::of(&row).count())
    }

    /// Removes the engines that have missed more than one report; they are removed later anyway.
    pub async fn remove_silent_engines(&self) -> Result<u64, Error> {
        let silent = Expr::col("seen").add(Expr::col("report_interval").mul(2 * 1_000_000_i64)).lt(self.outside.now());
        let delete = Query::delete().from_table(schema::ENGINE).and_where(silent).to_owned();
        self.retry(|| async { Ok(self.writer.execute(&delete).await?.rows_affected()) }).await
    }

    /// Purges the stacks that were deleted before a time, of all projects or of one, `batch` in each transaction.
    /// Returns the number of rows.
    pub async fn purge_deleted(&self, before: Timestamp, project: Option<&str>, batch: u64) -> Result<u64, Error> {
        let batch = std::cmp::max(batch, 1);
        let mut gone = 0;
        loop {
            match self.forget_stacks(before, project, batch).await? {
                0 => return Ok(gone),
                rows => gone += rows,
            }
        }
    }

    /// The stacks that [`Self::purge_deleted`] would purge, the oldest deletions first.
    pub async fn purgeable(&self, before: Timestamp, limit: u64) -> Result<Vec<StackId>, Error> {
        let select = super::housekeeping::forgettable(micros(before), limit);
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::of(row).parsed()).collect()
        })
        .await
    }

    /// Purges deleted stacks, all in one transaction after most of their events. Returns the number of rows.
    pub async fn purge_these(&self, stacks: &[StackId]) -> Result<u64, Error> {
        let select = Query::select()
            .column("id")
            .from(schema::STACK)
            .and_where(Expr::col("id").is_in(stacks.iter().map(ToString::to_string)))
            .and_where(Expr::col("deleted").is_not_null())
            .to_owned();
        let mut gone = 0;
        loop {
            match self.forget_these(&select).await? {
                0 => return Ok(gone),
                rows => gone += rows,
            }
        }
    }

    /// The stack of a resource.
    pub async fn stack_of(&self, resource: ResourceId) -> Result<Option<StackId>, Error> {
        let select = Query::select()
            .column("stack")
            .from(schema::RESOURCE)
            .and_where(Expr::col("id").eq(resource.to_string()))
            .to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| Columns::of(&row).parsed()).transpose()
        })
        .await
    }

    /// Ends the operations of a stack and its nested stacks: what is in progress becomes FAILED, and leases are taken
    /// from their engines. A call to the cloud that is in progress is not ended.
    pub async fn reset(&self, stack: StackId, by: EngineId) -> Result<(), Error> {
        let now = self.now().await?;
        self.stack(stack).await?.ok_or_else(|| Error::NotFound(format!("stack {stack}")))?;
        // Parents first, so that no engine begins with their nested stacks again.
        let mut open = vec![stack];
        while let Some(id) = open.pop() {
            open.extend(self.children(id).await?.iter().filter(|child| !child.deleted).map(|child| child.id));
            Box::pin(self.reset_one(id, by, now)).await?;
        }
        Ok(())
    }

    async fn reset_one(&self, id: StackId, by: EngineId, now: Timestamp) -> Result<(), Error> {
        let Some(stack) = self.stack(id).await?.filter(|stack| stack.deleted.is_none()) else { return Ok(()) };
        if stack.state.status != Status::InProgress && stack.settled >= stack.generation {
            return Ok(());
        }
        let free = Query::update()
            .table(schema::LEASE)
            .value("expires", 0)
            .and_where(Expr::col("stack").eq(id.to_string()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&free).await?;
            Ok(())
        })
        .await?;
        let Some(lease) = self.claim(by, RESET, &[id], 1).await?.into_iter().next() else {
            return Err(Error::Stale(id));
        };
        let mut rows = self.resources(id).await?;
        rows.retain(|row| row.state.status == Status::InProgress || row.running().is_some());
        for row in &mut rows {
            row.state.status = Status::Failed;
            RESET_REASON.clone_into(&mut row.reason);
            row.operation = match std::mem::take(&mut row.operation) {
                OperationState::Running(running) => running.given_up(),
                OperationState::Unknown(_) => OperationState::Idle,
                noted => noted,
            };
        }
        let state = State::new(stack.state.action, Status::Failed);
        let settle = Settle {
            generation: stack.generation,
            state,
            reason: RESET_REASON.to_owned(),
            deleted: false,
            reached: false,
            now,
        };
        self.commit(lease, Batch { save: rows.into(), settle: Some(settle), ..Batch::default() }).await?;
        self.release(&[lease]).await
    }

    /// Deletes stacks and what belongs to them: the oldest deletions first.
    pub(super) async fn forget_stacks(
        &self,
        before: Timestamp,
        project: Option<&str>,
        batch: u64,
    ) -> Result<u64, Error> {
        let mut select = super::housekeeping::forgettable(micros(before), batch);
        if let Some(project) = project {
            select.and_where(Expr::col("project").eq(project));
        }
        self.forget_these(&select).await
    }
}
