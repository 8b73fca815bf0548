//! Rows that are larger than a statement may be: MariaDB and MySQL have `max_allowed_packet`, 16 MiB by default on MariaDB.

use kiln_store::{Batch, Error, Resource};

use crate::bed::beds;
use crate::make::{claimed, resource};

const LIMIT: usize = 16 << 20;

#[tokio::test]
async fn a_row_that_no_statement_can_hold_is_refused_before_it_is_sent() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let with = |text: String| Resource { metadata: text.into(), ..resource(made.id, "r") };
        let batch = |row: &Resource| Batch { save: [row.clone()].into_iter().collect(), ..Batch::default() };

        // Six bytes in JSON for each of its own.
        let large = with("\u{1}".repeat(3 << 20));
        if bed.url().starts_with("mysql") {
            let expected = format!("a max_allowed_packet of {LIMIT} bytes");
            let refused = bed.store.check_size(&large).unwrap_err();
            assert!(matches!(&refused, Error::Invalid(why) if why.to_string().ends_with(&expected)), "{refused}");
            let refused = bed.store.commit(lease, batch(&large)).await.unwrap_err();
            assert!(matches!(&refused, Error::Invalid(why) if why.to_string().ends_with(&expected)), "{refused}");
            assert!(bed.store.resources(made.id).await.unwrap().is_empty());
        } else {
            bed.store.check_size(&large).unwrap();
            bed.store.commit(lease, batch(&large)).await.unwrap();
            assert_eq!(bed.store.resources(made.id).await.unwrap(), [large]);
        }

        // What is not refused can be stored.
        if bed.url().starts_with("mysql") {
            let (next, lease) = claimed(&*bed.store, "next").await;
            let row = Resource { metadata: "x".repeat(LIMIT - 1024).into(), ..resource(next.id, "r") };
            bed.store.check_size(&row).unwrap();
            bed.store.commit(lease, batch(&row)).await.unwrap();
            assert_eq!(bed.store.resources(next.id).await.unwrap(), [row]);
        }
        bed.end().await;
    }
}
