//! Waits for events, or polls a service that does not offer this, and updates the progress until an operation is done.

use std::time::Duration;

use kiln_client::reason::moved_from;
use kiln_client::{Client, Error, Event, EventFilter, HookNews, Resource};
use tokio::time::Instant;

use super::screen::Screen;
use super::tree::{News, Tree};

/// Maximum depth of nested stacks to show; Heat's default limit is five.
const DEPTH: u32 = 10;
/// How long the service may be unavailable.
const PATIENCE: Duration = Duration::from_mins(5);
/// Polling interval while the service is unavailable.
const AGAIN: Duration = Duration::from_secs(1);
/// Time without events after which the health of the service is requested.
const QUIET: Duration = Duration::from_secs(10);
/// Interval at which the tree is redrawn on a terminal.
const FRAME: Duration = Duration::from_millis(100);
/// Seconds that the service waits for an event.
const WAIT: u32 = 10;
/// Events in one list.
const PAGE: u64 = 1_000;
/// Pause between two lists of events.
const PAUSE: Duration = Duration::from_millis(100);
/// Shortest interval at which the service is asked what running resources wait for.
const ASK: Duration = Duration::from_secs(1);
/// The share of the time that it may spend with the answer: one of so many.
const SHARE: u32 = 20;

/// The stack to follow.
#[derive(Clone, Debug)]
pub struct Target {
    /// `name/id`, which also finds deleted stacks.
    identity: String,
    id: String,
    /// The last event before the operation started.
    marker: Option<String>,
    /// When the operation began: with the command, or before it by the service's clock.
    began: Instant,
    /// The time of the event of its start, if that was before the command.
    start: Option<String>,
    /// Whether the event of the operation's start has been read.
    is_started: bool,
    /// The action of a later request, which replaced the operation.
    superseded: Option<String>,
    /// When the service is asked next what running resources wait for.
    asks: Instant,
    tree: Tree,
}

/// The end of an operation.
#[derive(Clone, Debug)]
pub struct End {
    /// Action and status of the stack.
    pub status: String,
    /// Reason of the status.
    pub reason: String,
    /// The action of a later request, if one replaced the operation.
    pub superseded: Option<String>,
    /// The progress tree.
    pub tree: Tree,
}

impl End {
    /// Whether the operation succeeded.
    pub fn is_complete(&self) -> bool {
        self.status.ends_with("_COMPLETE")
    }
}

impl Target {
    /// A stack that was just created.
    pub fn created(name: &str, id: &str) -> Self {
        let (identity, id) = (format!("{name}/{id}"), id.to_owned());
        let tree = Tree::new(name, &id);
        Self {
            tree,
            identity,
            id,
            marker: None,
            began: Instant::now(),
            start: None,
            is_started: false,
            superseded: None,
            asks: Instant::now() + ASK,
        }
    }

    /// The same with the number of resources that are planned, if it is known.
    #[must_use]
    pub fn planned(mut self, resources: Option<usize>) -> Self {
        self.tree.plan(resources.unwrap_or_default());
        self
    }

    /// A stack with its running operation, from the beginning of that, if there is one.
    pub async fn running(client: &Client, stack: &str) -> Result<Self, Error> {
        let stack = client.stack(stack, false).await?;
        let mut target = Self::created(stack.name(), stack.id());
        let newest = EventFilter { limit: Some(PAGE), descending: true, ..EventFilter::default() };
        let events = client.events(&target.identity, &newest).await?;
        let start =
            events.iter().find(|event| target.starts(event)).filter(|_| stack.status().ends_with("_IN_PROGRESS"));
        target.start = start.map(|start| start.time().to_owned());
        target.marker = start.or(events.first()).map(|event| event.id().to_owned());
        target.is_started = start.is_some();
        target.look(client).await?;
        if start.is_none_or(|start| start.status() != "CREATE_IN_PROGRESS") {
            target.tree.settle();
        }
        Ok(target)
    }

