//! Owners of projects, while Kiln stands before a Heat.

use kiln_store::{Owner, OwnerStore as _, Store as _};

use crate::bed::beds;
use crate::make::{PROJECT, stack};

#[tokio::test]
async fn a_project_belongs_to_heat_until_it_is_switched() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_sql() || !bed.is_shared() {
            bed.end().await;
            continue;
        }
        let store = bed.again().await;
        let owner = async |project: &str| store.owner(project).await.unwrap();
        assert_eq!(owner(PROJECT).await, Owner::Heat);
        // Twice, as after a kill.
        for _ in 0..2 {
            store.set_owner(PROJECT, Owner::Moving).await.unwrap();
            assert_eq!(
                (owner(PROJECT).await, store.moving_projects().await.unwrap()),
                (Owner::Moving, vec![PROJECT.to_owned()])
            );
        }
        assert_eq!(store.switch_project(PROJECT).await.unwrap(), 0);
        assert_eq!((owner(PROJECT).await, owner("other").await), (Owner::Kiln, Owner::Heat));
        // The users of a stack have a project of their own, also while the stack waits for its switch.
        store.create_stack(stack("s")).await.unwrap();
        bed.execute("UPDATE kiln_stack SET user_project = 'users'").await;
        assert_eq!(owner("users").await, Owner::Kiln);
        bed.execute(&format!("UPDATE kiln_stack SET project = 'heat:{PROJECT}'")).await;
        assert_eq!(owner("users").await, Owner::Kiln);
        store.set_owner(PROJECT, Owner::Heat).await.unwrap();
        assert_eq!((owner(PROJECT).await, owner("users").await), (Owner::Heat, Owner::Heat));
        bed.end().await;
    }
}
