//! The objects that stacks take over.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};

use super::columns::{Columns, plain};
use super::pool::Transaction;
use super::reading::find_stack;
use super::schema;
use super::statement_retry::Fault;
use super::writing::insert;
use crate::{Error, ObjectClaim, Stack, StackId};

const COLUMNS: [&str; 4] = ["project", "object", "stack", "generation"];
/// Objects in one statement.
const AT_ONCE: usize = 500;

/// Claims objects for a stack until its request has ended; then its resources have them. Refuses objects that another stack
/// claims or a resource has.
///
/// The claims are written before the resources are read: of two stacks with the same object, one waits for the other's
/// transaction, and then sees its claim, or the resource that its request has left.
pub(super) async fn claim_objects(tx: &Transaction, stack: &Stack, claims: BTreeSet<ObjectClaim>) -> Result<(), Fault> {
    if claims.is_empty() {
        return Ok(());
    }
    let holds = Query::select()
        .column("id")
        .from(schema::STACK)
        .and_where(Expr::col((schema::STACK, "id")).eq(Expr::col((schema::CLAIM, "stack"))))
        .and_where(Expr::col("settled").lt(Expr::col((schema::CLAIM, "generation"))))
        .and_where(Expr::col("deleted").is_null())
        .to_owned();
    let ended = Query::delete()
        .from_table(schema::CLAIM)
        .and_where(Expr::col("project").eq(plain(&stack.project)))
        .and_where(Expr::exists(holds).not())
        .to_owned();
    tx.execute(&ended).await?;
    let by_key: BTreeMap<String, ObjectClaim> = claims.into_iter().map(|claim| (claim.key(), claim)).collect();
    let row = |key: &String| {
        let (project, id) = (plain(&stack.project), stack.id.to_string());
        vec![project.into(), key.clone().into(), id.into(), stack.generation.into()]
    };
    let taken = OnConflict::columns(["project", "object"]).do_nothing_on(["project", "object"]).to_owned();
    insert(tx, schema::CLAIM, &COLUMNS, by_key.keys().map(row).collect(), Some(taken)).await?;
    let all: Vec<(&String, &ObjectClaim)> = by_key.iter().collect();
    for some in all.chunks(AT_ONCE) {
        refuse_claimed(tx, stack, some).await?;
        refuse_owned(tx, stack, some).await?;
    }
    Ok(())
}

async fn refuse_claimed(tx: &Transaction, stack: &Stack, claims: &[(&String, &ObjectClaim)]) -> Result<(), Fault> {
    let select = Query::select()
        .columns(["object", "stack"])
        .from(schema::CLAIM)
        .and_where(Expr::col("project").eq(plain(&stack.project)))
        .and_where(Expr::col("object").is_in(claims.iter().map(|(key, _)| key.as_str())))
        .and_where(Expr::col("stack").ne(stack.id.to_string()))
        .limit(1)
        .to_owned();
    let Some(row) = tx.query_one(&select).await? else { return Ok(()) };
    let mut columns = Columns::of(&row);
    let (key, other): (String, StackId) = (columns.text()?, columns.parsed()?);
    let other = find_stack(tx, other).await?.ok_or(Error::Changed(other))?;
    let id =
        claims.iter().find(|(claimed, _)| **claimed == key).map_or_else(String::new, |(_, claim)| claim.id.clone());
    Err(Error::ObjectTaken { id, owner: ObjectClaim::claimant(&other) }.into())
}

async fn refuse_owned(tx: &Transaction, stack: &Stack, claims: &[(&String, &ObjectClaim)]) -> Result<(), Fault> {
    let of_project = Expr::col("project").eq(plain(&stack.project));
    let stacks = Query::select().column("id").from(schema::STACK).and_where(of_project).to_owned();
    let select = Query::select()
        .columns(["name", "implementation", "physical_id", "stack"])
        .from(schema::RESOURCE)
        .and_where(Expr::col("physical_id").is_in(claims.iter().map(|(_, claim)| plain(&claim.id))))
        .and_where(Expr::col("stack").in_subquery(stacks))
        .to_owned();
    for row in tx.query_all(&select).await? {
        let mut columns = Columns::of(&row);
        let (name, implementation, id) = (columns.text()?, columns.text()?, columns.text()?);
        let holder: StackId = columns.parsed()?;
        let Some(holder) = find_stack(tx, holder).await? else { continue };
        let Some(root) = find_stack(tx, holder.root).await?.filter(|root| !root.is_abandoned()) else { continue };
        let has = ObjectClaim::of(&implementation, &id, &root.user_id);
        if has.is_some_and(|has| claims.iter().any(|(_, claim)| **claim == has)) {
            return Err(Error::ObjectTaken { id, owner: ObjectClaim::owner(&name, &root) }.into());
        }
    }
    Ok(())
}
