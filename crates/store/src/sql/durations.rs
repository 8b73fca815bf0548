//! How long operations of resources took.

use std::collections::BTreeSet;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};

use super::columns::{Columns, plain};
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::Error;
use crate::duration::{Durations, MOST};

/// A row has the number of operations of one bucket.
const COLUMNS: [&str; 4] = ["resource_type", "action", "bucket", "number"];

impl SqlStore {
    /// After a lost reply, some are counted twice.
    pub(super) async fn write_durations(&self, more: &Durations) -> Result<(), Error> {
        let types: BTreeSet<String> = more.keys().map(|(resource_type, _)| resource_type.clone()).collect();
        self.retry(|| async {
            let tx = self.begin().await?;
            // In the same order in all engines, so that they do not block each other.
            for ((resource_type, action), histogram) in more {
                for (bucket, count) in &histogram.counts {
                    let count = i64::try_from(*count).unwrap_or(i64::MAX);
                    let sum = Expr::col((schema::DURATION, "number")).add(count);
                    let add = Query::insert()
                        .into_table(schema::DURATION)
                        .columns(COLUMNS)
                        .values([
                            plain(resource_type).into(),
                            action.as_str().into(),
                            i64::from(*bucket).into(),
                            count.into(),
                        ])
                        .map_err(Fault::from)?
                        .on_conflict(
                            OnConflict::columns(["resource_type", "action", "bucket"]).value("number", sum).to_owned(),
                        )
                        .to_owned();
                    tx.execute(&add).await?;
                }
            }
            let mut stored = Durations::new();
            for row in tx.query_all(&select(&types)).await? {
                read(&mut Columns::of(&row), &mut stored)?;
            }
            for (resource_type, action) in
                stored.iter().filter(|(of, all)| more.contains_key(*of) && all.total() > MOST).map(|(of, _)| of)
            {
                let is_it =
                    Expr::col("resource_type").eq(plain(resource_type)).and(Expr::col("action").eq(action.as_str()));
                let halve = Query::update()
                    .table(schema::DURATION)
                    .value("number", Expr::col("number").right_shift(1))
                    .and_where(is_it.clone())
                    .to_owned();
                let empty = Query::delete()
                    .from_table(schema::DURATION)
                    .and_where(is_it)
                    .and_where(Expr::col("number").eq(0))
                    .to_owned();
                tx.execute(&halve).await?;
                tx.execute(&empty).await?;
            }
            tx.commit().await
        })
        .await
    }

    pub(super) async fn read_durations(&self, types: &BTreeSet<String>) -> Result<Durations, Error> {
        if types.is_empty() {
            return Ok(Durations::new());
        }
        let select = select(types);
        self.retry(|| async {
            let mut durations = Durations::new();
            for row in self.reader.query_all(&select).await? {
                read(&mut Columns::of(&row), &mut durations)?;
            }
            Ok(durations)
        })
        .await
    }
}

fn select(types: &BTreeSet<String>) -> SelectStatement {
    Query::select()
        .columns(COLUMNS)
        .from(schema::DURATION)
        .and_where(Expr::col("resource_type").is_in(types.iter().map(|one| plain(one))))
        .to_owned()
}

fn read(columns: &mut Columns<'_>, durations: &mut Durations) -> Result<(), Fault> {
    let of = (columns.text()?, columns.parsed()?);
    let (bucket, count): (i64, i64) = (columns.int()?, columns.int()?);
    let (bucket, count) = (u8::try_from(bucket).unwrap_or(u8::MAX), u64::try_from(count).unwrap_or(0));
    durations.entry(of).or_default().counts.insert(bucket, count);
    Ok(())
}