    /// Whether an event is the start of an operation on the stack itself. A rollback is a part of one.
    fn starts(&self, event: &Event) -> bool {
        let is_own = event.is_of_stack() && event.stack_id() == self.id;
        is_own && event.status().ends_with("_IN_PROGRESS") && !event.status().starts_with("ROLLBACK")
    }

    /// An existing stack, before an operation is requested. `partly`: resources without events count as done.
    pub async fn existing(client: &Client, stack: &str, partly: bool) -> Result<Self, Error> {
        let stack = client.stack(stack, false).await?;
        let mut target = Self::created(stack.name(), stack.id());
        let newest = EventFilter { limit: Some(1), descending: true, ..EventFilter::default() };
        target.marker = client.events(&target.identity, &newest).await?.first().map(|event| event.id().to_owned());
        target.look(client).await?;
        if partly {
            target.tree.settle();
        }
        Ok(target)
    }

    /// `name/id` of the stack.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Loads the resources of the stack.
    async fn look(&mut self, client: &Client) -> Result<(), Error> {
        for resource in client.resources(&self.identity, DEPTH, false, &vec![]).await? {
            self.tree.learn(&presence(&resource, &self.id));
        }
        Ok(())
    }

    /// Processes new events. Returns whether the operation of the stack itself has ended.
    async fn listen(&mut self, client: &Client, screen: &Screen) -> Result<bool, Error> {
        let mut ended = false;
        loop {
            let (more, end) = self.listen_to_page(client, screen).await?;
            ended = end.unwrap_or(ended);
            if !more {
                return Ok(ended);
            }
        }
    }

    /// Processes a page of new events. Returns whether there may be more, and whether the operation has ended, if the
    /// page says so.
    async fn listen_to_page(&mut self, client: &Client, screen: &Screen) -> Result<(bool, Option<bool>), Error> {
        let (nested_depth, marker, limit) = (DEPTH, self.marker.clone(), Some(PAGE));
        let filter = EventFilter { nested_depth, marker, limit, ..EventFilter::default() };
        let events = client.events(&self.identity, &filter).await?;
        let unknown = |event: &Event| !event.is_of_stack() && !self.tree.knows(event.stack_id(), event.resource_name());
        if self.tree.count().all == 0 || events.iter().any(unknown) {
            self.look(client).await?;
        }
        let newest = events.last().map(Event::time).unwrap_or_default().to_owned();
        if let Some(start) = &self.start {
            let passed = Instant::now().checked_sub(apart(start, &newest));
            self.began = passed.map_or(self.began, |began| began.min(self.began));
        }
        let now = self.began.elapsed();
        let mut ended = None;
        for event in &events {
            if event.is_of_preflight() {
                screen.note(event.reason());
                continue;
            }
            if self.starts(event) {
                if self.is_started {
                    let action = event.status().trim_end_matches("_IN_PROGRESS").to_owned();
                    screen.note(&format!("another request has replaced this operation: {action}"));
                    self.superseded = Some(action);
                }
                self.is_started = true;
            }
            if event.is_of_stack() {
                if event.stack_id() == self.id {
                    ended = Some(event.status().ends_with("_COMPLETE") || event.status().ends_with("_FAILED"));
                    if event.status() == "ROLLBACK_IN_PROGRESS" {
                        self.tree.roll_back();
                    }
                }
                continue;
            }
            // The service's clock determines the time between events of one poll.
            let news = news_of_event(event, &self.id, now.saturating_sub(apart(event.time(), &newest)));
            if let Some(from) = moved_from(event.reason()) {
                if self.tree.rename(&news.stack, from, &news.name) {
                    screen.moved(&self.tree, &news, from);
                }
                continue;
            }
            let is_new = match event.hook() {
                // Its status is that of the resource before the operation.
                Some(HookNews::Reached(_)) => self.tree.wait(&news.stack, &news.name, &news.reason),
                Some(HookNews::Cleared(_) | HookNews::Left) => self.tree.wait(&news.stack, &news.name, ""),
                None => self.tree.apply(&news),
            };
            if is_new {
                screen.tell(&self.tree, &news);
            }
        }
        if let Some(last) = events.last() {
            self.marker = Some(last.id().to_owned());
        }
        // A service may ignore the limit.
        Ok((u64::try_from(events.len()).is_ok_and(|count| count == PAGE), ended))
    }
}

