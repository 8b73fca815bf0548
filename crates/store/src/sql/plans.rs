//! Saved plans.

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Func, OnConflict, Order, Query, SelectStatement};
use uuid::Uuid;

use super::columns::{Columns, micros, micros_of, plain};
use super::pool::Transaction;
use super::row::Row as _;
use super::statement_retry::Fault;
use super::writing::insert_each;
use super::{SqlStore, schema};
use crate::limits::{PLAN_KEPT, STACKS};
use crate::plan::{NewPlan, PlanPart, PlanQuery, PlanState, PlanStore};
use crate::{Approval, Author, Digest, Error, Plan, PlanId, WebhookMessage};

#[async_trait]
impl PlanStore for SqlStore {
    async fn save_plan(&self, new: &NewPlan) -> Result<(), Error> {
        let plan = &new.plan;
        let of_name = |name: &str| {
            Query::select()
                .column("id")
                .from(schema::PLAN)
                .and_where(Expr::col("stack").eq(plan.stack.to_string()))
                .and_where(Expr::col("name").eq(name))
                .and_where(Expr::col("id").ne(plan.id.to_string()))
                .to_owned()
        };
        let same_name = plan.name.as_deref().map(|name| (name, of_name(name)));
        let exists = Query::select()
            .column("id")
            .from(schema::PLAN)
            .and_where(Expr::col("id").eq(plan.id.to_string()))
            .to_owned();
        self.retry_numbered(|attempt| {
            let (same_name, exists) = (&same_name, &exists);
            async move {
                let tx = self.begin().await?;
                // An earlier attempt saved it and lost its connection.
                if attempt > 1 && tx.query_one(exists).await?.is_some() {
                    return Ok(());
                }
                if let Some((name, select)) = same_name
                    && tx.query_one(select).await?.is_some()
                {
                    return Err(Error::NameTaken((*name).to_owned()).into());
                }
                self.store_contents(&tx, &new.desired).await?;
                let row = plan.write(&self.vault)?;
                insert_each(&tx, Plan::TABLE, Plan::COLUMNS, [Ok(row)].into_iter(), None).await?;
                let parts = new.parts.iter().enumerate().map(|(number, part)| self.row_of_part(plan.id, number, part));
                insert_each(&tx, schema::PLAN_PART, &PART_COLUMNS, parts, None).await?;
                let told = WebhookMessage::of_plan(plan, "saved", plan.author.as_ref(), plan.created);
                self.tell_webhooks(&tx, &plan.project, told).await?;
                tx.commit().await
            }
        })
        .await
    }

