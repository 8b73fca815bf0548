//! Orphans: written with the removal of their row, kept after their stack.

use kiln_store::{Batch, Error, Orphan, OrphanQuery, Resource, Retention, Stack};

use crate::bed::beds;
use crate::make::{PROJECT, at, claimed, deleting, resource};

fn orphan(stack: &Stack, row: &Resource, second: i64) -> Orphan {
    Orphan {
        id: row.id,
        project: stack.project.clone(),
        stack: stack.id,
        stack_name: stack.name.clone(),
        path: format!("gruppe/{}", row.name),
        resource_type: row.resource_type.clone(),
        physical_id: Some("p1".to_owned()),
        region: Some("R1".to_owned()),
        user_id: "u1".to_owned(),
        username: "Jürgen".to_owned(),
        reason: "host lost".to_owned(),
        time: at(second),
    }
}

#[tokio::test]
async fn an_orphan_is_written_with_the_removal_of_its_row_and_outlives_the_stack() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        let rows: Vec<Resource> = ["a", "b", "c"].iter().map(|name| resource(stack.id, name)).collect();
        store.commit(lease, Batch { save: rows.clone().into(), ..Batch::default() }).await.unwrap();
        let [a, b, c] = [0, 1, 2].map(|at| orphan(&stack, &rows[at], 9 - i64::try_from(at).unwrap()));
        let b = Orphan { physical_id: None, region: None, ..b };
        let stale = kiln_store::Lease { epoch: lease.epoch + 1, ..lease };
        let batch =
            |orphan: &Orphan| Batch { remove: vec![orphan.id], orphans: vec![orphan.clone()], ..Batch::default() };
        assert!(matches!(store.commit(stale, batch(&a)).await, Err(Error::Stale(_))));
        assert_eq!(store.orphans(&OrphanQuery::default()).await.unwrap(), []);
        for orphan in [&a, &b, &c] {
            store.commit(lease, batch(orphan)).await.unwrap();
        }
        assert_eq!(store.resources(stack.id).await.unwrap(), []);

        let all = [a.clone(), b.clone(), c.clone()];
        let own = OrphanQuery { project: Some(PROJECT.to_owned()), ..OrphanQuery::default() };
        assert_eq!(store.orphans(&own).await.unwrap(), all, "newest first");
        let page = OrphanQuery { limit: Some(2), ..own.clone() };
        assert_eq!(store.orphans(&page).await.unwrap(), all[..2]);
        let next = OrphanQuery { marker: Some(b.id), ..page };
        assert_eq!(store.orphans(&next).await.unwrap(), all[2..]);
        let other = OrphanQuery { project: Some("other".to_owned()), ..OrphanQuery::default() };
        assert_eq!(store.orphans(&other).await.unwrap(), []);
        let elsewhere = kiln_store::StackId(lease.owner.0);
        let of_stack = |stack| OrphanQuery { stack: Some(stack), ..OrphanQuery::default() };
        assert_eq!(store.orphans(&of_stack(stack.id)).await.unwrap().len(), 3);
        assert_eq!(store.orphans(&of_stack(elsewhere)).await.unwrap(), []);
        let unknown = OrphanQuery { marker: Some(kiln_store::ResourceId(lease.owner.0)), ..own.clone() };
        assert!(matches!(store.orphans(&unknown).await, Err(Error::NotFound(_))));

        store.commit(lease, deleting(stack.generation)).await.unwrap();
        while store.forget(&Retention { deleted_before: at(1000), operations: 0 }).await.unwrap() > 0 {}
        assert_eq!(store.stack(stack.id).await.unwrap(), None);
        assert_eq!(store.orphans(&own).await.unwrap(), all);
        assert!(!store.delete_orphan("other", a.id).await.unwrap());
        assert!(store.delete_orphan(PROJECT, a.id).await.unwrap());
        assert!(!store.delete_orphan(PROJECT, a.id).await.unwrap());
        assert_eq!(store.orphans(&own).await.unwrap(), all[1..]);
        bed.end().await;
    }
}
