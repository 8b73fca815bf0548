//! Requests with an idempotency key.

use std::time::Duration;

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};

use super::columns::{Columns, micros_of, plain};
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::answer::ANSWER_KEPT;
use crate::{AnswerStore, EarlierRequest, Error, KeyedRequest, Operation};

/// How much earlier than its key an operation may begin by the clock of another process.
const SKEW: Duration = Duration::from_mins(5);

#[async_trait]
impl AnswerStore for SqlStore {
    async fn begin_keyed(&self, keyed: &KeyedRequest) -> Result<Option<EarlierRequest>, Error> {
        let old = Expr::col("begun").lt(self.outside.now().sub(micros_of(ANSWER_KEPT)));
        let expire = Query::delete()
            .from_table(schema::ANSWER)
            .and_where(Expr::col("id").eq(keyed.id.as_str()).and(old))
            .to_owned();
        let insert = Query::insert()
            .into_table(schema::ANSWER)
            .columns(["id", "body", "request", "begun"])
            .values([
                keyed.id.as_str().into(),
                keyed.body.as_str().into(),
                keyed.request.as_str().into(),
                self.outside.now(),
            ])
            .map_err(Fault::from)?
            .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned())
            .to_owned();
        let select = Query::select()
            .columns(["body", "request", "answer"])
            .expr(self.outside.now().sub(Expr::col("begun")))
            .from(schema::ANSWER)
            .and_where(Expr::col("id").eq(keyed.id.as_str()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&expire).await?;
            self.writer.execute(&insert).await?;
            let Some(row) = self.writer.query_one(&select).await? else { return Ok(None) };
            let mut columns = Columns::of(&row);
            let (body, request, sealed) = (columns.text()?, columns.text()?, columns.optional_text()?);
            let age = Duration::from_micros(u64::try_from(columns.int()?).unwrap_or(0));
            if request == keyed.request {
                return Ok(None);
            }
            let answer = sealed.map(|sealed| self.vault.open(&keyed.id, &sealed)).transpose()?;
            Ok(Some(EarlierRequest { body, request, age, answer: answer.map(|answer| answer.expose().clone()) }))
        })
        .await
    }

    async fn take_over_keyed(&self, keyed: &KeyedRequest, earlier: &str) -> Result<bool, Error> {
        // A repetition after a lost response finds the request itself.
        let is_it = Expr::col("request").is_in([earlier, keyed.request.as_str()]).and(Expr::col("answer").is_null());
        let update = Query::update()
            .table(schema::ANSWER)
            .value("request", keyed.request.as_str())
            .value("begun", self.outside.now())
            .and_where(Expr::col("id").eq(keyed.id.as_str()).and(is_it))
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&update).await?.rows_affected() > 0) }).await
    }

    async fn answer_keyed(&self, keyed: &KeyedRequest, answer: &str) -> Result<(), Error> {
        let update = Query::update()
            .table(schema::ANSWER)
            .value("answer", self.vault.seal(&keyed.id, answer)?)
            .and_where(is_of(keyed))
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&update).await.map(drop)?) }).await
    }

    async fn forget_keyed(&self, keyed: &KeyedRequest) -> Result<(), Error> {
        let delete = Query::delete().from_table(schema::ANSWER).and_where(is_of(keyed)).to_owned();
        self.retry(|| async { Ok(self.writer.execute(&delete).await.map(drop)?) }).await
    }

    async fn operation_of_request(&self, project: &str, earlier: &EarlierRequest) -> Result<Option<Operation>, Error> {
        let since = self.outside.now().sub(micros_of(earlier.age + SKEW));
        let is_it = Expr::col("project")
            .eq(plain(project))
            .and(Expr::col("begun").gte(since))
            .and(Expr::col("request").eq(earlier.request.as_str()));
        self.find_operation(is_it).await
    }
}

/// The row of a request, unless another one has replaced it.
fn is_of(keyed: &KeyedRequest) -> Expr {
    Expr::col("id").eq(keyed.id.as_str()).and(Expr::col("request").eq(keyed.request.as_str()))
}

impl SqlStore {
    /// Deletes answers that are too old; returns their number.
    pub(super) async fn forget_answers(&self) -> Result<u64, Error> {
        let delete = Query::delete()
            .from_table(schema::ANSWER)
            .and_where(Expr::col("begun").lt(self.outside.now().sub(micros_of(ANSWER_KEPT))))
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&delete).await?.rows_affected()) }).await
    }
}
