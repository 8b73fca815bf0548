//! Lists of stacks, with filters, sorting and paging.

use kiln_resource::{Action, Status};
use sea_orm::sea_query::extension::mysql::{IndexHintScope, MySqlSelectStatementExt as _};
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Func, Order, Query, SelectStatement, Value};
use sea_orm::{ConnectionTrait, QueryResult};

use super::columns::Columns;
use super::guards::guards_of;
use super::reading::{belongs_to_kiln, select_stacks};
use super::row::Row as _;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::{Error, Room, Sort, SortKey, Stack, StackId, StackQuery, StackSummary};

impl SqlStore {
    pub(super) async fn list_stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error> {
        self.retry(|| async {
            let rows = self.listed(select_stacks(), query).await?;
            rows.iter().map(|row| Columns::of(row).read()).collect()
        })
        .await
    }

    pub(super) async fn list_summaries(&self, query: &StackQuery) -> Result<Vec<StackSummary>, Error> {
        self.retry(|| async {
            let select = Query::select().columns(StackSummary::columns()).from(schema::STACK).to_owned();
            let rows = self.listed(select, query).await?;
            rows.iter().map(|row| Columns::of(row).read()).collect()
        })
        .await
    }

    /// The rows of a list of stacks.
    async fn listed(&self, mut select: SelectStatement, query: &StackQuery) -> Result<Vec<QueryResult>, Fault> {
        select.cond_where(stacks_of(query));
        let (keys, order) = order_of(query.sort.as_ref());
        if let Some(marker) = query.marker {
            select.cond_where(behind(&keys, &order, &self.keys_of(marker, &keys).await?));
            if query.project.is_some() && query.parent.is_none() && !query.nested && !query.deleted {
                // MariaDB would read everything before the marker, by another index.
                select.force_index("kiln_stack_listed", IndexHintScope::All);
            }
        }
        for key in keys {
            select.order_by_expr(key, order.clone());
        }
        if let Some(limit) = query.limit {
            select.limit(limit);
        }
        Ok(self.reader.query_all(&select).await?)
    }

    pub(super) async fn count_listed(&self, query: &StackQuery) -> Result<u64, Error> {
        let select = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::STACK)
            .cond_where(stacks_of(query))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Columns::of(&row).count(),
                None => Ok(0),
            }
        })
        .await
    }

    pub(super) async fn read_room(&self, project: &str, name: &str, counts: bool) -> Result<Room, Error> {
        let count = |condition: Cond| {
            let id = Func::count(Expr::col("id"));
            let select = Query::select().expr(id).from(schema::STACK).cond_where(condition).to_owned();
            Expr::SubQuery(None, Box::new(select.into()))
        };
        let is_named = Expr::col("project").eq(project).and(Expr::col(schema::LIVE_NAME).eq(name));
        let live = StackQuery { project: Some(project.to_owned()), ..StackQuery::default() };
        let stacks = if counts { count(stacks_of(&live)) } else { Expr::val(0_i64) };
        let guards = guards_of(Expr::val(project));
        let select = Query::select().expr(count(Cond::all().add(is_named))).expr(stacks).expr(guards).to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            let row = row.ok_or_else(|| Error::Damaged("a SELECT without FROM has no row".into()))?;
            let mut columns = Columns::of(&row);
            Ok(Room { is_taken: columns.count()? > 0, stacks: columns.count()?, guards: columns.int()? })
        })
        .await
    }

    /// The sort key values of the marker, read as numbers or strings.
    async fn keys_of(&self, marker: StackId, keys: &[Expr]) -> Result<Vec<Value>, Fault> {
        let mut select = Query::select();
        select.from(schema::STACK).and_where(Expr::col("id").eq(marker.to_string())).exprs(keys.iter().cloned());
        let Some(row) = self.reader.query_one(&select).await? else {
            return Err(Error::NotFound(format!("stack {marker}")).into());
        };
        (0..keys.len())
            .map(|at| match row.try_get_by_index::<i64>(at) {
                Ok(number) => Ok(number.into()),
                Err(_) => Ok(row.try_get_by_index::<String>(at)?.into()),
            })
            .collect()
    }
}

/// The sort expressions with the ID last, and their order.
fn order_of(sort: Option<&Sort>) -> (Vec<Expr>, Order) {
    let keys = sort.map(|sort| sort.keys.as_slice()).unwrap_or_default();
    let (keys, descending) = match keys {
        [] => (&[SortKey::Created][..], true),
        keys => (keys, sort.is_some_and(|sort| sort.descending)),
    };
    let mut keys: Vec<Expr> = keys
        .iter()
        .map(|key| match key {
            SortKey::Name => Expr::col("name"),
            SortKey::Status => Expr::col("status"),
            SortKey::Created => Expr::col("created"),
            // Databases sort NULL differently; never updated sorts before any time.
            SortKey::Updated => Func::coalesce([Expr::col("updated"), 0.into()]).into(),
        })
        .collect();
    keys.push(Expr::col("id"));
    (keys, if descending { Order::Desc } else { Order::Asc })
}

