//! A stack with its nested stacks, as it is in Kiln's tables.

use kiln_store::{Error, EventQuery, SqlStore, StackId, Store as _, TakeOver, TakenStack, TakenTree};

/// Reads the tree of a record, whoever it belongs to; `None`: it is deleted in Kiln.
pub(crate) async fn kiln_tree(store: &SqlStore, record: &TakeOver) -> Result<Option<TakenTree>, Error> {
    let mut found = store.taken_stacks(record.root).await?;
    found.retain(|stack| stack.deleted.is_none());
    if !found.iter().any(|stack| stack.id == record.root) {
        return Ok(None);
    }
    let mut tree = TakenTree::of(record.clone());
    let ids: Vec<StackId> = found.iter().map(|stack| stack.id).collect();
    tree.resources = store.resources_of(&ids).await?;
    for stack in found {
        tree.snapshots.extend(store.snapshots(stack.id).await?);
        if let Some(credentials) = stack.credentials.filter(|_| stack.id == record.root) {
            tree.credentials = Some((credentials, store.credentials(credentials).await?));
        }
        let desired = store.desired(&stack.desired).await?;
        let previous = match &stack.previous {
            Some(previous) => Some(store.desired(previous).await?),
            None => None,
        };
        tree.stacks.push(TakenStack { stack, desired, previous });
    }
    tree.events = store.events(&EventQuery { root: Some(record.root), ..EventQuery::default() }).await?;
    Ok(Some(tree))
}