impl Target {
    /// Reads what running resources wait for, which no event says: Kiln writes it into the reason of the resource.
    async fn ask(&mut self, client: &Client, screen: &Screen) {
        if Instant::now() < self.asks {
            return;
        }
        let asked = Instant::now();
        let running = vec![("status".to_owned(), "IN_PROGRESS".to_owned())];
        let resources = client.resources(&self.identity, DEPTH, false, &running).await.unwrap_or_default();
        self.asks = Instant::now() + (asked.elapsed() * SHARE).max(ASK);
        for resource in resources {
            let reason = if resource.reason() == "state changed" { "" } else { resource.reason() };
            let (status, reason) = (resource.status().to_owned(), reason.to_owned());
            let news = News { status, reason, at: self.began.elapsed(), ..presence(&resource, &self.id) };
            if self.tree.wait(&news.stack, &news.name, &news.reason) {
                screen.tell(&self.tree, &news);
            }
        }
    }

    /// Waits for the next event. Returns false if the service does not offer to wait, or is not available.
    async fn news(&mut self, client: &Client, screen: &Screen) -> bool {
        let next =
            EventFilter { nested_depth: DEPTH, marker: self.marker.clone(), limit: Some(1), ..EventFilter::default() };
        let identity = self.identity.clone();
        let waited = async {
            let waited = client.awaited_events(&identity, &next, WAIT).await;
            // The events of a busy stack are listed together.
            tokio::time::sleep(PAUSE).await;
            waited
        };
        let mut waited = std::pin::pin!(waited);
        loop {
            if screen.is_live() {
                screen.show(&self.tree, self.began.elapsed());
            }
            tokio::select! {
                waited = &mut waited => return matches!(waited, Ok(Some(_))),
                () = tokio::time::sleep(FRAME), if screen.is_live() => {}
                () = tokio::time::sleep_until(self.asks) => self.ask(client, screen).await,
            }
        }
    }
}

/// Follows the stack until no operation is running. `rollback`: a rollback may follow a failure.
pub async fn follow(
    client: &Client,
    mut target: Target,
    screen: &Screen,
    poll: Duration,
    rollback: bool,
) -> Result<End, Error> {
    target.began = Instant::now();
    let mut quiet = 0;
    let mut failed_once = false;
    let (mut outage, mut silence) = (Outage::default(), Silence::new(target.began));
    let mut waits = true;
    loop {
        let ended = match target.listen(client, screen).await {
            Ok(ended) => ended,
            Err(error) if error.is_not_found() => return Ok(gone(target, screen)),
            Err(error) => {
                outage.tolerate(error, screen)?;
                rest(&target.tree, screen, poll.max(AGAIN), target.began).await;
                continue;
            }
        };
        outage.over();
        if !ended {
            silence.listen(client, target.marker.as_deref(), screen).await;
            target.ask(client, screen).await;
        }
        quiet = if ended { 2 } else { quiet + 1 };
        if quiet >= 2 || target.tree.status.is_empty() {
            let stack = match client.stack(&target.identity, false).await {
                Ok(stack) => stack,
                Err(error) if error.is_not_found() => return Ok(gone(target, screen)),
                Err(error) => {
                    outage.tolerate(error, screen)?;
                    rest(&target.tree, screen, poll.max(AGAIN), target.began).await;
                    continue;
                }
            };
            let has_ended = !stack.status().ends_with("_IN_PROGRESS");
            if has_ended {
                // The operation may have ended after its events were read.
                target.listen(client, screen).await.ok();
            }
            if target.tree.status != stack.status() {
                stack.status().clone_into(&mut target.tree.status);
                screen.tell_status(&target.tree, target.began.elapsed());
            }
            let at_rest = quiet >= 2 && has_ended;
            let may_turn = rollback && stack.status().ends_with("_FAILED") && !failed_once;
            if at_rest && !may_turn {
                screen.finish(&target.tree, target.began.elapsed());
                let (status, reason) = (stack.status().to_owned(), stack.reason().to_owned());
                return Ok(End { status, reason, superseded: target.superseded, tree: target.tree });
            }
            failed_once = at_rest;
            quiet = 0;
        }
        // Only a running operation has events to wait for.
        if waits && target.marker.is_some() && target.tree.status.ends_with("_IN_PROGRESS") {
            waits = target.news(client, screen).await;
        } else {
            rest(&target.tree, screen, poll, target.began).await;
        }
    }
}

