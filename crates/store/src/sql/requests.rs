//! The desired state: creation of stacks and requests to them.
//!
//! The API uses these directly; an engine uses them in its batches, for nested stacks.

use std::collections::BTreeMap;

use kiln_resource::{Action, State, Status};
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Func, OnConflict, Query};

use super::claims::claim_objects;
use super::columns::{Columns, json, micros, micros_of, pack, plain};
use super::operations::begin_operations;
use super::pool::Transaction;
use super::reading::{belongs_to_kiln, find_stack, select_stacks};
use super::row::Row as _;
use super::secrets::CLOSED;
use super::snapshots::{fail_unfinished_snapshots, save_snapshots};
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::limits::CONTENT_FRESH;
use crate::{
    DesiredText, Details, Digest, Error, Event, EventId, NewStack, Operation, Stack, StackId, StackRequest, stack,
    version_of,
};

impl SqlStore {
    pub(super) async fn make_stack(&self, stack: &NewStack) -> Result<Stack, Error> {
        let is_planned = stack.planned.is_some();
        let made = self
            .retry_numbered(|attempt| async move {
                match self.make_once(stack).await {
                    // The stack of a plan has its ID before it exists, so that another request may have created it.
                    Err(fault) if is_planned && attempt == 1 && fault.is_duplicate() => {
                        Err(Error::NameTaken(stack.name.clone()).into())
                    }
                    // An earlier attempt created the stack and lost its connection.
                    Err(fault) if fault.is_duplicate() || (fault.is_name_taken() && (attempt > 1 || !is_planned)) => {
                        let found = find_stack(&self.reader, stack.id).await?;
                        found.filter(|found| !is_planned || found.credentials == stack.credentials).ok_or(fault)
                    }
                    done => done,
                }
            })
            .await?;
        self.hub.ring(made.id);
        self.hub.tell(Some(made.root));
        self.tell_couriers(&made, false);
        Ok(made)
    }

    async fn make_once(&self, stack: &NewStack) -> Result<Stack, Fault> {
        let tx = self.begin().await?;
        let new = std::slice::from_ref(stack);
        let mut made = self.create_in(&tx, new).await?;
        let Some((made, event)) = made.pop() else { return Err(Error::NotFound(format!("stack {}", stack.id)).into()) };
        self.append_events(&tx, &[(&made, &[event])]).await?;
        // Last, because it locks the row until the end, and all stacks of a user have the same credentials.
        self.attach_credentials_of(&tx, new).await?;
        tx.commit().await?;
        Ok(made)
    }

    pub(super) async fn ask(&self, stack: StackId, request: &StackRequest) -> Result<Stack, Error> {
        let id = EventId(self.outside.uuid());
        let asked = self
            .retry_numbered(|attempt| async move {
                match self.ask_once(stack, request, id).await {
                    // An earlier attempt wrote the request and lost its connection, as its event shows.
                    Err(fault) if attempt > 1 && !fault.is_lost() && has_event(&self.reader, id).await? => {
                        find_stack(&self.reader, stack).await?.ok_or(fault)
                    }
                    done => done,
                }
            })
            .await?;
        self.hub.ring(stack);
        self.hub.tell(Some(asked.root));
        self.tell_couriers(&asked, false);
        Ok(asked)
    }

    async fn ask_once(&self, stack: StackId, request: &StackRequest, id: EventId) -> Result<Stack, Fault> {
        let tx = self.begin().await?;
        let Some((asked, event)) = self.request_in(&tx, stack, request).await? else {
            return Err(Error::NotFound(format!("stack {stack}")).into());
        };
        let event = Event { id, ..event };
        self.append_events(&tx, &[(&asked, &[event])]).await?;
        tx.commit().await?;
        Ok(asked)
    }

    /// Creates stacks, with their leases, tags and texts; returns each with its first event, which is not written yet.
    pub(super) async fn create_in(&self, tx: &Transaction, new: &[NewStack]) -> Result<Vec<(Stack, Event)>, Fault> {
        self.store_contents(tx, new.iter().map(|stack| &stack.desired)).await?;
        let stacks: Vec<Stack> = new.iter().map(Stack::started).collect();
        insert_stacks(tx, &stacks).await?;
        for (stack, new) in stacks.iter().zip(new).filter(|(stack, _)| stack.parent.is_none()) {
            let claims = new.adopt.iter().flat_map(|data| data.claims(&stack.user_id));
            claim_objects(tx, stack, claims.collect()).await?;
        }
        save_snapshots(tx, &self.vault, new.iter().filter_map(|stack| stack.adopt.as_ref())).await?;
        let begun = stacks
            .iter()
            .zip(new)
            .filter_map(|(stack, new)| Operation::of(stack, new.author().as_ref(), Some(stack.desired.clone())));
        begin_operations(tx, begun).await?;
        for plan in new.iter().filter_map(NewStack::plan_to_use) {
            self.use_plan(tx, plan).await?;
        }
        Ok(stacks.into_iter().map(with_start).collect())
    }

