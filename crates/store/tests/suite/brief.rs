//! Resources without their data, in pages.

use kiln_store::{Batch, Resource};
use kiln_value::{Map, Value};

use crate::bed::beds;
use crate::make::{claimed, resource};

#[tokio::test]
async fn resources_are_read_in_pages_without_their_data() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        let data = Map::from([("k".to_owned(), Value::from("v"))]);
        let rows: Vec<Resource> = ["a", "ä", "c"]
            .iter()
            .map(|name| Resource {
                physical_id: Some(format!("p-{name}")),
                reason: "state changed".to_owned(),
                data: data.clone(),
                child: Some(stack.id),
                metadata: data.clone().into(),
                ..resource(stack.id, name)
            })
            .collect();
        store.commit(lease, Batch { save: rows.clone().into(), ..Batch::default() }).await.unwrap();
        let brief = |row: &Resource| Resource { data: Map::new(), metadata: Value::Null, ..row.clone() };
        let first = store.resources_in_brief(stack.id, None, 2).await.unwrap();
        assert_eq!(first.rows, rows[..2].iter().map(brief).collect::<Vec<_>>());
        let second = store.resources_in_brief(stack.id, first.last, 2).await.unwrap();
        assert_eq!(second.rows, [brief(&rows[2])]);
        let third = store.resources_in_brief(stack.id, second.last, 2).await.unwrap();
        assert_eq!((third.rows, third.last), (vec![], None));
        bed.end().await;
    }
}
