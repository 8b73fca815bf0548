//! Drift that is watched.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{
    CaseStatement, Cond, Expr, ExprTrait, Func, IntoCondition, JoinType, OnConflict, Order, Query, SelectStatement,
    UpdateStatement,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::columns::{Columns, micros, micros_of, plain};
use super::pool::Transaction;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::drift::{
    DriftCheck, DriftRepair, DriftReport, DriftSchedule, DriftStatus, DriftStore, DriftedResource, WatchedQuery,
    WatchedStack, first_delay,
};
use crate::limits::WATCHED;
use crate::outbox::announced;
use crate::take_over::waiting;
use crate::{Author, Error, Stack, StackId, WebhookMessage};

const SCHEDULE_COLUMNS: [&str; 7] = ["project", "stack", "every", "repair", "user_id", "username", "created"];

/// The aliases of the row of a stack, its comparison, and the schedules of the stack and of its project.
const STACK: &str = "s";
const DRIFT: &str = "d";
const OWN: &str = "own";
const OF_PROJECT: &str = "pro";

/// Comparisons that are looked at to claim one of them: others may claim the first ones.
const CANDIDATES: u64 = 16;

/// The number of the format of a body.
const FORMAT: u32 = 1;

/// The body of a row.
#[derive(Serialize, Deserialize)]
struct Body {
    format: u32,
    resources: Vec<DriftedResource>,
    drifted: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<DriftRepair>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stopped: Vec<DriftedResource>,
}

#[async_trait]
impl DriftStore for SqlStore {
    async fn schedule_drift(&self, schedule: &DriftSchedule) -> Result<(), Error> {
        let (project, stack) = (plain(&schedule.project), of_stack(schedule.stack));
        let insert = Query::insert()
            .into_table(schema::DRIFT_SCHEDULE)
            .columns(SCHEDULE_COLUMNS)
            .values([
                project.into(),
                stack.into(),
                schedule.every.map_or(0, micros_of).into(),
                i64::from(schedule.repair).into(),
                plain(&schedule.author.user_id).into(),
                plain(&schedule.author.username).into(),
                micros(schedule.created).into(),
            ])
            .map_err(Fault::from)?
            .on_conflict(
                OnConflict::columns(["project", "stack"])
                    .update_columns(["every", "repair", "user_id", "username", "created"])
                    .to_owned(),
            )
            .to_owned();
        let decide = decide_again(&schedule.project, schedule.stack);
        self.retry(|| async {
            let tx = self.begin().await?;
            tx.execute(&insert).await?;
            tx.execute(&decide).await?;
            tx.commit().await
        })
        .await
    }

