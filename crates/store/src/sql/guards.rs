//! Guards.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::GuardId;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Order, Query};
use serde::{Deserialize, Serialize};

use super::columns::{Columns, micros, optional_id, plain};
use super::migrations::WITH_GUARDS;
use super::pool::Transaction;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::guard::GuardTerms;
use crate::{Author, Error, Guard, GuardStore, WebhookMessage};

const COLUMNS: [&str; 7] = ["id", "project", "stack", "body", "user_id", "username", "created"];

/// The number of the format of a body.
const FORMAT: u32 = 1;

/// The body of a row.
#[derive(Serialize, Deserialize)]
struct Body {
    format: u32,
    #[serde(flatten)]
    terms: GuardTerms,
}

#[async_trait]
impl GuardStore for SqlStore {
    async fn add_guard(&self, guard: &Guard) -> Result<(), Error> {
        let body = Body { format: FORMAT, terms: guard.terms.clone() };
        let body = serde_json::to_string(&body).map_err(|error| Error::Invalid(error.into()))?;
        let insert = Query::insert()
            .into_table(schema::GUARD)
            .columns(COLUMNS)
            .values([
                guard.id.to_string().into(),
                plain(&guard.project).into(),
                optional_id(guard.stack.as_ref()),
                plain(&body).into(),
                plain(&guard.author.user_id).into(),
                plain(&guard.author.username).into(),
                micros(guard.created).into(),
            ])
            .map_err(Fault::from)?
            .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned())
            .to_owned();
        // Each commit of an engine changes the row of its lease first, and reads the guards later.
        let mut pending = Query::select();
        pending.column("id").from(schema::STACK).and_where(Expr::col("due").is_not_null());
        match guard.stack {
            Some(root) => pending.and_where(Expr::col("root").eq(root.to_string())),
            None => pending.and_where(Expr::col("project").eq(plain(&guard.project))),
        };
        let wait = Query::update()
            .table(schema::LEASE)
            .value("writes", Expr::col("writes").add(1))
            .and_where(Expr::col("stack").in_subquery(pending))
            .to_owned();
        self.retry(|| async {
            let tx = self.begin().await?;
            let is_new = tx.execute(&insert).await?.rows_affected() > 0;
            set_floor(&tx).await?;
            tx.execute(&wait).await?;
            if is_new {
                let told = WebhookMessage::of_guard(guard, "added", &guard.author, guard.created);
                self.tell_webhooks(&tx, &guard.project, told).await?;
            }
            tx.commit().await
        })
        .await
    }

    async fn lift_guard(&self, project: &str, id: GuardId, by: &Author) -> Result<bool, Error> {
        let is_it = || Expr::col("id").eq(id.to_string()).and(Expr::col("project").eq(plain(project)));
        let update = Query::update()
            .table(schema::GUARD)
            .value("lifted", self.outside.now())
            .value("lifted_by", plain(&by.user_id))
            .and_where(is_it())
            .and_where(Expr::col("lifted").is_null())
            .to_owned();
        let lifted = Query::select()
            .column("id")
            .from(schema::GUARD)
            .and_where(is_it())
            .and_where(Expr::col("lifted").is_not_null())
            .and_where(Expr::col("lifted_by").eq(plain(&by.user_id)))
            .to_owned();
        let read = Query::select().columns(COLUMNS).column("lifted").from(schema::GUARD).and_where(is_it()).to_owned();
        self.retry_numbered(|attempt| {
            let (update, lifted, read) = (&update, &lifted, &read);
            async move {
                let tx = self.begin().await?;
                let mut is_done = tx.execute(update).await?.rows_affected() > 0;
                if is_done && let Some(row) = tx.query_one(read).await? {
                    let mut columns = Columns::of(&row);
                    let (guard, time) = (self::guard(&mut columns)?, columns.time()?);
                    self.tell_webhooks(&tx, project, WebhookMessage::of_guard(&guard, "lifted", by, time)).await?;
                }
                // An earlier attempt lifted it and lost its connection.
                is_done |= attempt > 1 && tx.query_one(lifted).await?.is_some();
                set_floor(&tx).await?;
                tx.commit().await?;
                Ok(is_done)
            }
        })
        .await
    }

    async fn guards(&self, project: &str) -> Result<Vec<Guard>, Error> {
        let select = Query::select()
            .columns(COLUMNS)
            .from(schema::GUARD)
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("lifted").is_null())
            .order_by("seq", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| guard(&mut Columns::of(row))).collect()
        })
        .await
    }
}

/// While there are guards, only programs that know them can use the database.
async fn set_floor(tx: &Transaction) -> Result<(), Fault> {
    let live =
        Query::select().column("id").from(schema::GUARD).and_where(Expr::col("lifted").is_null()).limit(1).to_owned();
    let floor = i64::try_from(WITH_GUARDS).unwrap_or(i64::MAX);
    if tx.query_one(&live).await?.is_none() {
        let is_it = Expr::col("floor").eq(floor);
        tx.execute(Query::delete().from_table(schema::FLOOR).and_where(is_it)).await?;
        return Ok(());
    }
    let mut insert = Query::insert();
    insert
        .into_table(schema::FLOOR)
        .columns(["floor"])
        .values([floor.into()])?
        .on_conflict(OnConflict::column("floor").do_nothing_on(["floor"]).to_owned());
    tx.execute(&insert).await?;
    Ok(())
}

fn guard(columns: &mut Columns<'_>) -> Result<Guard, Fault> {
    let (id, project, stack) = (columns.parsed()?, columns.text()?, columns.optional_parsed()?);
    let body: Body = serde_json::from_str(&columns.text()?).map_err(|error| Error::Damaged(error.into()))?;
    if body.format > FORMAT {
        return Err(Error::Damaged(format!("the guard {id} is of a newer version of Kiln").into()).into());
    }
    let author = Author { user_id: columns.text()?, username: columns.text()? };
    let created: Timestamp = columns.time()?;
    Ok(Guard { id, project, stack, terms: body.terms, author, created })
}

/// The number of the guards of a project, with the number of lifted ones.
pub(super) fn guards_of(project: Expr) -> Expr {
    let select = Query::select()
        .expr(Expr::cust("COUNT(*) + COUNT(lifted)"))
        .from(schema::GUARD)
        .and_where(Expr::col((schema::GUARD, "project")).eq(project))
        .to_owned();
    Expr::SubQuery(None, Box::new(select.into()))
}

/// Deletes the guards of stacks; returns the number of rows.
pub(super) async fn remove_guards_of(tx: &Transaction, stacks: &[String]) -> Result<u64, Fault> {
    let of_stacks = Expr::col("stack").is_in(stacks.iter().cloned());
    let gone = tx.execute(Query::delete().from_table(schema::GUARD).and_where(of_stacks)).await?.rows_affected();
    if gone > 0 {
        set_floor(tx).await?;
    }
    Ok(gone)
}
