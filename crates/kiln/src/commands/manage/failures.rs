//! `kiln manage failures`.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_resource::{Resource, Status};
use kiln_server::database;
use kiln_store::{
    Error, OperationQuery, OperationStore as _, Operations, Sort, SortKey, SqlStore, Stack, StackQuery, Store as _,
};

use super::who_uses::place;
use crate::cli::Global;
use crate::commands::duration;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// List the failed stacks of all projects with the resources that caused it
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
The newest failure comes first. A failure in a nested stack is shown with its root stack and the path of \
the resource. The column Request ID is what the log of the service has as request_id.

Examples:
  kiln manage failures
  kiln manage failures --since 2h
  kiln manage failures --since 2026-11-28T03:00:00Z -f json")]
pub(crate) struct FailuresArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only stacks that failed since a time, or within a duration such as 90m or 2d
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only stacks of the project with this ID
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Maximum number of stacks
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    output: OutputArgs,
}

/// The beginning of a period.
#[derive(Clone, Copy, Debug)]
enum Since {
    /// A time.
    At(Timestamp),
    /// A time before now.
    Within(Duration),
}

impl Since {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        let within = duration::parse(text).map(Self::Within);
        within.ok_or_else(|| "neither a time (2026-11-28T03:00:00Z) nor a duration (90m, 2h, 2d)".to_owned())
    }
}

/// Stacks that are read at a time.
const PAGE: u64 = 200;

impl FailuresArgs {
    pub(super) async fn run(self, _: &Global) -> Outcome {
        let store = Box::pin(database::open_unchanged(&Config::load(&self.config)?)).await?;
        let failed = |error: Error| Failure::new(error.to_string());
        let rows = Box::pin(self.rows(&store)).await.map_err(failed)?;
        let columns = [
            "Time",
            "Project",
            "Stack",
            "Stack ID",
            "State",
            "Resource",
            "Resource Type",
            "Object",
            "Reason",
            "Request ID",
        ];
        Ok(self.output.list(List { columns: columns.map(str::to_owned).to_vec(), rows }, Format::Table)?)
    }

    async fn rows(&self, store: &SqlStore) -> Result<Vec<Vec<Cell>>, Error> {
        let since = match self.since {
            Some(Since::At(time)) => time,
            Some(Since::Within(span)) => store.now().await? - span,
            None => Timestamp::MIN,
        };
        let mut rows = Vec::new();
        let mut stacks = 0;
        for stack in self.stacks(store).await? {
            let (time, request) = last_end(store, &stack).await?;
            if time < since {
                continue;
            }
            stacks += 1;
            if stacks > self.limit {
                break;
            }
            let time = time.to_string();
            let of_stack = |about: [String; 3], reason: &str| {
                let [resource, kind, object] = about.map(Cell::from);
                let (name, id, state) =
                    (stack.name.as_str().into(), stack.id.to_string().into(), stack.state.to_string().into());
                let (time, project) = (time.as_str().into(), stack.project.as_str().into());
                vec![time, project, name, id, state, resource, kind, object, reason.into(), request.as_str().into()]
            };
            let causes = causes(store, &stack).await?;
            if causes.is_empty() {
                rows.push(of_stack(Default::default(), &stack.reason));
            }
            for (path, row) in causes {
                rows.push(of_stack([path, row.resource_type, row.physical_id.unwrap_or_default()], &row.reason));
            }
        }
        Ok(rows)
    }

    /// The failed root stacks, those with the newest request first.
    async fn stacks(&self, store: &SqlStore) -> Result<Vec<Stack>, Error> {
        let mut query = StackQuery {
            project: self.project.clone(),
            statuses: vec!["FAILED".to_owned()],
            sort: Some(Sort { keys: vec![SortKey::Updated], descending: true }),
            limit: Some(PAGE),
            ..StackQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = store.stacks(&query).await?;
            let (last, is_whole) = (page.last().map(|stack| stack.id), page.len() as u64 == PAGE);
            found.extend(page);
            if !is_whole {
                break;
            }
            query.marker = last;
        }
        // A stack that was never updated sorts apart from the others.
        found.sort_by_key(|stack| std::cmp::Reverse(stack.updated.unwrap_or(stack.created)));
        Ok(found)
    }
}

/// The resources of a tree that failed by themselves, with their paths.
async fn causes(store: &SqlStore, root: &Stack) -> Result<Vec<(String, Resource)>, Error> {
    let tree = StackQuery { root: Some(root.id), nested: true, ..StackQuery::default() };
    let stacks: Vec<_> = store.stacks(&tree).await?.iter().map(|stack| stack.id).collect();
    let mut causes = Vec::new();
    for row in store.resources_of(&stacks).await? {
        if row.state.status == Status::Failed
            && row.child.is_none()
            && let Some((_, path)) = place(store, row.stack, &row.name).await?
        {
            causes.push((path, row));
        }
    }
    Ok(causes)
}

/// When the last operation of a stack ended, and the ID of the request that began it; empty if it is not known.
async fn last_end(store: &SqlStore, stack: &Stack) -> Result<(Timestamp, String), Error> {
    let query = OperationQuery { of: Operations::OfTree(stack.id), marker: None, limit: Some(1) };
    let last = store.operations(&query).await?.into_iter().next();
    let time = last.as_ref().and_then(|operation| operation.end.as_ref()).map(|end| end.time);
    let time = time.unwrap_or(stack.updated.unwrap_or(stack.created));
    Ok((time, last.map(|operation| operation.request).unwrap_or_default()))
}