/// A temporary outage of the service, for example during a restart.
#[derive(Default)]
struct Outage {
    since: Option<Instant>,
}

impl Outage {
    /// Ignores a temporary error for some time and prints one note.
    fn tolerate(&mut self, error: Error, screen: &Screen) -> Result<(), Error> {
        if !error.is_passing() {
            return Err(error);
        }
        let now = Instant::now();
        match self.since {
            Some(since) if now.duration_since(since) > PATIENCE => Err(error),
            Some(_) => Ok(()),
            None => {
                screen.note(&format!("{error}; still waiting"));
                self.since = Some(now);
                Ok(())
            }
        }
    }

    fn over(&mut self) {
        self.since = None;
    }
}

/// A period without events; perhaps no engine is running.
struct Silence {
    marker: Option<String>,
    since: Instant,
    told: bool,
}

impl Silence {
    fn new(now: Instant) -> Self {
        Self { marker: None, since: now, told: false }
    }

    /// After some time without events, checks once whether an engine is running.
    async fn listen(&mut self, client: &Client, marker: Option<&str>, screen: &Screen) {
        if self.marker.as_deref() != marker {
            *self = Self { marker: marker.map(str::to_owned), since: Instant::now(), told: false };
        }
        if self.told || self.since.elapsed() < QUIET {
            return;
        }
        self.told = true;
        if client.health().await.is_some_and(|health| health.contains("engine: down")) {
            screen.note("no engine of the service is running: the operation continues when one is started");
        }
    }
}

/// The stack was deleted.
fn gone(mut target: Target, screen: &Screen) -> End {
    "DELETE_COMPLETE".clone_into(&mut target.tree.status);
    screen.tell_status(&target.tree, target.began.elapsed());
    screen.finish(&target.tree, target.began.elapsed());
    let status = target.tree.status.clone();
    End { status, reason: String::new(), superseded: target.superseded, tree: target.tree }
}

/// Waits until the next poll and redraws the tree meanwhile.
async fn rest(tree: &Tree, screen: &Screen, poll: Duration, began: Instant) {
    let until = Instant::now() + poll;
    if !screen.is_live() {
        return tokio::time::sleep_until(until).await;
    }
    loop {
        screen.show(tree, began.elapsed());
        let next = (Instant::now() + FRAME).min(until);
        tokio::time::sleep_until(next).await;
        if next == until {
            return;
        }
    }
}

/// News about the existence of a resource. Events report its status.
fn presence(resource: &Resource, root: &str) -> News {
    let nested = resource.nested().and_then(|identity| identity.rsplit('/').next());
    News {
        stack: or_root(resource.stack_id(), root),
        name: resource.name().to_owned(),
        kind: resource.kind().to_owned(),
        nested: nested.unwrap_or_default().to_owned(),
        required_by: resource.required_by().map(str::to_owned).collect(),
        ..News::default()
    }
}

fn news_of_event(event: &Event, root: &str, at: Duration) -> News {
    News {
        stack: or_root(event.stack_id(), root),
        name: event.resource_name().to_owned(),
        status: event.status().to_owned(),
        reason: event.reason().to_owned(),
        physical: event.physical_id().to_owned(),
        at,
        ..News::default()
    }
}

fn or_root(stack: &str, root: &str) -> String {
    if stack.is_empty() { root } else { stack }.to_owned()
}

/// The time between an event and the newest event, by the service's clock.
fn apart(time: &str, newest: &str) -> Duration {
    let parsed = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let (Some(time), Some(newest)) = (parsed(time), parsed(newest)) else { return Duration::ZERO };
    Duration::try_from(newest.duration_since(time)).unwrap_or_default()
}
