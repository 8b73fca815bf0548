//! Worksheets.

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{DeleteStatement, Expr, ExprTrait, Order, Query, SelectStatement};
use uuid::Uuid;

use super::columns::{Columns, micros, micros_of, plain};
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::Error;
use crate::worksheet::{WORKSHEET_KEPT, Worksheet, WorksheetKind, WorksheetStore};

/// The column of names, whose index has its name: so says the error of a second row.
const NAME: &str = "worksheet_name";
const OF_LIST: [&str; 7] = ["id", "project", "kind", NAME, "version", "created", "head"];

#[async_trait]
impl WorksheetStore for SqlStore {
    async fn save_worksheet(&self, new: &Worksheet) -> Result<(), Error> {
        let exists = Query::select()
            .column("id")
            .from(schema::WORKSHEET)
            .and_where(Expr::col("id").eq(new.id.to_string()))
            .to_owned();
        let insert = Query::insert()
            .into_table(schema::WORKSHEET)
            .columns(OF_LIST.into_iter().chain(["body", "changed"]))
            .values([
                new.id.to_string().into(),
                plain(&new.project).into(),
                new.kind.as_str().into(),
                new.name.as_deref().map(plain).into(),
                new.version.into(),
                micros(new.created).into(),
                self.vault.seal(&new.id.to_string(), &new.head)?.into(),
                self.vault.seal(&new.id.to_string(), &new.body)?.into(),
                self.outside.now(),
            ])
            .map_err(Fault::from)?
            .to_owned();
        self.retry_numbered(|attempt| {
            let (exists, insert) = (&exists, &insert);
            async move {
                // An earlier attempt saved it and lost its connection.
                if attempt > 1 && self.writer.query_one(exists).await?.is_some() {
                    return Ok(());
                }
                // One of the same name may be too old.
                self.writer.execute(&self.delete_old()).await?;
                self.writer.execute(insert).await.map(drop).map_err(|error| named(error.into(), new))
            }
        })
        .await
    }

    async fn change_worksheet(&self, changed: &Worksheet) -> Result<bool, Error> {
        let id = changed.id.to_string();
        let update = Query::update()
            .table(schema::WORKSHEET)
            .value(NAME, changed.name.as_deref().map(plain))
            .value("head", self.vault.seal(&id, &changed.head)?)
            .value("body", self.vault.seal(&id, &changed.body)?)
            .value("version", changed.version + 1)
            .value("changed", self.outside.now())
            .and_where(Expr::col("id").eq(id))
            .and_where(Expr::col("version").eq(changed.version))
            .to_owned();
        self.retry_numbered(|attempt| {
            let update = &update;
            async move {
                if self.writer.execute(update).await.map_err(|error| named(error.into(), changed))?.rows_affected() > 0
                {
                    return Ok(true);
                }
                // An earlier attempt changed it and lost its connection.
                let now = self.find(&changed.project, changed.kind, changed.id).await?;
                let is_done = |now: Worksheet| now.version == changed.version + 1 && now.head == changed.head;
                Ok(attempt > 1 && now.is_some_and(is_done))
            }
        })
        .await
    }

    async fn worksheet(&self, project: &str, kind: WorksheetKind, id: Uuid) -> Result<Option<Worksheet>, Error> {
        self.retry(|| self.find(project, kind, id)).await
    }

    async fn worksheets(&self, project: &str, kind: WorksheetKind) -> Result<Vec<Worksheet>, Error> {
        let select = self.live(project, kind).columns(OF_LIST).order_by("seq", Order::Desc).to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| listed(&mut Columns::opening(row, &self.vault))).collect()
        })
        .await
    }

    async fn delete_worksheet(&self, project: &str, kind: WorksheetKind, id: Uuid) -> Result<bool, Error> {
        let delete = Query::delete()
            .from_table(schema::WORKSHEET)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("kind").eq(kind.as_str()))
            .to_owned();
        self.retry_numbered(|attempt| {
            let delete = &delete;
            // An earlier attempt may have deleted it.
            async move { Ok(self.writer.execute(delete).await?.rows_affected() > 0 || attempt > 1) }
        })
        .await
    }
}

impl SqlStore {
    async fn find(&self, project: &str, kind: WorksheetKind, id: Uuid) -> Result<Option<Worksheet>, Fault> {
        let mut select = self.live(project, kind);
        select.columns(OF_LIST).column("body").and_where(Expr::col("id").eq(id.to_string()));
        let Some(row) = self.reader.query_one(&select).await? else { return Ok(None) };
        let mut columns = Columns::opening(&row, &self.vault);
        let found = listed(&mut columns)?;
        Ok(Some(Worksheet { body: columns.guarded_text()?.unwrap_or_default(), ..found }))
    }

    /// Selects the worksheets of a project that are not too old.
    fn live(&self, project: &str, kind: WorksheetKind) -> SelectStatement {
        Query::select()
            .from(schema::WORKSHEET)
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("kind").eq(kind.as_str()))
            .and_where(self.is_old().not())
            .to_owned()
    }

    fn is_old(&self) -> Expr {
        Expr::col("changed").lt(self.outside.now().sub(micros_of(WORKSHEET_KEPT)))
    }

    fn delete_old(&self) -> DeleteStatement {
        Query::delete().from_table(schema::WORKSHEET).and_where(self.is_old()).to_owned()
    }

    /// Deletes worksheets that are too old; returns their number.
    pub(super) async fn forget_worksheets(&self) -> Result<u64, Error> {
        let delete = self.delete_old();
        self.retry(|| async { Ok(self.writer.execute(&delete).await?.rows_affected()) }).await
    }
}

/// The columns of [`OF_LIST`].
fn listed(columns: &mut Columns<'_>) -> Result<Worksheet, Fault> {
    Ok(Worksheet {
        id: columns.parsed()?,
        project: columns.text()?,
        kind: columns.parsed()?,
        name: columns.optional_text()?,
        version: columns.int()?,
        created: columns.time()?,
        head: columns.guarded_text()?.unwrap_or_default(),
        body: String::new(),
    })
}

/// The error if another worksheet has the name.
fn named(fault: Fault, sheet: &Worksheet) -> Fault {
    match &sheet.name {
        Some(name) if fault.is_duplicate_of(NAME) => Error::NameTaken(name.clone()).into(),
        _ => fault,
    }
}
