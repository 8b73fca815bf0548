//! Quotas of projects.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Query};

use super::columns::{Columns, plain};
use super::writing::insert;
use super::{SqlStore, schema};
use crate::Error;
use crate::quota::{Quota, QuotaStore, Quotas};

impl SqlStore {
    pub(super) async fn read_quotas(&self, project: &str) -> Result<Quotas, Error> {
        let select = Query::select()
            .columns(["name", "most"])
            .from(schema::QUOTA)
            .and_where(Expr::col("project").eq(plain(project)))
            .to_owned();
        self.retry(|| async {
            let mut quotas = Quotas::new();
            for row in self.reader.query_all(&select).await? {
                let mut columns = Columns::of(&row);
                // A newer version may have more of them.
                if let Ok(quota) = columns.text()?.parse() {
                    quotas.insert(quota, columns.int()?);
                }
            }
            Ok(quotas)
        })
        .await
    }
}

#[async_trait]
impl QuotaStore for SqlStore {
    async fn set_quotas(&self, project: &str, changes: &BTreeMap<Quota, Option<i64>>) -> Result<(), Error> {
        let delete = Query::delete()
            .from_table(schema::QUOTA)
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("name").is_in(changes.keys().map(|quota| quota.as_str())))
            .to_owned();
        self.retry(|| async {
            let set = changes.iter().filter_map(|(quota, most)| Some((quota, (*most)?)));
            let rows = set.map(|(quota, most)| vec![plain(project).into(), quota.as_str().into(), most.into()]);
            let tx = self.begin().await?;
            tx.execute(&delete).await?;
            insert(&tx, schema::QUOTA, &["project", "name", "most"], rows.collect(), None).await?;
            tx.commit().await
        })
        .await
    }

    async fn has_quotas(&self) -> Result<bool, Error> {
        let select = Query::select().column("name").from(schema::QUOTA).limit(1).to_owned();
        self.retry(|| async { Ok(self.reader.query_one(&select).await?.is_some()) }).await
    }
}