    async fn plan(&self, project: &str, id: PlanId) -> Result<Option<Plan>, Error> {
        let select = Query::select()
            .columns(Plan::columns())
            .from(schema::PLAN)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("project").eq(project))
            .to_owned();
        self.retry(|| async {
            self.reader.query_one(&select).await?.map(|row| Columns::opening(&row, &self.vault).read()).transpose()
        })
        .await
    }

    async fn plans(&self, query: &PlanQuery) -> Result<Vec<Plan>, Error> {
        self.retry(|| async {
            let mut select = select_plans(query.without_bodies);
            select.and_where(Expr::col("project").eq(query.project.as_str()));
            if let Some(stack) = query.stack {
                select.and_where(Expr::col("stack").eq(stack.to_string()));
            }
            if let Some(name) = &query.stack_name {
                select.and_where(Expr::col("stack_name").eq(name.as_str()));
            }
            if let Some(marker) = query.marker {
                let place = Query::select()
                    .column("seq")
                    .from(schema::PLAN)
                    .and_where(Expr::col("id").eq(marker.to_string()))
                    .and_where(Expr::col("project").eq(query.project.as_str()))
                    .to_owned();
                let Some(row) = self.reader.query_one(&place).await? else {
                    return Err(Error::NotFound(format!("plan {marker}")).into());
                };
                select.and_where(Expr::col("seq").lt(Columns::of(&row).int()?));
            }
            select.order_by("seq", Order::Desc);
            if let Some(limit) = query.limit {
                select.limit(limit);
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    async fn count_plans(&self, project: &str) -> Result<u64, Error> {
        let select = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::PLAN)
            .and_where(Expr::col("project").eq(project))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Columns::of(&row).count(),
                None => Ok(0),
            }
        })
        .await
    }

    async fn plan_parts(&self, plan: PlanId, path: Option<&str>) -> Result<Vec<String>, Error> {
        let mut select = Query::select();
        select.columns(["id", "body"]).from(schema::PLAN_PART).and_where(Expr::col("plan").eq(plan.to_string()));
        if let Some(path) = path {
            select.and_where(Expr::col("place").eq(Digest::of(path).0));
        }
        select.order_by("number", Order::Asc);
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).plan_part()).collect()
        })
        .await
    }

    async fn reject_plan(&self, plan: PlanId) -> Result<bool, Error> {
        let update = Query::update()
            .table(schema::PLAN)
            .value("state", PlanState::Rejected.as_str())
            .and_where(Expr::col("id").eq(plan.to_string()))
            .and_where(Expr::col("state").eq(PlanState::Ready.as_str()))
            .to_owned();
        let rejected = Query::select()
            .column("id")
            .from(schema::PLAN)
            .and_where(Expr::col("id").eq(plan.to_string()))
            .and_where(Expr::col("state").eq(PlanState::Rejected.as_str()))
            .to_owned();
        self.retry_numbered(|attempt| {
            let (update, rejected) = (&update, &rejected);
            async move {
                let tx = self.begin().await?;
                if tx.execute(update).await?.rows_affected() > 0 {
                    self.tell_of_plan(&tx, plan, "rejected", None).await?;
                    tx.commit().await?;
                    return Ok(true);
                }
                Ok(attempt > 1 && tx.query_one(rejected).await?.is_some())
            }
        })
        .await
    }

    async fn approve_plan(&self, approval: &Approval) -> Result<(), Error> {
        let Author { user_id, username } = &approval.author;
        let id = Uuid::new_v5(&approval.plan.0, user_id.as_bytes());
        let insert = Query::insert()
            .into_table(schema::PLAN_APPROVAL)
            .columns(["id", "plan", "user_id", "username", "given"])
            .values([
                id.to_string().into(),
                approval.plan.to_string().into(),
                plain(user_id).into(),
                plain(username).into(),
                micros(approval.time).into(),
            ])
            .map_err(Fault::from)?
            .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned())
            .to_owned();
        self.retry(|| async {
            let tx = self.begin().await?;
            if tx.execute(&insert).await?.rows_affected() > 0 {
                self.tell_of_plan(&tx, approval.plan, "approved", Some(&approval.author)).await?;
            }
            tx.commit().await
        })
        .await
    }

    async fn approvals(&self, plan: PlanId) -> Result<Vec<Approval>, Error> {
        let select = Query::select()
            .columns(["user_id", "username", "given"])
            .from(schema::PLAN_APPROVAL)
            .and_where(Expr::col("plan").eq(plan.to_string()))
            .order_by("given", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let approval = |row| {
                let mut columns = Columns::of(row);
                let author = Author { user_id: columns.text()?, username: columns.text()? };
                Ok(Approval { plan, author, time: columns.time()? })
            };
            rows.iter().map(approval).collect()
        })
        .await
    }

    async fn delete_plans(&self, ids: &[PlanId]) -> Result<Vec<PlanId>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.retry(|| async {
            let tx = self.begin().await?;
            let (_, kept) = remove_plans(&tx, ids.iter().map(ToString::to_string).collect()).await?;
            tx.commit().await?;
            Ok(ids.iter().copied().filter(|id| kept.contains(&id.to_string())).collect())
        })
        .await
    }
}

const PART_COLUMNS: [&str; 5] = ["id", "plan", "number", "place", "body"];

impl SqlStore {
    fn row_of_part(&self, plan: PlanId, number: usize, part: &PlanPart) -> Result<Vec<Expr>, Fault> {
        let id = self.outside.uuid().to_string();
        let body = self.vault.seal(&id, &part.body)?;
        Ok(vec![
            id.into(),
            plan.to_string().into(),
            i64::try_from(number).unwrap_or(i64::MAX).into(),
            Digest::of(&part.path).0.into(),
            body.into(),
        ])
    }

    /// Uses up the plan of a request, in the transaction of the request.
    pub(super) async fn use_plan(&self, tx: &Transaction, plan: PlanId) -> Result<(), Fault> {
        let is_valid = Cond::any().add(Expr::col("expires").is_null()).add(Expr::col("expires").gt(self.outside.now()));
        let update = Query::update()
            .table(schema::PLAN)
            .value("state", PlanState::Executed.as_str())
            .and_where(Expr::col("id").eq(plan.to_string()))
            .and_where(Expr::col("state").eq(PlanState::Ready.as_str()))
            .cond_where(is_valid)
            .to_owned();
        if tx.execute(&update).await?.rows_affected() == 0 {
            return Err(Error::PlanUsed(plan).into());
        }
        self.tell_of_plan(tx, plan, "executed", None).await
    }