    /// Attaches the credentials of new stacks to them.
    pub(super) async fn attach_credentials_of(&self, tx: &Transaction, new: &[NewStack]) -> Result<(), Fault> {
        for credentials in new.iter().filter_map(|stack| stack.credentials) {
            self.attach_credentials(tx, credentials).await?;
        }
        Ok(())
    }

    /// Writes a request; returns the stack after that and the event to write. `None`: the stack is deleted.
    pub(super) async fn request_in(
        &self,
        tx: &Transaction,
        id: StackId,
        request: &StackRequest,
    ) -> Result<Option<(Stack, Event)>, Fault> {
        let state = State::new(request.action, Status::InProgress);
        let mut update = Query::update();
        update
            .table(schema::STACK)
            .value("generation", Expr::col("generation").add(1))
            .value("action", state.action.as_str())
            .value("status", state.status.as_str())
            .value("reason", stack::started_text(request.action))
            .value("due", Func::coalesce([Expr::col("due"), micros(request.now).into()]))
            .value("updated", micros(request.now))
            .value("details", details(&request.details.clone().with_origin())?)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(belongs_to_kiln())
            .and_where(Expr::col("deleted").is_null());
        if matches!(request.action, Action::Update | Action::Restore) {
            // Before `desired` is set: MariaDB evaluates assignments from left to right.
            update.value("previous", previous_desired());
        } else if request.action == Action::Rollback {
            update.value("desired", previous_desired());
        }
        if let Some(generation) = request.if_generation {
            update.and_where(Expr::col("generation").eq(generation));
        }
        if let Some(desired) = &request.desired {
            update.value("desired", pack(&desired.digests()));
        }
        if let Some(disable_rollback) = request.disable_rollback {
            update.value("disable_rollback", i64::from(disable_rollback));
        }
        if let Some(timeout_mins) = request.timeout_mins {
            update.value("timeout_mins", timeout_mins);
        }
        if let Some(tags) = &request.tags {
            update.value("tags", json(tags, tags.is_empty())?);
        }
        if let Some(credentials) = request.credentials {
            self.replace_credentials(tx, id, credentials).await?;
            update.value("credentials", credentials.to_string());
        }
        if tx.execute(&update).await?.rows_affected() == 0 {
            return match find_stack(tx, id).await? {
                Some(stack) if stack.deleted.is_none() => Err(Error::Changed(id).into()),
                _ => Ok(None),
            };
        }
        if let Some(tags) = &request.tags {
            let delete =
                Query::delete().from_table(schema::TAG).and_where(Expr::col("stack").eq(id.to_string())).to_owned();
            tx.execute(&delete).await?;
            insert_tags(tx, [(id, tags.as_slice())]).await?;
        }
        fail_unfinished_snapshots(tx, id).await?;
        save_snapshots(tx, &self.vault, &request.snapshot).await?;
        let stack = find_stack(tx, id).await?.ok_or_else(|| Error::NotFound(format!("stack {id}")))?;
        if let Some(version) = &request.if_version {
            check_version(tx, &stack, version).await?;
        }
        let claims = request.snapshot.iter().flat_map(|data| data.claims(&stack.user_id));
        claim_objects(tx, &stack, claims.collect()).await?;
        if let Some(plan) = request.details.plan_to_use() {
            self.use_plan(tx, plan).await?;
        }
        self.store_contents(tx, &request.desired).await?;
        begin_operations(tx, request.operation(&stack).into_iter()).await?;
        Ok(Some(with_start(stack)))
    }

