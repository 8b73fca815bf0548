//! Events that other processes store, for the watchers of this process: one small query for all of them, only while
//! there are any.

use std::collections::BTreeSet;
use std::sync::Arc;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Query};

use super::seen_numbers::SeenNumbers;
use super::{LISTEN_AGAIN, LOOK};
use crate::StackId;
use crate::doorbell::Hub;
use crate::sql::columns::Columns;
use crate::sql::pool::Pool;
use crate::sql::schema;
use crate::sql::statement_retry::Fault;

/// Tells the watchers about new events while there are watchers.
pub(super) async fn tail(reader: Pool, hub: Arc<Hub>) {
    loop {
        hub.watched().await;
        if let Err(fault) = follow(&reader, &hub).await {
            tracing::debug!(%fault, "failed to read new events");
        }
        hub.set_tailed(false);
        hub.tell(None);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

async fn follow(reader: &Pool, hub: &Hub) -> Result<(), Fault> {
    let query = Query::select().expr(Expr::col("seq").max()).from(schema::EVENT).to_owned();
    let newest = reader.query_one(&query).await?.map(|row| Columns::of(&row).optional_int()).transpose()?;
    let mut seen = SeenNumbers::from(newest.flatten().unwrap_or(0));
    hub.set_tailed(true);
    hub.tell(None);
    while hub.is_watched() {
        tokio::time::sleep(LOOK).await;
        let query = Query::select()
            .columns(["seq", "root"])
            .from(schema::EVENT)
            .and_where(Expr::col("seq").gt(seen.floor()))
            .to_owned();
        let mut roots: BTreeSet<StackId> = BTreeSet::new();
        for row in reader.query_all(&query).await? {
            let mut columns = Columns::of(&row);
            let (seq, root) = (columns.int()?, columns.parsed()?);
            if seen.is_new(seq) {
                roots.insert(root);
            }
        }
        // Those of this process were told already; a second look finds nothing.
        for root in roots {
            hub.tell(Some(root));
        }
        seen.next_look();
    }
    Ok(())
}
