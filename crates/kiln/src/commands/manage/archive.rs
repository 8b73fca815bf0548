//! The archive of purged stacks: a file of JSON Lines, one stack a line.
//!
//! A line is on the disk before its stack is purged. A process that is killed in between leaves a stack that is archived and still
//! stored; the next one purges it without another line.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use kiln_resource::Resource;
use kiln_server::owner_only;
use kiln_store::{
    Event, EventQuery, Operation, OperationQuery, OperationStore as _, Operations, SqlStore, Stack, StackId, Store as _,
};
use kiln_value::{Value, text, value};

/// Stacks that are archived and purged together.
const STACKS: u64 = 20;
/// How each line begins.
const BEGIN: &[u8] = b"{\"id\": \"";
/// Events that are read at a time.
const EVENTS: u64 = 1_000;

/// An open archive, of which this process is the only writer.
pub(super) struct Archive {
    file: BufWriter<File>,
    /// The stacks in it.
    known: BTreeSet<StackId>,
}

impl Archive {
    /// Opens the file or creates it. A line that a killed process has left unfinished is removed.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path).with_context(place)?;
        if file.try_lock().is_err() {
            bail!("{}: another process writes to it", place());
        }
        owner_only::restrict(path, 0o600).with_context(place)?;
        let (known, end) = lines(&file).with_context(place)?;
        file.set_len(end).with_context(place)?;
        Ok(Self { file: BufWriter::new(file), known })
    }

    /// Archives and purges the stacks that were deleted before a time. Returns the number of stacks and of rows.
    pub(super) async fn purge(&mut self, store: &SqlStore, before: Timestamp) -> Result<(usize, u64)> {
        let (mut stacks, mut rows) = (0, 0);
        loop {
            let some = store.purgeable(before, STACKS).await?;
            if some.is_empty() {
                return Ok((stacks, rows));
            }
            for id in &some {
                // Another process may have purged it.
                if let Some(stack) = store.stack(*id).await?.filter(|_| self.known.insert(*id)) {
                    self.add(store, &stack)
                        .await
                        .context("the archive cannot be written; its last stack is not purged")?;
                    stacks += 1;
                }
            }
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            rows += store.purge_these(&some).await?;
        }
    }

    async fn add(&mut self, store: &SqlStore, stack: &Stack) -> Result<()> {
        let mut line = of_stack(stack);
        let resources: Value = store.resources(stack.id).await?.iter().map(of_resource).collect();
        let query = OperationQuery { of: Operations::OfTree(stack.root), marker: None, limit: None };
        let operations = store.operations(&query).await?;
        let operations: Value = operations.iter().filter(|one| one.stack == stack.id).map(of_operation).collect();
        if let Some(line) = line.as_map_mut() {
            line.insert("resources".to_owned(), resources);
            line.insert("operations".to_owned(), operations);
        }
        // Events are last, because there may be any number.
        let line = text::json(&line);
        let line = line.strip_suffix('}').unwrap_or(&line);
        write!(self.file, "{line}, \"events\": [")?;
        let mut query = EventQuery { stacks: vec![stack.id], limit: Some(EVENTS), ..EventQuery::default() };
        loop {
            let events = store.events(&query).await?;
            for event in &events {
                let comma = if query.marker.is_some() { ", " } else { "" };
                write!(self.file, "{comma}{}", text::json(&of_event(event)))?;
                query.marker = Some(event.id);
            }
            if (events.len() as u64) < EVENTS {
                break;
            }
        }
        Ok(self.file.write_all(b"]}\n")?)
    }
}

/// The stacks in the finished lines of an archive, and the length of these lines.
fn lines(file: &File) -> Result<(BTreeSet<StackId>, u64)> {
    let (mut known, mut end) = (BTreeSet::new(), 0);
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            if !line.starts_with(BEGIN) && !BEGIN.starts_with(&line) {
                bail!("line {number} is no stack: the file is no archive");
            }
            break;
        }
        let stack: Option<serde_json::Value> = serde_json::from_slice(&line).ok();
        let id = stack.and_then(|stack| stack["id"].as_str()?.parse().ok());
        known.insert(id.with_context(|| format!("line {number} is no stack: the file is no archive"))?);
        end += length as u64;
    }
    Ok((known, end))
}

fn of_stack(stack: &Stack) -> Value {
    value!({
        "id": (stack.id.to_string()),
        "name": (stack.name.as_str()),
        "project": (stack.project.as_str()),
        "root": (stack.root.to_string()),
        "parent": (stack.parent.as_ref().map(|parent| parent.stack.to_string())),
        "parent_resource": (stack.parent.as_ref().map(|parent| parent.resource_name.clone())),
        "user_id": (stack.user_id.as_str()),
        "username": (stack.username.as_str()),
        "tags": (stack.tags.clone()),
        "status": (stack.state.to_string()),
        "status_reason": (stack.reason.as_str()),
        "created": (stack.created.to_string()),
        "updated": (stack.updated.map(|time| time.to_string())),
        "deleted": (stack.deleted.map(|time| time.to_string())),
    })
}

fn of_resource(row: &Resource) -> Value {
    value!({
        "name": (row.name.as_str()),
        "type": (row.resource_type.as_str()),
        "physical_id": (row.physical_id.clone()),
        "status": (row.state.to_string()),
        "status_reason": (row.reason.as_str()),
        "created": (row.created.to_string()),
        "updated": (row.updated.to_string()),
    })
}

fn of_operation(operation: &Operation) -> Value {
    let (author, end) = (operation.author.as_ref(), operation.end.as_ref());
    value!({
        "id": (operation.id.to_string()),
        "action": (operation.action.as_str()),
        "user_id": (author.map(|author| author.user_id.clone())),
        "username": (author.map(|author| author.username.clone())),
        "request_id": (operation.request.as_str()),
        "begun": (operation.begun.to_string()),
        "ended": (end.map(|end| end.time.to_string())),
        "status": (end.map(|end| end.status.as_str())),
        "status_reason": (end.map(|end| end.reason.clone())),
    })
}

/// Without its properties: those of nested stacks are masked only when they are read through the API.
fn of_event(event: &Event) -> Value {
    value!({
        "id": (event.id.to_string()),
        "time": (event.time.to_string()),
        "resource": (event.resource_name.as_str()),
        "type": (event.resource_type.as_str()),
        "physical_id": (event.physical_id.clone()),
        "action": (event.action.as_str()),
        "status": (event.status.as_str()),
        "status_reason": (event.reason.as_str()),
        "operation": (event.operation.map(|id| id.to_string())),
    })
}