    /// Tells webhooks about a change of a plan.
    async fn tell_of_plan(&self, tx: &Transaction, id: PlanId, what: &str, by: Option<&Author>) -> Result<(), Fault> {
        if !self.webhooks {
            return Ok(());
        }
        let mut select = select_plans(true);
        select.expr(self.outside.now()).and_where(Expr::col("id").eq(id.to_string()));
        let Some(row) = tx.query_one(&select).await? else { return Ok(()) };
        let mut columns = Columns::opening(&row, &self.vault);
        let (plan, now) = (columns.read::<Plan>()?, columns.time()?);
        self.tell_webhooks(tx, &plan.project, WebhookMessage::of_plan(&plan, what, by, now)).await
    }

    /// Deletes plans that expired long ago and are not being executed; returns the number of rows.
    pub(super) async fn forget_plans(&self) -> Result<u64, Error> {
        let select = Query::select()
            .column("id")
            .from(schema::PLAN)
            .and_where(Expr::col("expires").lt(self.outside.now().sub(micros_of(PLAN_KEPT))))
            .and_where(is_executing().not())
            .limit(STACKS as u64)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let ids: Vec<String> = rows.iter().map(|row| Columns::of(row).text()).collect::<Result<_, _>>()?;
            if ids.is_empty() {
                return Ok(0);
            }
            let tx = self.begin().await?;
            let (gone, _) = remove_plans(&tx, ids).await?;
            tx.commit().await?;
            Ok(gone)
        })
        .await
    }
}

/// The columns of plans; the bodies are null if they are not wanted.
fn select_plans(without_bodies: bool) -> SelectStatement {
    let mut select = Query::select();
    for column in Plan::columns() {
        if column == "body" && without_bodies {
            // A null with the type of a text.
            select.expr_as(Expr::cust("NULLIF(state, state)"), "body");
        } else {
            select.column(column);
        }
    }
    select.from(schema::PLAN).to_owned()
}

/// Whether the request of a plan, a row of the outer query, is in progress. It is the next one of the stack after the plan.
fn is_executing() -> Expr {
    let of_stack = |column: &'static str| Expr::col((schema::STACK, column));
    let pending = Query::select()
        .expr(Expr::val(1))
        .from(schema::STACK)
        .and_where(of_stack("id").equals((schema::PLAN, "stack")))
        .and_where(of_stack("settled").lt(of_stack("generation")))
        .and_where(of_stack("generation").eq(Expr::col((schema::PLAN, "generation")).add(1)))
        .to_owned();
    Expr::col((schema::PLAN, "state")).eq(PlanState::Executed.as_str()).and(Expr::exists(pending))
}

/// Deletes plans with their parts, except those that are being executed; returns the number of rows and the IDs of these.
async fn remove_plans(tx: &Transaction, mut ids: Vec<String>) -> Result<(u64, Vec<String>), Fault> {
    // This waits for a request that is just using one up, whose stack is read afterwards.
    let unused = Query::delete()
        .from_table(schema::PLAN)
        .and_where(Expr::col("id").is_in(ids.iter().cloned()))
        .and_where(Expr::col("state").ne(PlanState::Executed.as_str()))
        .to_owned();
    let mut gone = tx.execute(&unused).await?.rows_affected();
    let executing = Query::select()
        .column("id")
        .from(schema::PLAN)
        .and_where(Expr::col("id").is_in(ids.iter().cloned()))
        .and_where(is_executing())
        .to_owned();
    let rows = tx.query_all(&executing).await?;
    let kept: Vec<String> = rows.iter().map(|row| Columns::of(row).text()).collect::<Result<_, _>>()?;
    ids.retain(|id| !kept.contains(id));
    for (table, column) in [(schema::PLAN_PART, "plan"), (schema::PLAN_APPROVAL, "plan"), (schema::PLAN, "id")] {
        let delete =
            Query::delete().from_table(table).and_where(Expr::col(column).is_in(ids.iter().cloned())).to_owned();
        gone += tx.execute(&delete).await?.rows_affected();
    }
    Ok((gone, kept))
}

/// Deletes the plans of stacks: change sets, or all. Returns the number of rows.
pub(super) async fn remove_plans_of(tx: &Transaction, stacks: &[String], only_named: bool) -> Result<u64, Fault> {
    let mut select = Query::select();
    select.column("id").from(schema::PLAN).and_where(Expr::col("stack").is_in(stacks.iter().cloned()));
    if only_named {
        select.and_where(Expr::col("name").is_not_null());
    }
    let rows = tx.query_all(&select).await?;
    let ids: Vec<String> = rows.iter().map(|row| Columns::of(row).text()).collect::<Result<_, _>>()?;
    if ids.is_empty() { Ok(0) } else { Ok(remove_plans(tx, ids).await?.0) }
}
