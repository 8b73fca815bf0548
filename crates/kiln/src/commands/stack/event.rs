//! `kiln stack event …`.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use kiln_client::{Event, EventFilter, EventPaths};
use kiln_console::output::{Cell, Format, List, Look, OutputArgs};
use kiln_value::{Class, Value};

use super::resource::located;
use super::{StackArg, filters, list, of_stack};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Polling interval for new events.
const FOLLOW: Duration = Duration::from_secs(2);
/// Pause between two lists of events.
const PAUSE: Duration = Duration::from_millis(100);
/// Seconds that the service waits for an event.
const WAIT: u32 = 30;

group! {
    /// `stack event …`.
    EventCommand {
        List(ListArgs),
        Show(ShowArgs),
    }
}

/// List events, oldest first
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack event list web                        print as a log
  kiln stack event list --nested-depth 3 web -f json
  kiln stack event list --resource server --filter resource_status=CREATE_COMPLETE web
  kiln stack event list --follow web               print new events until Ctrl-C or its deletion")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    stack: StackArg,
    /// Only events of this resource; 'group/0/server' is one of a nested stack
    #[arg(long, value_name = "RESOURCE", conflicts_with = "nested_depth")]
    resource: Option<String>,
    /// Only events with this property; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    filter: Vec<String>,
    /// Maximum number of events
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only events after the event with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    /// Include events of nested stacks down to this depth
    #[arg(long, value_name = "DEPTH", default_value_t = 0, hide_default_value = true)]
    nested_depth: u32,
    /// Sort by this key, with ':desc' for descending order; ':desc' alone sorts by time; may be repeated
    #[arg(long, value_name = "KEY[:DIRECTION]")]
    sort: Vec<String>,
    /// Print new events until Ctrl-C or the deletion of the stack
    #[arg(long)]
    follow: bool,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = &self.stack;
        let (stack, resource) = match &self.resource {
            Some(resource) => {
                let (stack, name) = located(&connection.client, stack, resource).await?;
                (stack, Some(name))
            }
            None => (stack.clone(), None),
        };
        let stack = stack.as_str();
        let mut order = Vec::new();
        for sort in &self.sort {
            match sort.strip_prefix(':') {
                Some(direction) => order.push(format!("event_time:{direction}")),
                None => order.push(sort.clone()),
            }
        }
        let mut filter = EventFilter {
            resource,
            nested_depth: self.nested_depth,
            properties: filters(&self.filter)?,
            marker: self.marker.clone(),
            limit: self.limit,
            sort_keys: vec![],
            descending: order.first().is_some_and(|first| first.ends_with(":desc")),
        };
        let log = output.format.is_none_or(|format| format == Format::Log);
        if self.follow {
            if !log {
                return Err(Failure::new("--follow can only be specified with --format log"));
            }
            return follow(connection, stack, filter).await;
        }
        filter.sort_keys = self
            .sort
            .iter()
            .filter_map(|sort| sort.split(':').next())
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
            .collect();
        let events = match connection.client.events(stack, &filter).await {
            // No event of the resource passes the filters. Another class says that there is no such stack.
            Err(error) if error.class() == Some(&Class::HTTPNotFound) => Vec::new(),
            events => events.map_err(of_stack(stack))?,
        };
        let mut values: Vec<&Value> = events.iter().map(Event::value).collect();
        list::sort(&mut values, &order.join(","))?;
        let events: Vec<Event> = values.into_iter().cloned().map(Event).collect();
        if log {
            write(&mut EventPaths::default(), &events);
            return Ok(());
        }
        Ok(output.list(table(&events, stack, self.nested_depth > 0), Format::Table)?)
    }
}

fn table(events: &[Event], stack: &str, nested: bool) -> List {
    let mut columns = vec!["id", "resource_status", "resource_status_reason", "event_time", "physical_resource_id"];
    if nested {
        columns.push("stack_name");
    }
    if !events.is_empty() {
        columns.insert(0, "resource_name");
        columns.push("logical_resource_id");
    }
    let cell = |event: &Event, name: &str| match name {
        "stack_name" => Cell::from(event.stack_name().unwrap_or(stack)),
        name => Cell::from(event.value().get(name).cloned()),
    };
    let rows = events.iter().map(|event| columns.iter().map(|name| cell(event, name)).collect()).collect();
    List { rows, columns: columns.into_iter().map(str::to_owned).collect() }
}

async fn follow(connection: &Connection, stack: &str, mut filter: EventFilter) -> Outcome {
    let mut paths = EventPaths::default();
    // A deleted stack is found by its ID only.
    let identity = connection.client.stack_identity(stack).await.map_err(of_stack(stack))?;
    let id = identity.rsplit('/').next().unwrap_or_default();
    loop {
        let events = match connection.client.events(&identity, &filter).await {
            Err(error) if error.is_not_found() && filter.marker.is_some() => return Ok(()),
            events => events.map_err(of_stack(stack))?,
        };
        if let Some(last) = events.last() {
            filter.marker = Some(last.id().to_owned());
            write(&mut paths, &events);
        }
        let is_end = |event: &Event| event.physical_id() == id && event.status() == "DELETE_COMPLETE";
        if events.iter().any(is_end) {
            return Ok(());
        }
        tokio::select! {
            () = next(connection, &identity, &filter) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

/// Waits for the next event; for some time, if the service does not offer to wait.
async fn next(connection: &Connection, stack: &str, filter: &EventFilter) {
    let first = EventFilter { limit: Some(1), ..filter.clone() };
    let waited = match filter.marker {
        Some(_) => connection.client.awaited_events(stack, &first, WAIT).await,
        None => Ok(None),
    };
    // The events of a busy stack are listed together.
    tokio::time::sleep(if let Ok(Some(_)) = waited { PAUSE } else { FOLLOW }).await;
}

fn write(paths: &mut EventPaths, events: &[Event]) {
    let mut out = std::io::stdout().lock();
    for event in events {
        let (time, id) = (event.time().replace('T', " "), event.id());
        let (path, status, reason) = (paths.of(event), event.status(), event.reason());
        // The reader, such as `head`, closed the pipe.
        if writeln!(out, "{time} {id} [{path}]: {status}  {reason}").is_err() {
            return;
        }
    }
}

/// Show an event with the properties of the resource at that time
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// ID of the event
    #[arg(value_name = "EVENT")]
    event: String,
    #[command(flatten)]
    output: OutputArgs,
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (stack, name) = located(&connection.client, &self.stack, &self.resource).await?;
        let event = connection.client.event(&stack, &name, &self.event).await?;
        let one = event.entries().into_iter().flatten().map(|(name, value)| {
            let look = match name.as_str() {
                "links" => Look::Links,
                "resource_properties" => Look::Json,
                _ => Look::Plain,
            };
            (name.clone(), Cell::with(value, look))
        });
        Ok(self.output.one(one.collect(), Format::Table)?)
    }
}
