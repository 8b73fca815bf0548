//! How long operations of resources took.

use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::Action;
use kiln_store::{Durations, Histogram};

use crate::bed::beds;

fn some(of: &[(&str, Action, u8, u64)]) -> Durations {
    let mut durations = Durations::new();
    for (resource_type, action, bucket, count) in of {
        let histogram: &mut Histogram = durations.entry(((*resource_type).to_owned(), *action)).or_default();
        histogram.counts.insert(*bucket, *count);
    }
    durations
}

#[tokio::test]
async fn engines_add_up_how_long_operations_took() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (one, other) = (&bed.store, bed.another().await);
        let of = |types: &[&str]| types.iter().map(|one| (*one).to_owned()).collect::<BTreeSet<String>>();
        assert_eq!(one.durations(&of(&["A"])).await.unwrap(), Durations::new());
        let (create, delete) = (Action::Create, Action::Delete);
        let first = some(&[("A", create, 3, 2), ("A", delete, 0, 1), ("B", create, 47, 1)]);
        let second = some(&[("A", create, 3, 5), ("A", create, 4, 1), ("B", create, 47, 1)]);
        // At the same time, more than once.
        let (a, b) = tokio::join!(
            async {
                for _ in 0..10 {
                    one.add_durations(&first).await.unwrap();
                }
            },
            async {
                for _ in 0..10 {
                    other.add_durations(&second).await.unwrap();
                }
            }
        );
        ((), ()) = (a, b);
        let expected = some(&[("A", create, 3, 70), ("A", create, 4, 10), ("A", delete, 0, 10)]);
        assert_eq!(one.durations(&of(&["A"])).await.unwrap(), expected);
        assert_eq!(one.durations(&of(&["B", "C"])).await.unwrap(), some(&[("B", create, 47, 20)]));
        assert_eq!(one.durations(&of(&[])).await.unwrap(), Durations::new());
        // Too many: all are halved, and what is only there once is forgotten.
        one.add_durations(&some(&[("A", create, 9, 1), ("A", create, 5, 1_000)])).await.unwrap();
        let halved = some(&[("A", create, 3, 35), ("A", create, 4, 5), ("A", create, 5, 500), ("A", delete, 0, 10)]);
        assert_eq!(one.durations(&of(&["A"])).await.unwrap(), halved);
        one.add_durations(&BTreeMap::new()).await.unwrap();
        bed.end().await;
    }
}
