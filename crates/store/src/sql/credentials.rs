//! Credentials. They are recorded before they are created, and listed when no live stack refers to them.

use std::time::Duration;

use kiln_value::Secret;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, JoinType, OnConflict, Order, Query, SelectStatement};

use super::columns::{Columns, micros_of};
use super::pool::Transaction;
use super::reading::find_stack;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::{CredentialsId, Error, StackId, UnusedCredentials, UnusedUserProject};

/// Stands for credentials that are not known yet.
const UNKNOWN: &str = "";
/// The column `touched` of credentials that are being revoked: no stack can get them.
const RETIRED: i64 = -1;

impl SqlStore {
    pub(super) async fn put_plan(&self, plan: &Secret<String>) -> Result<CredentialsId, Error> {
        let id = CredentialsId(self.outside.uuid());
        let envelope = self.vault.seal(&plan_row(id), plan.expose())?;
        let now = || self.outside.now();
        self.retry(|| async {
            let insert = Query::insert()
                .into_table(schema::CREDENTIALS)
                .columns(["id", "envelope", "plan", "created", "touched"])
                .values([id.to_string().into(), UNKNOWN.into(), envelope.as_str().into(), now(), now()])?
                .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned())
                .to_owned();
            self.writer.execute(&insert).await?;
            Ok(id)
        })
        .await
    }

    pub(super) async fn put_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error> {
        let envelope = self.vault.seal(&id.to_string(), credentials.expose())?;
        let update = Query::update()
            .table(schema::CREDENTIALS)
            .value("envelope", envelope)
            .value("touched", self.outside.now())
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("touched").ne(RETIRED))
            .to_owned();
        self.retry(|| async { found(id, self.writer.execute(&update).await?.rows_affected()) }).await
    }

    pub(super) async fn get_credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        let row = id.to_string();
        let select = Query::select()
            .column("envelope")
            .from(schema::CREDENTIALS)
            .and_where(Expr::col("id").eq(row.as_str()))
            .and_where(Expr::col("envelope").ne(UNKNOWN))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(found) => Ok(self.vault.open(&row, &Columns::of(&found).text()?)?),
                None => Err(not_found(id)),
            }
        })
        .await
    }

    pub(super) async fn drop_credentials(&self, id: CredentialsId) -> Result<(), Error> {
        let delete =
            Query::delete().from_table(schema::CREDENTIALS).and_where(Expr::col("id").eq(id.to_string())).to_owned();
        self.retry(|| async {
            self.writer.execute(&delete).await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn list_unused_credentials(
        &self,
        older_than: Duration,
        limit: usize,
    ) -> Result<Vec<UnusedCredentials>, Error> {
        let old = |column: &'static str| Expr::col(column).lte(self.outside.now().sub(micros_of(older_than)));
        let select = Query::select()
            .columns(["id", "plan", "envelope", "touched"])
            .from(schema::CREDENTIALS)
            .and_where(Expr::exists(referring(false)).not())
            .and_where(Expr::exists(sending()).not())
            .cond_where(Cond::any().add(Expr::exists(referring(true))).add(old("created").and(old("touched"))))
            .order_by("created", Order::Asc)
            .order_by("id", Order::Asc)
            .limit(limit as u64)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| self.unused(&mut Columns::of(row))).collect()
        })
        .await
    }

    /// The row is compared with what was listed, because a stack may be getting the credentials in a transaction that
    /// this statement cannot see: that writes the row too.
    pub(super) async fn reserve_credentials(&self, unused: &UnusedCredentials) -> Result<bool, Error> {
        let update = Query::update()
            .table(schema::CREDENTIALS)
            .value("touched", RETIRED)
            .and_where(Expr::col("id").eq(unused.id.to_string()))
            .and_where(Expr::col("touched").is_in([unused.touched, RETIRED]))
            .and_where(Expr::exists(referring(false)).not())
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&update).await?.rows_affected() > 0) }).await
    }

    pub(super) async fn list_unused_user_projects(&self, limit: usize) -> Result<Vec<UnusedUserProject>, Error> {
        let (root, member) = ("root_stack", "member");
        let select = Query::select()
            .columns([(member, "id"), (member, "user_project")])
            .from_as(schema::STACK, member)
            .join_as(JoinType::InnerJoin, schema::STACK, root, Expr::col((member, "root")).equals((root, "id")))
            .and_where(Expr::col((member, "user_project")).is_not_null())
            .and_where(Expr::col((root, "deleted")).is_not_null())
            .order_by((member, "id"), Order::Asc)
            .limit(limit as u64)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let read = |row| {
                let mut columns = Columns::of(row);
                Ok(UnusedUserProject { stack: columns.parsed()?, project: columns.text()? })
            };
            rows.iter().map(read).collect()
        })
        .await
    }

    pub(super) async fn drop_user_project(&self, stack: StackId) -> Result<(), Error> {
        let update = Query::update()
            .table(schema::STACK)
            .value("user_project", None::<String>)
            .and_where(Expr::col("id").eq(stack.to_string()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&update).await?;
            Ok(())
        })
        .await
    }

    fn unused(&self, columns: &mut Columns<'_>) -> Result<UnusedCredentials, Fault> {
        let id: CredentialsId = columns.parsed()?;
        let plan = match columns.optional_text()? {
            Some(envelope) => self.vault.open(&plan_row(id), &envelope)?,
            // Rows from before plans existed.
            None => Secret::new("{}".to_owned()),
        };
        let credentials = match columns.text()?.as_str() {
            UNKNOWN => None,
            envelope => Some(self.vault.open(&id.to_string(), envelope)?),
        };
        Ok(UnusedCredentials { id, plan, credentials, touched: columns.int()? })
    }

    /// Attaches the credentials to a stack; refused if they are deleted or about to be.
    pub(super) async fn attach_credentials(&self, tx: &Transaction, id: CredentialsId) -> Result<(), Fault> {
        let touch = Query::update()
            .table(schema::CREDENTIALS)
            .value("touched", self.outside.now())
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("touched").ne(RETIRED))
            .to_owned();
        found(id, tx.execute(&touch).await?.rows_affected())
    }

    /// Replaces the credentials of a stack. The old ones are unused from now on.
    pub(super) async fn replace_credentials(
        &self,
        tx: &Transaction,
        stack: StackId,
        new: CredentialsId,
    ) -> Result<(), Fault> {
        let old = find_stack(tx, stack).await?.and_then(|stack| stack.credentials);
        if let Some(old) = old.filter(|old| *old != new) {
            match self.attach_credentials(tx, old).await {
                Ok(()) | Err(Fault::Refused(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.attach_credentials(tx, new).await
    }
}

/// Live or deleted stacks that refer to the credentials of the outer query.
fn referring(deleted: bool) -> SelectStatement {
    let gone = Expr::col((schema::STACK, "deleted"));
    Query::select()
        .expr(Expr::val(1))
        .from(schema::STACK)
        .and_where(Expr::col((schema::STACK, "credentials")).equals((schema::CREDENTIALS, "id")))
        .and_where(if deleted { gone.is_not_null() } else { gone.is_null() })
        .to_owned()
}

/// Stacks with the credentials of the outer query whose last events are still to be sent.
fn sending() -> SelectStatement {
    let of_stack = Expr::col((schema::OUTBOX, "root")).equals((schema::STACK, "id"));
    Query::select()
        .expr(Expr::val(1))
        .from(schema::STACK)
        .join(JoinType::InnerJoin, schema::OUTBOX, of_stack)
        .and_where(Expr::col((schema::STACK, "credentials")).equals((schema::CREDENTIALS, "id")))
        .to_owned()
}

/// The row name that the plan is encrypted for, different from that of the credentials.
pub(super) fn plan_row(id: CredentialsId) -> String {
    format!("plan of {id}")
}

fn found(id: CredentialsId, rows: u64) -> Result<(), Fault> {
    if rows == 0 { Err(not_found(id)) } else { Ok(()) }
}

fn not_found(id: CredentialsId) -> Fault {
    Error::NotFound(format!("credentials {id}")).into()
}
