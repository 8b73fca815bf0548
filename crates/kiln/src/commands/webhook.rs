//! `kiln webhook …`: URLs to which events of a project are sent.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kiln_client::DeliveryFilter;
use kiln_console::output::{Format, List, OutputArgs, print};
use kiln_value::{Map, Value};

use super::confirm::ConfirmArgs;
use super::stack::entries;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for webhooks.
    WebhookCommand {
        Create(CreateArgs),
        List(ListArgs),
        Show(ShowArgs),
        Set(SetArgs),
        Rotate(RotateArgs),
        Test(TestArgs),
        Deliveries(DeliveriesArgs),
        Redeliver(RedeliverArgs),
        Delete(DeleteArgs),
    }
}

/// Send events of the project's stacks, plans and guards to a URL
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Prints the key of the signatures, which is not shown again.

Examples:
  kiln webhook create https://ci.example.com/heat
  kiln webhook create https://chat.example.com/hook --event 'stack.*.error' --stack web")]
pub(crate) struct CreateArgs {
    /// URL of the receiver
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    terms: TermsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What is sent, and to whom.
#[derive(Args, Debug)]
struct TermsArgs {
    /// Type of the events to send: stack.*, stack.*.error, resource.*, plan.*, guard.*, drift.* or '*'; may be repeated [default: all
    /// except resource.*]
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<String>,
    /// Only events of the stack with this name or ID, and of its nested stacks
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Send without asking the receiver whether it takes events, if the operator allows that
    #[arg(long)]
    no_handshake: bool,
}

/// List the webhooks of the project
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a webhook
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Change, enable or disable a webhook
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
#[command(after_help = "\
Examples:
  kiln webhook set WEBHOOK --event 'stack.*' --event 'resource.*.error'
  kiln webhook set WEBHOOK --enable       after it was disabled because nothing could be delivered")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct SetArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    /// URL of the receiver
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    terms: TermsArgs,
    /// Ask the receiver whether it takes events
    #[arg(long, conflicts_with = "no_handshake")]
    handshake: bool,
    /// Events of all stacks of the project
    #[arg(long, conflicts_with = "stack")]
    all_stacks: bool,
    /// Send events again
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Send nothing; events that happen meanwhile are not kept
    #[arg(long)]
    disable: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Replace the key of the signatures; for a day, the present one signs too
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct RotateArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Send a test event, and wait for its delivery
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct TestArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// List the deliveries of the last three days, newest first
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln webhook deliveries WEBHOOK
  kiln webhook deliveries WEBHOOK --outcome failed -f json")]
pub(crate) struct DeliveriesArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    /// Only these
    #[arg(long)]
    outcome: Option<Outcomes>,
    /// Maximum number of deliveries
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: u64,
    /// Only deliveries before the one with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// How deliveries stand.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Outcomes {
    /// They are being sent, or wait for the next attempt.
    Pending,
    /// The receiver has them.
    Delivered,
    /// They were given up.
    Failed,
}

/// Send deliveries again
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
#[command(after_help = "\
Example:
  kiln webhook redeliver WEBHOOK --failed     all that were given up, the oldest first")]
pub(crate) struct RedeliverArgs {
    /// ID of the webhook
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    /// IDs of the deliveries
    #[arg(value_name = "DELIVERY", required_unless_present = "failed")]
    deliveries: Vec<String>,
    /// All that were given up
    #[arg(long, conflicts_with = "deliveries")]
    failed: bool,
}

/// Delete webhooks; what waits for them is not sent
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    /// IDs of the webhooks
    #[arg(value_name = "WEBHOOK", required = true)]
    webhooks: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("URL", "url"),
    ("Events", "events"),
    ("Enabled", "enabled"),
    ("Failing Since", "failing_since"),
    ("Description", "description"),
];
const DELIVERY_COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Sequence", "sequence"),
    ("Type", "type"),
    ("Outcome", "outcome"),
    ("Attempts", "attempts"),
    ("Status", "status"),
    ("Milliseconds", "milliseconds"),
    ("Tried At", "tried_at"),
    ("Error", "error"),
];

impl TermsArgs {
    fn terms(self, url: Option<String>) -> Map {
        let mut terms = Map::new();
        let texts = [("url", url), ("stack", self.stack), ("description", self.description)];
        terms.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into()))));
        if !self.events.is_empty() {
            terms.insert("events".to_owned(), self.events.into_iter().map(Value::from).collect());
        }
        if self.no_handshake {
            terms.insert("handshake".to_owned(), false.into());
        }
        terms
    }
}

