//! Change sets.

use kiln_resource::ChangeSetId;
use kiln_store::{ChangeSet, Error, StackId};
use kiln_value::value;
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{at, claimed, deleting};

fn set(stack: StackId, name: &str, second: i64) -> ChangeSet {
    ChangeSet {
        id: ChangeSetId(Uuid::new_v4()),
        project: "p1".into(),
        stack,
        stack_name: "web".into(),
        name: name.into(),
        generation: 1,
        executed: false,
        body: value!({ "parameters": { "password": "geheim" } }),
        created: at(second),
    }
}

#[tokio::test]
async fn change_sets_have_one_name_per_stack_and_end_with_it() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, lease) = claimed(store, "web").await;
        let (first, second) = (set(made.id, "first", 2), set(made.id, "second", 1));
        let elsewhere = ChangeSet { project: "p2".into(), ..set(StackId(Uuid::new_v4()), "first", 3) };
        for set in [&first, &second, &elsewhere, &first] {
            store.save_change_set(set).await.unwrap();
        }
        let taken = store.save_change_set(&set(made.id, "first", 4)).await;
        assert!(matches!(taken, Err(Error::NameTaken(_))), "{taken:?}");
        assert_eq!(store.change_sets("p1", "web").await.unwrap(), [second.clone(), first.clone()]);
        assert_eq!(store.change_sets("p1", "other").await.unwrap(), []);
        assert_eq!(store.count_change_sets("p1").await.unwrap(), 2);

        let executed = ChangeSet { executed: true, body: value!({ "a": 1 }), ..first.clone() };
        store.save_change_set(&executed).await.unwrap();
        store.delete_change_sets(&[second.id]).await.unwrap();
        store.delete_change_sets(&[]).await.unwrap();
        assert_eq!(store.change_sets("p1", "web").await.unwrap(), [executed]);

        let asked = store.request(made.id, kiln_store::StackRequest::new(kiln_resource::Action::Delete, at(5))).await;
        store.commit(lease, deleting(asked.unwrap().generation)).await.unwrap();
        assert_eq!(store.change_sets("p1", "web").await.unwrap(), []);
        assert_eq!(store.change_sets("p2", "web").await.unwrap(), [elsewhere]);
    }
}