    async fn unschedule_drift(&self, project: &str, stack: Option<StackId>) -> Result<bool, Error> {
        let delete = Query::delete()
            .from_table(schema::DRIFT_SCHEDULE)
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("stack").eq(of_stack(stack)))
            .to_owned();
        let decide = decide_again(project, stack);
        self.retry_numbered(|attempt| {
            let (delete, decide) = (&delete, &decide);
            async move {
                let tx = self.begin().await?;
                let was_there = tx.execute(delete).await?.rows_affected() > 0;
                tx.execute(decide).await?;
                tx.commit().await?;
                Ok(was_there || attempt > 1)
            }
        })
        .await
    }

    async fn drift_schedules(&self, project: &str) -> Result<Vec<DriftSchedule>, Error> {
        let select = Query::select()
            .columns(SCHEDULE_COLUMNS)
            .from(schema::DRIFT_SCHEDULE)
            .and_where(Expr::col("project").eq(plain(project)))
            .order_by("stack", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| schedule(&mut Columns::of(row))).collect()
        })
        .await
    }

    async fn plan_drift_checks(&self, usual: Option<Duration>) -> Result<bool, Error> {
        let any = Query::select()
            .expr(flag(Expr::exists(Query::select().column("stack").from(schema::DRIFT_SCHEDULE).to_owned())))
            .expr(flag(Expr::exists(Query::select().column("stack").from(schema::DRIFT).to_owned())))
            .to_owned();
        let mut undecided = watched();
        with_schedules(&mut undecided);
        undecided
            .column((DRIFT, "stack"))
            .column((OWN, "every"))
            .expr(every(usual))
            .expr(flag(lives().add(Expr::col((STACK, "id")).is_not_null())))
            .and_where(Expr::col((DRIFT, "due")).is_null())
            .limit(WATCHED as u64);
        let unknown = unknown(usual);
        let was_updated = Query::select()
            .column("id")
            .from(schema::STACK)
            .and_where(Expr::col((schema::STACK, "id")).equals((schema::DRIFT, "stack")))
            .and_where(Expr::col((schema::STACK, "updated")).gt(Expr::col((schema::DRIFT, "checked"))))
            .and_where(Expr::col((schema::STACK, "status")).ne("IN_PROGRESS"))
            .to_owned();
        let at_once = Query::update()
            .table(schema::DRIFT)
            .value("due", self.outside.now())
            .and_where(Expr::col((schema::DRIFT, "status")).eq(DriftStatus::Drifted.as_str()))
            .and_where(Expr::col("due").gt(self.outside.now()))
            .and_where(Expr::col("mark").is_null())
            .and_where(Expr::exists(was_updated))
            .to_owned();
        self.retry(|| async {
            if usual.is_none() {
                let row = self.reader.query_one(&any).await?;
                let row = row.ok_or_else(|| Error::Damaged("a SELECT without FROM has no row".into()))?;
                let mut columns = Columns::of(&row);
                if !columns.flag()? && !columns.flag()? {
                    return Ok(false);
                }
            }
            let due = |stack: StackId, own: Option<i64>, every: i64| {
                self.outside.now().add(micros_of(first_delay(stack, period(every), own.is_some())))
            };
            let undecided = self.reader.query_all(&undecided).await?;
            for row in &undecided {
                let mut columns = Columns::of(row);
                let (stack, own, every) = (columns.parsed::<StackId>()?, columns.optional_int()?, columns.int()?);
                let is_it = Cond::all().add(Expr::col("stack").eq(stack.to_string())).add(Expr::col("due").is_null());
                if every == 0 || !columns.flag()? {
                    self.writer.execute(Query::delete().from_table(schema::DRIFT).cond_where(is_it)).await?;
                    continue;
                }
                let mut decide = Query::update();
                decide.table(schema::DRIFT).value("due", due(stack, own, every)).cond_where(is_it);
                self.writer.execute(&decide).await?;
            }
            let unknown = self.reader.query_all(&unknown).await?;
            let mut new = Vec::new();
            for row in &unknown {
                let mut columns = Columns::of(row);
                let (stack, own, every) = (columns.parsed::<StackId>()?, columns.optional_int()?, columns.int()?);
                new.push(vec![stack.to_string().into(), due(stack, own, every)]);
            }
            let tx = self.begin().await?;
            let there = OnConflict::column("stack").do_nothing_on(["stack"]).to_owned();
            insert(&tx, schema::DRIFT, &["stack", "due"], new, Some(there)).await?;
            tx.execute(&at_once).await?;
            tx.commit().await?;
            Ok(undecided.len().max(unknown.len()) >= WATCHED)
        })
        .await
    }

    async fn claim_drift_check(
        &self,
        mark: Uuid,
        ttl: Duration,
        usual: Option<Duration>,
    ) -> Result<Option<DriftCheck>, Error> {
        let mut candidates = watched();
        with_schedules(&mut candidates);
        candidates
            .column((DRIFT, "stack"))
            .columns([(DRIFT, "due"), (DRIFT, "status"), (DRIFT, "body")])
            .expr(Func::coalesce([Expr::col((OWN, "repair")), Expr::col((OF_PROJECT, "repair")), Expr::val(0_i64)]))
            .expr(every(usual))
            .expr(flag(lives().add(Expr::col((STACK, "id")).is_not_null())))
            .and_where(Expr::col((DRIFT, "due")).lte(self.outside.now()))
            .order_by((DRIFT, "due"), Order::Asc)
            .limit(CANDIDATES);
        self.retry(|| async {
            for row in self.reader.query_all(&candidates).await? {
                let mut columns = Columns::of(&row);
                let (stack, due) = (columns.parsed::<StackId>()?, columns.int()?);
                let (earlier, repair, every) = (earlier(&mut columns)?, columns.int()? != 0, columns.int()?);
                let is_it = Cond::all().add(Expr::col("stack").eq(stack.to_string())).add(Expr::col("due").eq(due));
                if every == 0 || !columns.flag()? {
                    self.writer.execute(Query::delete().from_table(schema::DRIFT).cond_where(is_it)).await?;
                    continue;
                }
                let claim = Query::update()
                    .table(schema::DRIFT)
                    .value("mark", mark.to_string())
                    .value("due", self.outside.now().add(micros_of(ttl)))
                    .cond_where(is_it)
                    .to_owned();
                if self.writer.execute(&claim).await?.rows_affected() > 0 {
                    let repairs = earlier.map(|earlier| earlier.repairs).unwrap_or_default();
                    return Ok(Some(DriftCheck { stack, mark, every: period(every), repair, repairs }));
                }
            }
            Ok(None)
        })
        .await
    }

    async fn postpone_drift_check(&self, check: &DriftCheck, delay: Duration) -> Result<(), Error> {
        let update = claimed(check).value("due", self.outside.now().add(micros_of(delay))).to_owned();
        self.retry(|| async { Ok(self.writer.execute(&update).await.map(drop)?) }).await
    }

    async fn end_drift_check(
        &self,
        check: &DriftCheck,
        stack: &Stack,
        report: &DriftReport,
        began: Timestamp,
    ) -> Result<bool, Error> {
        let before = Query::select()
            .columns(["status", "body", "since"])
            .from(schema::DRIFT)
            .and_where(Expr::col("stack").eq(check.stack.to_string()))
            .and_where(Expr::col("mark").eq(check.mark.to_string()))
            .to_owned();
        let ended = self.retry(|| async {
            let tx = self.begin().await?;
            let Some(row) = tx.query_one(&before).await? else { return Ok(false) };
            let mut columns = Columns::of(&row);
            let (earlier, since) = (earlier(&mut columns)?, columns.optional_int()?);
            let is_as_before = earlier.as_ref().is_some_and(|earlier| earlier.status == report.status);
            let body = body(report.after(earlier.as_ref()))?;
            let update = claimed(check)
                .value("due", self.outside.now().add(micros_of(check.every)))
                .value("status", report.status.as_str())
                .value("body", plain(&body))
                .value("checked", micros(began))
                .value("since", since.filter(|_| is_as_before).unwrap_or_else(|| micros(began)))
                .to_owned();
            if tx.execute(&update).await?.rows_affected() == 0 {
                return Ok(false);
            }
            if let Some(news) = report.news_since(earlier.as_ref()) {
                self.tell_of_drift(&tx, stack, report, news, began).await?;
            }
            tx.commit().await?;
            Ok(true)
        });
        let ended = ended.await?;
        self.hub.posted();
        Ok(ended)
    }

    async fn may_repair(&self) -> Result<bool, Error> {
        Ok(self.maintenance().await?.is_none())
    }

    async fn watched_stacks(&self, query: &WatchedQuery) -> Result<Vec<WatchedStack>, Error> {
        let mut select = watched();
        select
            .columns([(STACK, "id"), (STACK, "name"), (STACK, "project")])
            .columns([(DRIFT, "status"), (DRIFT, "body"), (DRIFT, "checked"), (DRIFT, "since"), (DRIFT, "due")])
            .cond_where(lives())
            .order_by((DRIFT, "stack"), Order::Asc)
            .limit(query.limit);
        if let Some(project) = &query.project {
            select.and_where(Expr::col((STACK, "project")).eq(plain(project)));
        }
        if let Some(status) = query.status {
            select.and_where(Expr::col((DRIFT, "status")).eq(status.as_str()));
        }
        if let Some(marker) = query.marker {
            select.and_where(Expr::col((DRIFT, "stack")).gt(marker.to_string()));
        }
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| watched_stack(&mut Columns::of(row))).collect()
        })
        .await
    }
}