impl CreateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let stack = self.terms.stack.clone();
        let made = connection.client.create_webhook(self.terms.terms(Some(self.url))).await;
        let made = made.map_err(|error| of_stack(stack.as_deref(), error))?;
        Ok(self.output.one(entries(made), Format::Table)?)
    }
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let webhooks = connection.client.webhooks().await?;
        Ok(self.output.list(List::of(&webhooks, COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let webhook = connection.client.webhook(&self.webhook).await.map_err(of_webhook(&self.webhook))?;
        Ok(self.output.one(entries(webhook), Format::Table)?)
    }
}

impl SetArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let stack = self.terms.stack.clone();
        let mut terms = self.terms.terms(self.url);
        if self.handshake {
            terms.insert("handshake".to_owned(), true.into());
        }
        if self.all_stacks {
            terms.insert("stack".to_owned(), Value::Null);
        }
        if self.enable || self.disable {
            terms.insert("enabled".to_owned(), self.enable.into());
        }
        let changed = connection.client.change_webhook(&self.webhook, terms).await;
        let changed = changed.map_err(|error| match &stack {
            Some(_) => of_stack(stack.as_deref(), error),
            None => of_webhook(&self.webhook)(error),
        })?;
        Ok(self.output.one(entries(changed), Format::Table)?)
    }
}

impl RotateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let rotated = connection.client.rotate_webhook_key(&self.webhook).await.map_err(of_webhook(&self.webhook))?;
        Ok(self.output.one(entries(rotated), Format::Table)?)
    }
}

impl TestArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (client, of_it) = (&connection.client, of_webhook(&self.webhook));
        let id = client.test_webhook(&self.webhook).await.map_err(&of_it)?;
        let filter = DeliveryFilter { limit: Some(100), ..DeliveryFilter::default() };
        let mut last = None;
        for _ in 0..=self.timeout.saturating_mul(2) {
            let deliveries = client.webhook_deliveries(&self.webhook, &filter).await.map_err(&of_it)?;
            last = deliveries.into_iter().find(|delivery| delivery.str_at("id") == Some(&id));
            let tried = last.as_ref().is_some_and(|last| last.str_at("error").is_some());
            if tried || last.as_ref().and_then(|last| last.str_at("outcome")) == Some("delivered") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let Some(last) = last else {
            let failure = Failure::new(format!("The test event {id} was not sent within {} s", self.timeout));
            return Err(failure.hint("no engine has taken it: is [webhooks] enabled set for the engines too?"));
        };
        let error = last.str_at("error").map(str::to_owned);
        let is_delivered = last.str_at("outcome") == Some("delivered");
        self.output.one(entries(last), Format::Table)?;
        match error {
            Some(error) => Err(Failure::new(format!("The test event was not delivered: {error}"))),
            None if is_delivered => Ok(()),
            None => Err(Failure::new("The test event waits behind earlier events")
                .hint(format!("run 'kiln webhook deliveries {}' to see why these are not delivered", self.webhook))),
        }
    }
}

impl DeliveriesArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let outcome = self.outcome.and_then(|outcome| outcome.to_possible_value());
        let filter = DeliveryFilter {
            outcome: outcome.map(|outcome| outcome.get_name().to_owned()),
            limit: Some(self.limit),
            marker: self.marker,
        };
        let found = connection.client.webhook_deliveries(&self.webhook, &filter).await;
        let found = found.map_err(of_webhook(&self.webhook))?;
        Ok(self.output.list(List::of(&found, DELIVERY_COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl RedeliverArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (client, of_it) = (&connection.client, of_webhook(&self.webhook));
        let mut ids = self.deliveries;
        if self.failed {
            let filter = DeliveryFilter { outcome: Some("failed".to_owned()), ..DeliveryFilter::default() };
            let failed = client.webhook_deliveries(&self.webhook, &filter).await.map_err(&of_it)?;
            ids.extend(failed.iter().filter_map(|one| one.str_at("id")).map(str::to_owned));
            // The oldest first: they are sent in the order of the requests.
            ids.reverse();
        }
        let mut text = String::new();
        for id in &ids {
            client.redeliver(&self.webhook, id).await?;
            _ = writeln!(text, "{id} is sent again");
        }
        Ok(print(&text)?)
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        self.confirm.if_demanded("Are you sure you want to delete these webhooks [y/N]? ").await?;
        for id in &self.webhooks {
            connection.client.delete_webhook(id).await.map_err(of_webhook(id))?;
        }
        Ok(())
    }
}

fn of_stack(stack: Option<&str>, error: kiln_client::Error) -> Failure {
    match stack {
        Some(stack) => super::stack::of_stack(stack)(error),
        None => error.into(),
    }
}

fn of_webhook(id: &str) -> impl Fn(kiln_client::Error) -> Failure {
    move |error| {
        if error.is_not_found() {
            Failure::new(format!("Webhook not found: {id}")).hint("run 'kiln webhook list' to list the webhooks")
        } else {
            error.into()
        }
    }
}
