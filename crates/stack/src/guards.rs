//! The guards of a stack, as the decisions about its resources need them.

use jiff::Timestamp;
use kiln_plan::{Guards, HeldGuard};
use kiln_resource::{Action, GuardRule, GuardedRequest, StackPolicy, Status};
use kiln_store::{Error, Guard, Operation, OperationQuery, Operations, Stack, Store};

use crate::load;

/// Operations before a rollback among which those are that it takes back: the failed one, and what has continued it.
const TAKEN_BACK: u64 = 100;

/// The guards that hold for the present request to a stack; `None`: there are none. Without guards in the project of the
/// stack, nothing is read.
///
/// # Errors
/// Errors of the store.
pub async fn guards_of(store: &dyn Store, stack: &Stack, now: Timestamp) -> Result<Option<Guards>, Error> {
    let mut guards = held_for(store, stack, now).await?;
    if guards.iter().any(is_policy) {
        let root = if stack.parent.is_some() { store.stack(stack.root).await? } else { None };
        if let Some(policy) = &root.as_ref().unwrap_or(stack).details.stack_policy {
            replace_policy(&mut guards, policy);
        }
    }
    if guards.is_empty() { Ok(None) } else { heeded(store, stack, guards).await.map(Some) }
}

/// These guards, for the present request to a stack.
///
/// # Errors
/// Errors of the store.
pub async fn heeded(store: &dyn Store, stack: &Stack, guards: Vec<Guard>) -> Result<Guards, Error> {
    let operation = store.operation(stack.root, stack.operation()).await?;
    let action = operation.as_ref().map_or(stack.state.action, |operation| operation.action);
    // A group that scales is a request of an engine to a nested stack.
    let is_signal = operation.as_ref().is_some_and(|operation| {
        operation.author.is_none() && operation.stack != operation.root && operation.action == Action::Update
    });
    let made_since = match operation {
        Some(operation) if action == Action::Rollback => {
            let of = Operations::OfTree(stack.root);
            let before = OperationQuery { of, marker: Some(operation.id), limit: Some(TAKEN_BACK) };
            let before = store.operations(&before).await?;
            let is_complete = |one: &Operation| one.end.as_ref().is_some_and(|end| end.status == Status::Complete);
            let of_root = before.iter().filter(|one| one.stack == one.root);
            of_root.take_while(|one| !is_complete(one)).last().map(|first| first.begun)
        }
        _ => None,
    };
    let path = load::place(store, stack).await?.join("/");
    let request = GuardedRequest { action, is_signal };
    Ok(Guards { guards: guards.into_iter().map(held).collect(), path, request, made_since })
}

/// A guard, as decisions need it.
pub fn held(guard: Guard) -> HeldGuard {
    let words = words(&guard);
    HeldGuard { rule: guard.terms.rule, until: guard.terms.until, words }
}

/// The guards of the tree of a stack.
///
/// # Errors
/// Errors of the store.
pub async fn held_for(store: &dyn Store, stack: &Stack, now: Timestamp) -> Result<Vec<Guard>, Error> {
    if stack.guards == 0 {
        return Ok(Vec::new());
    }
    let mut guards = store.guards(&stack.project).await?;
    guards.retain(|guard| guard.holds_for(stack.root, now));
    Ok(guards)
}

/// Judges an update by its own stack policy instead of that of its stack, if that has one.
pub fn replace_policy(guards: &mut [Guard], policy: &StackPolicy) {
    for guard in guards.iter_mut().filter(|guard| is_policy(guard)) {
        guard.terms.rule = GuardRule::StackPolicy(policy.clone());
        "with the stack policy of this update".clone_into(&mut guard.terms.reason);
    }
}

fn is_policy(guard: &Guard) -> bool {
    matches!(guard.terms.rule, GuardRule::StackPolicy(_))
}

/// A guard, for people.
pub fn words(guard: &Guard) -> String {
    let Guard { id, author, terms, .. } = guard;
    let reason = if terms.reason.is_empty() { String::new() } else { format!(" ({})", terms.reason) };
    format!("the guard {id} of {}{reason}", author.username)
}
