//! Reads of single rows and of the rows of a stack. Lists with filters are in `listing`.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Func, Order, Query, SelectStatement};

use super::columns::Columns;
use super::guards::guards_of;
use super::row::Row as _;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::take_over::waiting;
use crate::{BriefResources, Desired, DesiredText, Digest, Error, Resource, Stack, StackId, Summary};

/// IDs in one statement.
const CHUNK: usize = 1_000;

/// Selects stacks that belong to Kiln, without conditions.
pub(super) fn select_stacks() -> SelectStatement {
    select_all_stacks().and_where(belongs_to_kiln()).to_owned()
}

/// That a stack, or a config or deployment, is not one that was imported and belongs to Heat until its project is switched.
pub(super) fn belongs_to_kiln() -> Expr {
    Expr::col("project").not_like(waiting("%"))
}

/// Selects stacks, also those that belong to Heat.
pub(super) fn select_all_stacks() -> SelectStatement {
    let writes = writes_of(Expr::col((schema::STACK, "id")));
    let guards = guards_of(Expr::col((schema::STACK, "project")));
    Query::select().columns(Stack::columns()).expr(writes).expr(guards).from(schema::STACK).to_owned()
}

/// The number of batches of a stack.
fn writes_of(stack: Expr) -> Expr {
    let select = Query::select()
        .column("writes")
        .from(schema::LEASE)
        .and_where(Expr::col((schema::LEASE, "stack")).eq(stack))
        .to_owned();
    Expr::SubQuery(None, Box::new(select.into()))
}

/// Selects the resources of stacks in order of creation.
fn select_resources(stacks: &[StackId]) -> SelectStatement {
    Query::select()
        .columns(Resource::columns())
        .from(schema::RESOURCE)
        .and_where(Expr::col("stack").is_in(stacks.iter().map(ToString::to_string)))
        .order_by("seq", Order::Asc)
        .to_owned()
}

/// The alias of a nested stack.
const CHILD: &str = "c";

/// Selects the nested stacks of a stack.
fn select_children(parent: StackId) -> SelectStatement {
    Query::select()
        .columns(
            ["id", "parent_resource", "action", "status", "reason", "generation", "settled", "deleted"]
                .map(|column| (CHILD, column)),
        )
        .from_as(schema::STACK, CHILD)
        .and_where(Expr::col((CHILD, "parent_stack")).eq(parent.to_string()))
        .order_by((CHILD, "created"), Order::Asc)
        .order_by((CHILD, "id"), Order::Asc)
        .to_owned()
}

/// The resource that a nested stack belongs to.
fn resource_of_child() -> SelectStatement {
    Query::select()
        .expr(Expr::val(1))
        .from(schema::RESOURCE)
        .and_where(Expr::col((schema::RESOURCE, "id")).equals((CHILD, "parent_resource")))
        .to_owned()
}

/// A stack by ID, as the connection or transaction sees it.
pub(super) async fn find_stack(db: &impl ConnectionTrait, id: StackId) -> Result<Option<Stack>, Fault> {
    let select = select_stacks().and_where(Expr::col("id").eq(id.to_string())).to_owned();
    db.query_one(&select).await?.map(|row| Columns::of(&row).read()).transpose()
}

impl SqlStore {
    pub(super) async fn read_stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error> {
        let select = select_stacks()
            .and_where(Expr::col("project").eq(project))
            .and_where(Expr::col(schema::LIVE_NAME).eq(name))
            .to_owned();
        self.retry(|| async { self.reader.query_one(&select).await?.map(|row| Columns::of(&row).read()).transpose() })
            .await
    }

    pub(super) async fn read_desired(&self, desired: &Desired) -> Result<DesiredText, Error> {
        let select = Query::select()
            .columns(["digest", "body"])
            .from(schema::CONTENT)
            .and_where(Expr::col("digest").is_in([
                desired.template.0.as_str(),
                desired.environment.0.as_str(),
                desired.files.0.as_str(),
            ]))
            .to_owned();
        let texts = self
            .retry(|| async {
                let rows = self.reader.query_all(&select).await?;
                rows.iter()
                    .map(|row| {
                        let mut columns = Columns::of(row);
                        let digest = columns.text()?;
                        let text = self.vault.open_value(&digest, columns.text()?)?;
                        Ok((digest, text))
                    })
                    .collect::<Result<Vec<_>, Fault>>()
            })
            .await?;
        let text = |digest: &Digest| {
            let found = texts.iter().find(|(found, _)| *found == digest.0);
            found.map(|(_, text)| text.clone()).ok_or_else(|| Error::NotFound(format!("content {digest}")))
        };
        Ok(DesiredText {
            template: text(&desired.template)?,
            environment: text(&desired.environment)?,
            files: text(&desired.files)?,
        })
    }

