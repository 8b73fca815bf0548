//! What is hidden in a stack: the values of hidden parameters of its templates and of the stacks around it, and what
//! functions have made of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Model, Sources, StackScope};
use kiln_store::{Desired, Error, OperationQuery, Operations, Stack};

use crate::backends::Backends;
use crate::load::{self, stack_facts};

/// Requests between the last good state and the present one that are looked at.
const BETWEEN: u64 = 100;
/// Resources that are read by their names; of more, the whole stack is read.
const FEW: usize = 10;

/// The hidden values of a stack and of the stacks that it is nested in, now and before an update.
///
/// # Errors
/// Errors of the store.
pub async fn hidden_values(backends: &Backends, stack: &Stack) -> Result<HiddenValues, Error> {
    let mut around = above(backends, stack).await?;
    around.insert(0, stack.clone());
    let mut sources = Vec::new();
    for stack in &around {
        sources.extend(sources_of(backends, stack).await?);
    }
    let mut hidden = HiddenValues::of(&sources.iter().collect::<Vec<_>>());
    // Nested stacks get in parameters what their parents have made.
    let owners = around.iter().filter_map(|stack| Some(stack.parent.as_ref()?.resource_name.as_str()));
    let owners: Vec<Option<&str>> = std::iter::once(None).chain(owners.map(Some)).collect();
    for (stack, owner) in around.iter().zip(owners).rev() {
        derive_for(backends, stack, owner, &mut hidden).await?;
    }
    Ok(hidden)
}

/// Adds what functions have made of hidden values in the nested stacks of a stack.
///
/// # Errors
/// Errors of the store.
pub fn derive_below<'a>(
    backends: &'a Backends,
    stack: &'a Stack,
    hidden: &'a mut HiddenValues,
) -> BoxFuture<'a, Result<(), Error>> {
    async move {
        if hidden.is_empty() {
            return Ok(());
        }
        let children = backends.store.resources(stack.id).await?.into_iter().filter_map(|row| row.child);
        for child in children {
            if let Some(child) = backends.store.stack(child).await? {
                derive(backends, &child, hidden).await?;
                derive_below(backends, &child, hidden).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// Adds what the functions of a stack's templates have made of hidden values.
///
/// # Errors
/// Errors of the store.
pub async fn derive(backends: &Backends, stack: &Stack, hidden: &mut HiddenValues) -> Result<(), Error> {
    derive_for(backends, stack, None, hidden).await
}

/// As [`derive`]; with an owner only what the nested stack of this resource can get: from the resource, and from those it
/// depends on. A member of a group depends on no other one, so that a group with many members is not read for each of them.
async fn derive_for(
    backends: &Backends,
    stack: &Stack,
    owner: Option<&str>,
    hidden: &mut HiddenValues,
) -> Result<(), Error> {
    if hidden.is_empty() {
        return Ok(());
    }
    let mut blueprints = Vec::new();
    for desired in &definitions(backends, stack).await? {
        let blueprint = readable(load::blueprint(backends, stack, desired).await)?.and_then(Result::ok);
        blueprints.extend(blueprint.map(Arc::new));
    }
    let behind = owner.map(|owner| behind(&blueprints, owner)).filter(|names| names.len() <= FEW);
    let rows = match behind {
        Some(names) => {
            let mut rows = Vec::new();
            for name in names {
                rows.extend(backends.store.resources_named(stack.id, name).await?);
            }
            rows
        }
        None => backends.store.resources(stack.id).await?,
    };
    let model = Model::new(rows);
    for blueprint in &blueprints {
        let mut scope = StackScope::new(Arc::clone(blueprint), stack_facts(stack));
        model.shown(stack.rollback()).values().for_each(|row| scope.see(row));
        hidden.derive_stack(&scope, model.rows());
    }
    Ok(())
}

/// A resource and those it depends on.
fn behind<'a>(blueprints: &'a [Arc<Blueprint>], owner: &'a str) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::from([owner]);
    let mut open = vec![owner];
    while let Some(name) = open.pop() {
        for required in blueprints.iter().flat_map(|blueprint| blueprint.requires(name)) {
            if names.insert(required) {
                open.push(required);
            }
        }
    }
    names
}

/// The sources of a stack, now and before an update.
///
/// # Errors
/// Errors of the store.
pub async fn sources_of(backends: &Backends, stack: &Stack) -> Result<Vec<Sources>, Error> {
    let mut sources = Vec::new();
    for desired in &definitions(backends, stack).await? {
        sources.extend(readable(load::stored(backends, desired).await)?);
    }
    Ok(sources)
}

/// The stacks that a stack is nested in, the nearest first.
///
/// # Errors
/// Errors of the store.
pub async fn above(backends: &Backends, stack: &Stack) -> Result<Vec<Stack>, Error> {
    let (mut above, mut parent) = (Vec::new(), stack.parent.clone());
    while let Some(stack) = match &parent {
        Some(parent) => backends.store.stack(parent.stack).await?,
        None => None,
    } {
        parent.clone_from(&stack.parent);
        above.push(stack);
    }
    Ok(above)
}

/// The desired states of a stack that its rows may be from: the present one, the one before an update, and those of requests
/// between them.
async fn definitions(backends: &Backends, stack: &Stack) -> Result<Vec<Desired>, Error> {
    let mut definitions = vec![stack.desired.clone()];
    let Some(previous) = stack.previous.as_ref().filter(|previous| **previous != stack.desired) else {
        return Ok(definitions);
    };
    let query = OperationQuery { of: Operations::Revisions(stack.id), marker: None, limit: Some(BETWEEN) };
    let newest_first = backends.store.operations(&query).await?.into_iter().filter_map(|operation| operation.desired);
    for between in newest_first.take_while(|desired| desired != previous).chain([previous.clone()]) {
        if !definitions.contains(&between) {
            definitions.push(between);
        }
    }
    Ok(definitions)
}

/// What can be read: a stack must be deleted even if its template is damaged.
fn readable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