impl SqlStore {
    async fn tell_of_drift(
        &self,
        tx: &Transaction,
        stack: &Stack,
        report: &DriftReport,
        news: &str,
        time: Timestamp,
    ) -> Result<(), Fault> {
        let message = WebhookMessage::of_drift(stack, report, news, time);
        if self.notifications {
            self.write_entries(tx, &announced(stack, &[message.announcement(news != "resolved")])).await?;
        }
        self.tell_webhooks(tx, &stack.project, message).await
    }
}

/// Deletes what is stored of the drift of stacks; returns the number of rows.
pub(super) async fn remove_drift_of(tx: &Transaction, stacks: &[String]) -> Result<u64, Fault> {
    let mut gone = 0;
    for table in [schema::DRIFT, schema::DRIFT_SCHEDULE] {
        let of_stacks = Expr::col("stack").is_in(stacks.iter().cloned());
        gone += tx.execute(Query::delete().from_table(table).and_where(of_stacks)).await?.rows_affected();
    }
    Ok(gone)
}

/// Counts the stacks that have drifted.
pub(super) fn count_drifted() -> SelectStatement {
    let mut select = watched();
    select
        .expr(Func::count(Expr::col((STACK, "id"))))
        .cond_where(lives())
        .and_where(Expr::col((STACK, "id")).is_not_null())
        .and_where(Expr::col((DRIFT, "status")).eq(DriftStatus::Drifted.as_str()));
    select
}