    pub(super) async fn read_content(&self, digest: &Digest) -> Result<String, Error> {
        let select = Query::select()
            .column("body")
            .from(schema::CONTENT)
            .and_where(Expr::col("digest").eq(digest.0.as_str()))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Ok(self.vault.open_value(&digest.0, Columns::of(&row).text()?)?),
                None => Err(Error::NotFound(format!("content {digest}")).into()),
            }
        })
        .await
    }

    pub(super) async fn read_resources(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error> {
        let mut resources = Vec::new();
        for stacks in stacks.chunks(CHUNK) {
            resources.extend(self.read_selected(&select_resources(stacks)).await?);
        }
        Ok(resources)
    }

    pub(super) async fn read_resources_named(&self, stack: StackId, name: &str) -> Result<Vec<Resource>, Error> {
        self.read_selected(select_resources(&[stack]).and_where(Expr::col("name").eq(name))).await
    }

    async fn read_selected(&self, select: &SelectStatement) -> Result<Vec<Resource>, Error> {
        self.retry(|| async {
            let rows = self.reader.query_all(select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    /// In one statement: a cache that keeps older rows under a newer number would serve them until the next batch.
    pub(super) async fn read_resources_and_writes(
        &self,
        stack: StackId,
    ) -> Result<(Option<i64>, Vec<Resource>), Error> {
        let select = select_resources(&[stack]).expr(writes_of(Expr::val(stack.to_string()))).to_owned();
        self.retry(|| async {
            let mut writes = None;
            let mut resources = Vec::new();
            for row in self.reader.query_all(&select).await? {
                let mut columns = Columns::opening(&row, &self.vault);
                resources.push(columns.read()?);
                if writes.is_none() {
                    writes = columns.optional_int()?;
                }
            }
            Ok((writes, resources))
        })
        .await
    }

    pub(super) async fn read_resources_in_brief(
        &self,
        stack: StackId,
        after: Option<u64>,
        limit: u64,
    ) -> Result<BriefResources, Error> {
        let mut select = Query::select();
        select
            .columns(schema::BRIEF_COLUMNS)
            .from(schema::RESOURCE)
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .order_by("seq", Order::Asc)
            .limit(limit);
        if let Some(after) = after {
            select.and_where(Expr::col("seq").gt(i64::try_from(after).unwrap_or(i64::MAX)));
        }
        self.retry(|| async {
            let mut found = BriefResources::default();
            for row in self.reader.query_all(&select).await? {
                let (row, place) = Columns::of(&row).brief_resource(stack)?;
                found.last = Some(place);
                found.rows.push(row);
            }
            Ok(found)
        })
        .await
    }

    pub(super) async fn read_resource_count(&self, root: StackId) -> Result<u64, Error> {
        let stacks = Query::select()
            .column("id")
            .from(schema::STACK)
            .and_where(Expr::col("root").eq(root.to_string()))
            .to_owned();
        let select = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::RESOURCE)
            .and_where(Expr::col("stack").in_subquery(stacks))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Columns::of(&row).count(),
                None => Ok(0),
            }
        })
        .await
    }

    /// Includes deleted stacks while the resource that waits for them exists.
    pub(super) async fn read_children(&self, parent: StackId) -> Result<Vec<Summary>, Error> {
        let asked = "p";
        let last_request = Func::coalesce([Expr::col((asked, "updated")), Expr::col((asked, "created"))]);
        let mut select = select_children(parent);
        select
            .join_as(
                sea_orm::JoinType::InnerJoin,
                schema::STACK,
                asked,
                Expr::col((asked, "id")).equals((CHILD, "parent_stack")),
            )
            .cond_where(
                Cond::any()
                    .add(Expr::col((CHILD, "deleted")).is_null())
                    .add(Expr::col((CHILD, "deleted")).gte(last_request))
                    .add(Expr::exists(resource_of_child())),
            );
        self.read_summaries(&select).await
    }

    pub(super) async fn read_ended_children(&self, parent: StackId, also: &[StackId]) -> Result<Vec<Summary>, Error> {
        let has_operation =
            resource_of_child().and_where(Expr::col((schema::RESOURCE, "step")).is_not_null()).to_owned();
        let settled = Expr::col((CHILD, "settled")).gte(Expr::col((CHILD, "generation")));
        let also = also.iter().map(ToString::to_string);
        let mut select = select_children(parent);
        select
            .cond_where(Cond::any().add(settled).add(Expr::col((CHILD, "deleted")).is_not_null()))
            .cond_where(Cond::any().add(Expr::exists(has_operation)).add(Expr::col((CHILD, "id")).is_in(also)));
        self.read_summaries(&select).await
    }

    async fn read_summaries(&self, select: &SelectStatement) -> Result<Vec<Summary>, Error> {
        self.retry(|| async {
            let rows = self.reader.query_all(select).await?;
            rows.iter().map(|row| summary(&mut Columns::of(row))).collect()
        })
        .await
    }
}

fn summary(columns: &mut Columns<'_>) -> Result<Summary, Fault> {
    Ok(Summary {
        id: columns.parsed()?,
        resource: columns.parsed()?,
        state: kiln_resource::State::new(columns.parsed()?, columns.parsed()?),
        reason: columns.text()?,
        generation: columns.int()?,
        settled: columns.int()?,
        deleted: columns.optional_int()?.is_some(),
    })
}
