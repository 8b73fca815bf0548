//! Encrypts or decrypts all stored data according to the current key and options.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Order, Query};

use super::columns::Columns;
use super::dialect::Dialect;
use super::statement_retry::Fault;
use super::{SqlStore, credentials, schema};
use crate::{CredentialsId, Error};

/// Rows per query.
const PAGE: u64 = 200;

/// The encrypted columns of a table.
struct Sealed {
    table: &'static str,
    key: &'static str,
    /// Always encrypted.
    secrets: &'static [&'static str],
    /// Encrypted if the option is set.
    values: &'static [&'static str],
}

const SEALED: [Sealed; 14] = [
    Sealed { table: schema::CREDENTIALS, key: "id", secrets: &["envelope", "plan"], values: &[] },
    Sealed {
        table: schema::RESOURCE,
        key: "id",
        secrets: &["data"],
        values: &["step", "definition", "metadata", "attributes"],
    },
    Sealed { table: schema::EVENT, key: "id", secrets: &[], values: &["properties"] },
    Sealed { table: schema::OUTBOX, key: "id", secrets: &[], values: &["body"] },
    Sealed { table: schema::WEBHOOK, key: "id", secrets: &["body"], values: &[] },
    Sealed { table: schema::WEBHOOK_DELIVERY, key: "id", secrets: &[], values: &["body"] },
    Sealed { table: schema::MESSAGE, key: "id", secrets: &[], values: &["body"] },
    Sealed { table: schema::SNAPSHOT, key: "id", secrets: &["data"], values: &[] },
    Sealed { table: schema::PLAN, key: "id", secrets: &["body"], values: &[] },
    Sealed { table: schema::PLAN_PART, key: "id", secrets: &["body"], values: &[] },
    Sealed { table: schema::WORKSHEET, key: "id", secrets: &["head", "body"], values: &[] },
    Sealed { table: schema::SOFTWARE_CONFIG, key: "id", secrets: &["body"], values: &[] },
    Sealed { table: schema::SOFTWARE_DEPLOYMENT, key: "id", secrets: &["body"], values: &[] },
    Sealed { table: schema::CONTENT, key: "digest", secrets: &[], values: &["body"] },
];

impl SqlStore {
    /// Encrypts stored data with the current key. Values are encrypted too if [`super::Options::encrypt_values`] is
    /// set, else they are decrypted. Afterwards older keys are no longer required. Returns the number of written rows.
    /// Engines and APIs with the same options may run concurrently: a row that changes between read and write is read
    /// again. SQLite's file is rewritten, because its free pages still contain the former texts.
    pub async fn reencrypt(&self) -> Result<u64, Error> {
        let mut written = 0;
        for sealed in &SEALED {
            let mut after = String::new();
            while let Some((last, rows)) = self.retry(|| self.reencrypt_page(sealed, &after)).await? {
                after = last;
                written += rows;
            }
        }
        self.note_present_key().await?;
        if written > 0 && self.dialect == Dialect::Sqlite {
            self.retry(|| self.rewrite_file()).await?;
        }
        Ok(written)
    }

    /// Encrypts the values of a database that an earlier version has written in clear, if there are any. Templates are
    /// encrypted last, so a clear one says that there may be more.
    pub async fn encrypt_clear_values(&self) -> Result<(), Error> {
        let clear = Query::select()
            .column("digest")
            .from(schema::CONTENT)
            .and_where(Expr::col("body").not_like("k1:%"))
            .limit(1)
            .to_owned();
        let clear = self.retry(|| async { Ok(self.reader.query_all(&clear).await?) }).await?;
        if !clear.is_empty() {
            self.reencrypt().await?;
        }
        Ok(())
    }

    async fn rewrite_file(&self) -> Result<(), Fault> {
        self.writer.execute_unprepared("VACUUM").await?;
        self.writer.execute_unprepared("PRAGMA wal_checkpoint(TRUNCATE)").await?;
        Ok(())
    }

    /// The rows after a key; returns the last key and the number of written rows. `None`: there are no more.
    async fn reencrypt_page(&self, sealed: &Sealed, after: &str) -> Result<Option<(String, u64)>, Fault> {
        let select = Query::select()
            .column(sealed.key)
            .from(sealed.table)
            .and_where(Expr::col(sealed.key).gt(after))
            .order_by(sealed.key, Order::Asc)
            .limit(PAGE)
            .to_owned();
        let rows = self.reader.query_all(&select).await?;
        let keys = rows.iter().map(|row| Columns::of(row).text()).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = keys.last().cloned() else { return Ok(None) };
        let mut written = 0;
        for key in &keys {
            written += u64::from(self.reencrypt_row(sealed, key).await?);
        }
        Ok(Some((last, written)))
    }

    /// Processes a row; returns whether it was written.
    async fn reencrypt_row(&self, sealed: &Sealed, key: &str) -> Result<bool, Fault> {
        let columns = || sealed.secrets.iter().chain(sealed.values).copied();
        let select =
            Query::select().columns(columns()).from(sealed.table).and_where(Expr::col(sealed.key).eq(key)).to_owned();
        loop {
            let Some(row) = self.writer.query_one(&select).await? else { return Ok(false) };
            let mut stored = Columns::of(&row);
            let mut update = Query::update();
            update.table(sealed.table).and_where(Expr::col(sealed.key).eq(key));
            let mut changed = false;
            for (number, column) in columns().enumerate() {
                // Empty: credentials that are not known yet.
                let Some(old) = stored.optional_text()?.filter(|old| !old.is_empty()) else { continue };
                let row = if column == "plan" { plan_row(key)? } else { key.to_owned() };
                let Some(new) = self.vault.reencrypt(&row, &old, number < sealed.secrets.len())? else { continue };
                update.value(column, new).and_where(Expr::col(column).eq(old));
                changed = true;
            }
            if !changed {
                return Ok(false);
            }
            if self.writer.execute(&update).await?.rows_affected() > 0 {
                return Ok(true);
            }
        }
    }
}

fn plan_row(key: &str) -> Result<String, Fault> {
    let id: CredentialsId = key.parse().map_err(|_| Error::Damaged(format!("ID {key:?}").into()))?;
    Ok(credentials::plan_row(id))
}