/// The comparisons with their stacks.
fn watched() -> SelectStatement {
    let mut select = Query::select();
    select.from_as(schema::DRIFT, DRIFT);
    let of_stack = Expr::col((STACK, "id")).equals((DRIFT, "stack"));
    select.join_as(JoinType::LeftJoin, schema::STACK, STACK, of_stack);
    select
}

/// Live root stacks that are to be compared and of which nothing is stored. Columns: the stack, its own schedule, the period.
fn unknown(usual: Option<Duration>) -> SelectStatement {
    let mut select = Query::select();
    select.from_as(schema::STACK, STACK);
    let of_stack = Expr::col((STACK, "id")).equals((DRIFT, "stack"));
    select.join_as(JoinType::LeftJoin, schema::DRIFT, DRIFT, of_stack);
    with_schedules(&mut select);
    select
        .column((STACK, "id"))
        .column((OWN, "every"))
        .expr(every(usual))
        .cond_where(lives())
        .and_where(Expr::col((DRIFT, "stack")).is_null())
        .and_where(every(usual).gt(0))
        .limit(WATCHED as u64);
    if usual.is_none() {
        // Else all stacks would be read.
        let projects = Query::select().column("project").from(schema::DRIFT_SCHEDULE).to_owned();
        select.and_where(Expr::col((STACK, "project")).in_subquery(projects));
    }
    select
}

fn with_schedules(select: &mut SelectStatement) {
    let same_project = |alias: &'static str| Expr::col((alias, "project")).equals((STACK, "project"));
    let own = same_project(OWN).and(Expr::col((OWN, "stack")).equals((STACK, "id")));
    let of_project = same_project(OF_PROJECT).and(Expr::col((OF_PROJECT, "stack")).eq(""));
    select.join_as(JoinType::LeftJoin, schema::DRIFT_SCHEDULE, OWN, own);
    select.join_as(JoinType::LeftJoin, schema::DRIFT_SCHEDULE, OF_PROJECT, of_project);
}