    /// Inserts texts that are not stored yet. If the time of a stored text is old, it is updated: see
    /// [`CONTENT_FRESH`].
    pub(super) async fn store_contents<'t>(
        &self,
        tx: &Transaction,
        desired: impl IntoIterator<Item = &'t DesiredText>,
    ) -> Result<(), Fault> {
        // Sorted by digest, so that two transactions with the same texts do not deadlock.
        let texts: BTreeMap<String, &str> = desired
            .into_iter()
            .flat_map(|desired| [&desired.template, &desired.environment, &desired.files])
            .map(|text| (Digest::of(text).0, text.as_str()))
            .collect();
        if texts.is_empty() {
            return Ok(());
        }
        let is_one = || Expr::col("digest").is_in(texts.keys().map(String::as_str));
        let touch = Query::update()
            .table(schema::CONTENT)
            .value("used", self.outside.now())
            .and_where(is_one())
            .and_where(Expr::col("used").lt(self.outside.now().sub(micros_of(CONTENT_FRESH))))
            .to_owned();
        tx.execute(&touch).await?;
        let select = Query::select().column("digest").from(schema::CONTENT).and_where(is_one()).to_owned();
        let mut missing = texts.clone();
        for row in tx.query_all(&select).await? {
            missing.remove(&Columns::of(&row).text()?);
        }
        let row = |(digest, text): (String, &str)| {
            let body = self.vault.seal_value(&digest, text.to_owned())?;
            Ok::<_, Error>(vec![digest.into(), self.outside.now(), body.into()])
        };
        let rows = missing.into_iter().map(row).collect::<Result<_, _>>()?;
        let absent = OnConflict::column("digest").do_nothing_on(["digest"]).to_owned();
        insert(tx, schema::CONTENT, &["digest", "used", "body"], rows, Some(absent)).await
    }
}

/// Inserts stacks with their leases and tags.
pub(super) async fn insert_stacks(tx: &Transaction, stacks: &[Stack]) -> Result<(), Fault> {
    let rows = stacks.iter().map(row_of).collect::<Result<_, _>>()?;
    let columns = [Stack::COLUMNS, &[schema::LIVE_NAME, "due"]].concat();
    insert(tx, schema::STACK, &columns, rows, None).await.map_err(|fault| match stacks {
        [stack, ..] if fault.is_duplicate_of(schema::LIVE_NAME) => Error::NameTaken(stack.name.clone()).into(),
        _ => fault,
    })?;
    let leases = stacks.iter().map(|stack| vec![stack.id.to_string().into(), 0.into(), 0.into(), 0.into()]);
    insert(tx, schema::LEASE, &["stack", "epoch", "expires", "writes"], leases.collect(), None).await?;
    insert_tags(tx, stacks.iter().map(|stack| (stack.id, stack.tags.as_slice()))).await
}

/// Refuses a request unless the tree of its stack had a version before it. No row is locked for this: a request to a nested
/// stack that commits at the same time is not seen.
async fn check_version(tx: &Transaction, stack: &Stack, version: &str) -> Result<(), Fault> {
    let select = select_stacks()
        .and_where(Expr::col("root").eq(stack.root.to_string()))
        .and_where(Expr::col("deleted").is_null())
        .to_owned();
    let rows = tx.query_all(&select).await?;
    let mut tree = rows.iter().map(|row| Columns::of(row).read()).collect::<Result<Vec<Stack>, _>>()?;
    for asked in tree.iter_mut().filter(|other| other.id == stack.id) {
        asked.generation -= 1;
    }
    if version_of(tree) == version { Ok(()) } else { Err(Error::Changed(stack.id).into()) }
}

fn with_start(stack: Stack) -> (Stack, Event) {
    let event = Event::of_start(&stack);
    (stack, event)
}

/// The row of a stack, with the columns that only the database uses.
fn row_of(stack: &Stack) -> Result<Vec<Expr>, Fault> {
    let mut row = stack.write(&CLOSED)?;
    row.push(stack.parent.is_none().then(|| plain(&stack.name)).into());
    row.push(stack.is_pending().then(|| micros(stack.created)).into());
    Ok(row)
}

/// The parameters of a request.
pub(super) fn details(details: &Details) -> Result<Expr, Fault> {
    json(details, *details == Details::default())
}

/// The previous state, or the desired state if there is no previous one.
fn previous_desired() -> Expr {
    Func::coalesce([Expr::col("previous"), Expr::col("desired")]).into()
}

async fn has_event(db: &impl ConnectionTrait, id: EventId) -> Result<bool, Fault> {
    let select =
        Query::select().expr(Expr::val(1)).from(schema::EVENT).and_where(Expr::col("id").eq(id.to_string())).to_owned();
    Ok(db.query_one(&select).await?.is_some())
}

async fn insert_tags<'t>(
    tx: &Transaction,
    tags: impl IntoIterator<Item = (StackId, &'t [String])>,
) -> Result<(), Fault> {
    let rows = tags
        .into_iter()
        .flat_map(|(stack, tags)| tags.iter().map(move |tag| vec![stack.to_string().into(), plain(tag).into()]))
        .collect();
    let absent = OnConflict::columns(["stack", "tag"]).do_nothing_on(["stack", "tag"]).to_owned();
    insert(tx, schema::TAG, &["stack", "tag"], rows, Some(absent)).await
}