/// Rows after the row with these keys: the first key that differs decides. That the first key is not before that of the
/// row follows from this; it is added because databases find a range in an index only for such a condition.
fn behind(keys: &[Expr], order: &Order, marker: &[Value]) -> Cond {
    let is_descending = *order == Order::Desc;
    let mut any = Cond::any();
    for (at, (key, value)) in keys.iter().zip(marker).enumerate() {
        let mut all = Cond::all();
        for (key, value) in keys.iter().zip(marker).take(at) {
            all = all.add(key.clone().eq(value.clone()));
        }
        let (key, value) = (key.clone(), value.clone());
        all = all.add(if is_descending { key.lt(value) } else { key.gt(value) });
        any = any.add(all);
    }
    let first = keys.iter().cloned().zip(marker.iter().cloned()).next();
    let range = first.map(|(key, value)| if is_descending { key.lte(value) } else { key.gte(value) });
    Cond::all().add_option(range).add(any)
}

fn stacks_of(query: &StackQuery) -> Cond {
    let mut all = Cond::all().add(belongs_to_kiln());
    if let Some(project) = &query.project {
        all = all.add(Expr::col("project").eq(project.as_str()));
    }
    if let Some(project) = &query.user_project {
        all = all.add(Expr::col("user_project").eq(project.as_str()));
    }
    if let Some(parent) = query.parent {
        all = all.add(Expr::col("parent_stack").eq(parent.to_string()));
    } else if !query.nested {
        all = all.add(Expr::col("parent_stack").is_null());
    }
    if !query.roots.is_empty() {
        all = all.add(Expr::col("root").is_in(query.roots.iter().map(ToString::to_string)));
    }
    if let Some(root) = query.root {
        all = all.add(Expr::col("root").eq(root.to_string()));
    }
    if !query.deleted {
        all = all.add(Expr::col("deleted").is_null());
    }
    all = all
        .add_option(any_of("id", query.ids.iter().map(ToString::to_string)))
        .add_option(any_of("name", query.names.iter().cloned()))
        .add_option(words("action", query.actions.iter().cloned()))
        .add_option(any_of("username", query.usernames.iter().cloned()));
    if !query.statuses.is_empty() {
        all = all.add(query.statuses.iter().fold(Cond::any(), |any, status| any.add(has_status(status))));
    }
    for tag in &query.tags {
        all = all.add(has_tag([tag]));
    }
    if !query.tags_any.is_empty() {
        all = all.add(has_tag(&query.tags_any));
    }
    if !query.not_tags.is_empty() {
        all = all.add(query.not_tags.iter().fold(Cond::all(), |every, tag| every.add(has_tag([tag]))).not());
    }
    if !query.not_tags_any.is_empty() {
        all = all.add(has_tag(&query.not_tags_any).not());
    }
    all
}

/// Whether the column has one of the values; without values there is no condition.
pub(super) fn any_of(column: &'static str, values: impl ExactSizeIterator<Item = String>) -> Option<Expr> {
    (values.len() > 0).then(|| Expr::col(column).is_in(values))
}

/// [`any_of`] for a column of IDs or words.
pub(super) fn words(column: &'static str, values: impl ExactSizeIterator<Item = String>) -> Option<Expr> {
    (values.len() > 0).then(|| schema::is_one_of(column, values))
}

/// `FAILED`, or `CREATE_FAILED` with the action. Any other word matches no stack.
fn has_status(word: &str) -> Expr {
    if word.parse::<Status>().is_ok() {
        return Expr::col("status").eq(word);
    }
    match word.split_once('_') {
        Some((action, status)) if action.parse::<Action>().is_ok() => {
            Expr::col("action").eq(action).and(Expr::col("status").eq(status))
        }
        _ => schema::is_one_of("status", [word.to_owned()]),
    }
}

fn has_tag(tags: impl IntoIterator<Item = impl AsRef<str>>) -> Expr {
    let tags = tags.into_iter().map(|tag| tag.as_ref().to_owned());
    Expr::exists(tagged(tags.collect()))
}

fn tagged(tags: Vec<String>) -> SelectStatement {
    Query::select()
        .expr(Expr::val(1))
        .from(schema::TAG)
        .and_where(Expr::col((schema::TAG, "stack")).equals((schema::STACK, "id")))
        .and_where(Expr::col((schema::TAG, "tag")).is_in(tags))
        .to_owned()
}
