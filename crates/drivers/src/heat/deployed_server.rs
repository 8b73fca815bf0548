//! `OS::Heat::DeployedServer`: a server that was created outside, with an agent for software deployments.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Progress, Step, TypeRules};
use kiln_value::{Map, Value, value};

use super::{agent, push};
use crate::queue;

/// The driver of the type.
pub(super) struct DeployedServer;

/// The next step of the agent's user, until it can collect metadata.
async fn prepare(cx: &Context<'_>) -> Result<Step, Failure> {
    if agent::is_prepared(cx.facts) {
        return Ok(Step::done().id(&cx.facts.id));
    }
    let step = agent::prepare(cx, &[]).await?;
    Ok(match step.progress {
        Progress::Prepared => Step { progress: wait(cx.facts), ..step },
        _ => step,
    })
}

/// Every step stores data: the state only has to differ.
fn wait(facts: &Facts) -> Progress {
    let number = facts.data.len();
    Progress::Wait { state: value!({"agent": number}), after: Duration::ZERO }
}

async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    if agent::has_objects(cx.facts) && !agent::delete(cx).await? {
        return Ok(queue::now("agent"));
    }
    Ok(Step::done())
}

impl TypeRules for DeployedServer {}

#[async_trait]
impl Driver for DeployedServer {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => prepare(cx).await,
            Operation::Update { changed, .. } if changed.contains_key("software_config_transport") => prepare(cx).await,
            Operation::Delete => delete(cx).await,
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, _: &Value) -> Result<Step, Failure> {
        match operation {
            Operation::Delete => delete(cx).await,
            _ => prepare(cx).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(match agent::find(cx).await? {
            Found::Made(step) => Found::Made(Step { progress: wait(cx.facts), ..step }),
            other => other,
        })
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let one = |name: &&str| {
            let value = match *name {
                "name" => name_of(cx.facts).into(),
                "os_collect_config" => agent::collect(cx.facts),
                "show" => value!({
                    "name": (name_of(cx.facts)),
                    "os_collect_config": (agent::collect(cx.facts)),
                }),
                _ => return None,
            };
            Some(((*name).to_owned(), value))
        };
        Ok(names.iter().filter_map(one).collect())
    }

    async fn push_metadata(&self, cx: &Context<'_>) -> Result<(), Failure> {
        push::own(cx).await
    }
}

fn name_of(facts: &Facts) -> &str {
    facts.property("name").as_str().filter(|name| !name.is_empty()).unwrap_or(&facts.physical_name)
}
