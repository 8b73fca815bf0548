//! Quotas of projects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kiln_store::quota::{Quota, QuotaStore, Quotas, limit};
use kiln_store::{MemoryStore, Store};

use crate::bed::beds;
use crate::make::PROJECT;

/// What both kinds of stores can.
trait Both: Store + QuotaStore {}
impl<S: Store + QuotaStore> Both for S {}

#[tokio::test]
async fn a_project_has_the_quotas_that_were_set_last() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store: Box<dyn Both> = if bed.is_sql() && bed.is_shared() {
            Box::new(bed.again().await)
        } else {
            Box::new(MemoryStore::new(std::sync::Arc::new(Timestamp::now)))
        };
        assert_eq!(store.quotas(PROJECT).await.unwrap(), Quotas::new());
        let set = async |changes: &[(Quota, Option<i64>)]| {
            store.set_quotas(PROJECT, &changes.iter().copied().collect::<BTreeMap<_, _>>()).await.unwrap();
            store.quotas(PROJECT).await.unwrap()
        };
        let (stacks, resources) = (Quota::Stacks, Quota::ResourcesPerStack);
        assert_eq!(set(&[(stacks, Some(3)), (resources, Some(-1))]).await, [(stacks, 3), (resources, -1)].into());
        let quotas = set(&[(stacks, Some(0))]).await;
        assert_eq!(quotas, [(stacks, 0), (resources, -1)].into(), "the other one stays");
        assert_eq!((limit(&quotas, stacks, Some(9)), limit(&quotas, resources, Some(9))), (Some(0), None));
        assert_eq!(limit(&quotas, Quota::SoftwareConfigs, Some(9)), Some(9));
        assert_eq!(set(&[(resources, None), (Quota::SnapshotsPerStack, None)]).await, [(stacks, 0)].into());
        assert!(store.has_quotas().await.unwrap());
        set(&[(stacks, None)]).await;
        assert!(!store.has_quotas().await.unwrap());
        assert_eq!(store.quotas("other").await.unwrap(), Quotas::new());
        bed.end().await;
    }
}
