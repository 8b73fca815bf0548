//! Settings that all processes of a service share.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};

use super::columns::{Columns, plain};
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::Error;

/// What clients are told in maintenance.
const MAINTENANCE: &str = "maintenance";

/// The setting with the ID of the key that encrypts secrets.
const KEY: &str = "encryption key";

impl SqlStore {
    /// A setting.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        let select =
            Query::select().column("value").from(schema::SETTING).and_where(Expr::col("name").eq(name)).to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| Columns::of(&row).text()).transpose()
        })
        .await
    }

    /// What clients are told while they may only read; `None`: there is no maintenance.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn maintenance(&self) -> Result<Option<String>, Error> {
        self.setting(MAINTENANCE).await
    }

    /// Begins maintenance with a text for clients, or ends it.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn set_maintenance(&self, text: Option<&str>) -> Result<(), Error> {
        self.set(MAINTENANCE, text).await
    }

    /// Changes a setting; `None` removes it.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn set(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        let Some(value) = value else {
            let delete = Query::delete().from_table(schema::SETTING).and_where(Expr::col("name").eq(name)).to_owned();
            return self.retry(|| async { Ok(self.writer.execute(&delete).await.map(drop)?) }).await;
        };
        let conflict = OnConflict::column("name").update_column("value").to_owned();
        self.put(name, value, conflict).await
    }

    async fn put(&self, name: &str, value: &str, conflict: OnConflict) -> Result<(), Error> {
        let insert = Query::insert()
            .into_table(schema::SETTING)
            .columns(["name", "value"])
            .values([name.into(), plain(value).into()])
            .map_err(Fault::from)?
            .on_conflict(conflict)
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&insert).await.map(drop)?) }).await
    }

    /// Notes the key that encrypts secrets, if none is noted; returns the ID of the noted key if this process does not have that
    /// key.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn note_key(&self) -> Result<Option<String>, Error> {
        let Some(own) = self.vault.key_ids().next() else { return Ok(None) };
        let kept = OnConflict::column("name").do_nothing_on(["name"]).to_owned();
        self.put(KEY, own, kept).await?;
        let noted = self.setting(KEY).await?;
        Ok(noted.filter(|noted| self.vault.key_ids().all(|id| id != noted)))
    }

    /// Notes that all secrets are encrypted with the present key.
    pub(super) async fn note_present_key(&self) -> Result<(), Error> {
        match self.vault.key_ids().next() {
            Some(own) => self.set(KEY, Some(own)).await,
            None => Ok(()),
        }
    }
}