/// The period of a stack; 0: it is not compared.
fn every(usual: Option<Duration>) -> Expr {
    let usual = Expr::val(usual.map_or(0, micros_of));
    Func::coalesce([Expr::col((OWN, "every")), Expr::col((OF_PROJECT, "every")), usual]).into()
}

/// That a stack is a root stack of Kiln that is not deleted.
fn lives() -> Cond {
    Cond::all()
        .add(Expr::col((STACK, "parent_stack")).is_null())
        .add(Expr::col((STACK, "deleted")).is_null())
        .add(Expr::col((STACK, "project")).not_like(waiting("%")))
}

/// A condition as a number: not all databases have a type for it.
fn flag(condition: impl IntoCondition) -> CaseStatement {
    CaseStatement::new().case(condition, 1_i64).finally(0_i64)
}

/// Lets it be decided again when the stacks of a schedule are compared. A comparison in progress has no result.
fn decide_again(project: &str, stack: Option<StackId>) -> UpdateStatement {
    let mut update = Query::update();
    update.table(schema::DRIFT).value("due", None::<i64>).value("mark", None::<String>);
    if let Some(stack) = stack {
        update.and_where(Expr::col("stack").eq(stack.to_string()));
        return update;
    }
    let of_project = Query::select()
        .column("id")
        .from(schema::STACK)
        .and_where(Expr::col("project").eq(plain(project)))
        .and_where(Expr::col("parent_stack").is_null())
        .and_where(Expr::col("deleted").is_null())
        .to_owned();
    update.and_where(Expr::col("stack").in_subquery(of_project));
    update
}

/// Changes a claimed comparison, and ends the claim.
fn claimed(check: &DriftCheck) -> UpdateStatement {
    Query::update()
        .table(schema::DRIFT)
        .value("mark", None::<String>)
        .and_where(Expr::col("stack").eq(check.stack.to_string()))
        .and_where(Expr::col("mark").eq(check.mark.to_string()))
        .to_owned()
}

/// The column of the stack of a schedule.
fn of_stack(stack: Option<StackId>) -> String {
    stack.as_ref().map(StackId::to_string).unwrap_or_default()
}

fn period(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

fn schedule(columns: &mut Columns<'_>) -> Result<DriftSchedule, Fault> {
    let (project, stack, every) = (columns.text()?, columns.text()?, columns.int()?);
    let damaged = |_| Error::Damaged(format!("the stack {stack:?} of a schedule").into());
    Ok(DriftSchedule {
        project,
        stack: if stack.is_empty() { None } else { Some(stack.parse().map_err(damaged)?) },
        every: Some(period(every)).filter(|every| !every.is_zero()),
        repair: columns.int()? != 0,
        author: Author { user_id: columns.text()?, username: columns.text()? },
        created: columns.time()?,
    })
}

/// The body of a report.
fn body(report: DriftReport) -> Result<String, Error> {
    let DriftReport { resources, drifted, reason, repairs, stopped, .. } = report;
    serde_json::to_string(&Body { format: FORMAT, resources, drifted, reason, repairs, stopped })
        .map_err(|error| Error::Invalid(error.into()))
}

/// The report of a row: `status` and `body`.
fn earlier(columns: &mut Columns<'_>) -> Result<Option<DriftReport>, Fault> {
    let (status, body) = (columns.optional_parsed::<DriftStatus>()?, columns.optional_text()?);
    let (Some(status), Some(body)) = (status, body) else { return Ok(None) };
    let body: Body = serde_json::from_str(&body).map_err(|error| Error::Damaged(error.into()))?;
    let Body { resources, drifted, reason, repairs, stopped, .. } = body;
    Ok(Some(DriftReport { status, resources, drifted, reason, repairs, stopped }))
}

fn watched_stack(columns: &mut Columns<'_>) -> Result<WatchedStack, Fault> {
    Ok(WatchedStack {
        stack: columns.parsed()?,
        name: columns.text()?,
        project: columns.text()?,
        report: earlier(columns)?,
        checked: columns.optional_time()?,
        since: columns.optional_time()?,
        due: columns.optional_time()?,
    })
}
