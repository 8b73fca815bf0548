//! OS::Nova::Server

mod attributes;
mod block_devices;
mod create;
mod image;
mod interfaces;
mod networks;
mod present;
mod update;
pub(crate) mod user_data;
mod validation;

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Listed, Method, Operation, PropertyChange,
    Sibling, Siblings, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use self::networks::INTERNAL_PORTS;
use crate::call::{NOVA, take};
use crate::heat::{agent, push};
use crate::queue::{self, again, wait};
use crate::{path, scheduler_hints};

/// A server.
pub(crate) struct Server;

/// Transient states: Heat waits in all of them.
const ON_ITS_WAY: &[&str] = &[
    "BUILD",
    "HARD_REBOOT",
    "PASSWORD",
    "REBOOT",
    "RESCUE",
    "RESIZE",
    "REVERT_RESIZE",
    "SHUTOFF",
    "SUSPENDED",
    "VERIFY_RESIZE",
];

/// The collectors of the agent in every server of Nova.
const COLLECTORS: &[&str] = &["ec2"];

/// What an operation waits for while Nova does not answer.
const NOVA_AGAIN: &str = "an answer of Nova";

/// Whether the server has an agent for software deployments.
fn needs_agent(facts: &Facts) -> bool {
    facts.property("user_data_format").as_str() == Some("SOFTWARE_CONFIG")
}

/// Waits until the server is active.
fn building() -> Step {
    wait("build")
}

fn server_path(id: &str) -> String {
    format!("/servers/{}", path::segment(id))
}

/// The current server.
async fn show(cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
    let listed = Listed { path: "/servers/detail", list: "servers", member: "server", id: id.to_owned() };
    let request = CloudRequest::new(NOVA.0, Method::Get, server_path(id)).listed(listed);
    Ok(take(cx.cloud.call(request).await?.body, "server"))
}

/// The current server; `None` if Nova is temporarily unable to respond.
async fn peek(cx: &Context<'_>, id: &str) -> Result<Option<Value>, Failure> {
    match show(cx, id).await {
        Ok(server) => Ok(Some(server)),
        Err(failure) if failure.is_passing() => {
            tracing::warn!(id, %failure, "cannot read a server now");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Executes an action on the server.
async fn act(cx: &Context<'_>, id: &str, action: Value) -> Result<Value, Failure> {
    NOVA.post(cx, format!("{}/action", server_path(id)), action).await
}

/// The status; some clouds append another one in parentheses.
fn status(server: &Value) -> &str {
    server.str_at("status").unwrap_or("UNKNOWN").split('(').next().unwrap_or_default()
}

fn task_state(server: &Value) -> Option<&str> {
    server.str_at("OS-EXT-STS:task_state")
}

/// Whether the server is active; an error if the build has failed.
fn is_active(server: &Value, name: &str) -> Result<bool, Failure> {
    match status(server) {
        "ACTIVE" => Ok(true),
        status if ON_ITS_WAY.contains(&status) => Ok(false),
        "ERROR" => {
            let fault = server.get("fault");
            let message = fault.and_then(|f| f.str_at("message")).unwrap_or("Unknown");
            let code = fault.and_then(|f| f.get("code")).map_or_else(|| "Unknown".into(), kiln_value::text::str);
            Err(Failure::in_error("ERROR", &format!("Message: {message}, Code: {code}")))
        }
        status => Err(Failure::unknown_status(&format!("{name} is not active"), status, "Unknown")),
    }
}

async fn set_tags(cx: &Context<'_>, id: &str, tags: &Value) -> Result<(), Failure> {
    let tags = if tags.is_null() { Value::List(Vec::new()) } else { tags.clone() };
    let path = format!("{}/tags", server_path(id));
    let request = kiln_resource::CloudRequest::new(NOVA.0, kiln_resource::Method::Put, path);
    cx.cloud.call(request.body(value!({"tags": tags})).microversion("2.26")).await.map(|_| ())
}

async fn look_after_build(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    let Some(server) = peek(cx, id).await? else { return Ok(again(cx, state, NOVA_AGAIN)) };
    if !is_active(&server, "Server")? {
        return Ok(again(cx, state, format!("the status ACTIVE, not {}", status(&server))));
    }
    if create::is_described(cx.facts, state) {
        create::remove_mark(cx, id).await?;
    }
    let tags = cx.facts.property("tags");
    if tags.is_truthy() {
        set_tags(cx, id, tags).await?;
    }
    Ok(Step::done().answer(server))
}

async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else {
        return delete_agent(cx).await;
    };
    NOVA.delete(cx, server_path(id)).await?;
    Ok(wait("gone"))
}

async fn look_after_delete(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    let server = match peek(cx, id).await {
        Ok(None) => return Ok(again(cx, state, NOVA_AGAIN)),
        Ok(Some(server)) => server,
        Err(failure) if failure.is_not_found() => return delete_agent(cx).await,
        Err(failure) => return Err(failure),
    };
    // The status does not change until the delete ends.
    if task_state(&server) == Some("deleting") {
        return Ok(again(cx, state, "the end of the delete"));
    }
    match status(&server) {
        "DELETED" => return delete_agent(cx).await,
        "SOFT_DELETED" => drop(act(cx, id, value!({"forceDelete": null})).await),
        "ERROR" => {
            let fault = server.get("fault");
            let message = fault.and_then(|f| f.str_at("message")).unwrap_or("Unknown");
            let code = fault.and_then(|f| f.get("code")).map_or_else(|| "None".into(), kiln_value::text::str);
            let name = server.str_at("name").unwrap_or_default();
            return Err(Failure::in_error("ERROR", &format!("Server {name} delete failed: ({code}) {message}")));
        }
        _ => {}
    }
    Ok(again(cx, state, format!("the end of the delete, in the status {}", status(&server))))
}

/// Deletes what the agent has in the cloud, and then the ports. Another attempt at the create gets another user.
async fn delete_agent(cx: &Context<'_>) -> Result<Step, Failure> {
    if !agent::has_objects(cx.facts) {
        return delete_ports(cx).await;
    }
    if !agent::delete(cx).await? {
        return Ok(queue::now("agent"));
    }
    Ok(agent::forget(queue::now("ports")))
}

/// Deletes the ports that Kiln created for the server, including those of interrupted operations.
async fn delete_ports(cx: &Context<'_>) -> Result<Step, Failure> {
    let mut ports = networks::internal_ports(&cx.facts.data);
    if cx.facts.physical_id.is_none() || networks::may_have_ports(cx) {
        let marked = networks::marked(cx).await?;
        ports.extend(marked.iter().filter_map(|port| port.str_at("id").map(str::to_owned)));
        ports.sort_unstable();
        ports.dedup();
    }
    for port in &ports {
        networks::delete_port(cx, port).await?;
    }
    let step = Step::done();
    Ok(if cx.facts.data.contains_key(INTERNAL_PORTS) { step.data(INTERNAL_PORTS, Value::Null) } else { step })
}

async fn check(cx: &Context<'_>) -> Result<Step, Failure> {
    let server = show(cx, cx.facts.require_id()?).await?;
    let status = status(&server);
    if status == "ACTIVE" {
        return Ok(Step::done());
    }
    Err(Failure::other(Class::Error, format!("'status': expected 'ACTIVE', got '{status}'")))
}

/// Suspends or resumes the server.
async fn turn(cx: &Context<'_>, action: &str, wanted: &str) -> Result<Step, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else {
        return Err(Failure::other(Class::Error, format!("Cannot {action} {}, resource_id not set", cx.facts.name)));
    };
    let server = show(cx, id).await.map_err(|failure| {
        let missing = Failure::new(FailureKind::NotFound, Class::NotFound, format!("Failed to find server {id}"));
        if failure.is_not_found() { missing } else { failure }
    })?;
    if status(&server) == wanted {
        return Ok(Step::done());
    }
    act(cx, id, Value::from_iter([(action, Value::Null)])).await?;
    Ok(wait(action))
}

async fn look_after_suspend(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    let Some(server) = peek(cx, id).await? else { return Ok(again(cx, state, NOVA_AGAIN)) };
    match status(&server) {
        "SUSPENDED" => Ok(Step::done()),
        status if status == "ACTIVE" || ON_ITS_WAY.contains(&status) => {
            Ok(again(cx, state, format!("the status SUSPENDED, not {status}")))
        }
        status => {
            let what = format!("Suspend of server {} failed", server.str_at("name").unwrap_or_default());
            Err(Failure::unknown_status(&what, status, "Unknown"))
        }
    }
}

async fn look_after_resume(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    match peek(cx, id).await? {
        None => Ok(again(cx, state, NOVA_AGAIN)),
        Some(server) if is_active(&server, "Server")? => Ok(Step::done()),
        Some(server) => Ok(again(cx, state, format!("the status ACTIVE, not {}", status(&server)))),
    }
}

impl TypeRules for Server {
    /// The validation of `user_data` depends on it.
    fn resolved_first(&self) -> &'static [&'static str] {
        &["user_data_format"]
    }

    fn refreshes_metadata(&self) -> bool {
        true
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        update::needs_replace(change)
    }

    fn destroys_data(&self, properties: &Map, changed: &Map) -> bool {
        update::rebuilds(properties, changed)
    }

    /// Nova stops a server to resize it, and a server loses its connections with an interface.
    fn restarts(&self, changed: &Map) -> bool {
        ["flavor", "networks"].iter().any(|name| changed.contains_key(*name))
    }

    fn scheduler_hints(&self, facts: &Facts) -> Option<Map> {
        Some(scheduler_hints::own(facts))
    }

    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let wanted = interfaces::named_ports(wanted);
        let collide = interfaces::named_ports(held).iter().any(|port| wanted.contains(port));
        if collide { vec!["networks"] } else { Vec::new() }
    }

    fn restored(&self, data: &Map) -> Option<Map> {
        image::restored(data)
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        validation::validate(facts)
    }

    /// The subnet of an interface is unknown: all subnets of its network are created first, and those of unknown
    /// networks too.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let networks = this.properties().get("networks").and_then(Value::as_list).unwrap_or_default();
        if networks.is_empty() {
            return Vec::new();
        }
        let own = |network: &Value| {
            ["network", "uuid"].iter().find_map(|key| network.get(key).filter(|id| !id.is_null()).cloned())
        };
        let own: Vec<Option<Value>> = networks.iter().map(own).collect();
        let may_be_on = |subnet: &&Sibling<'_>| {
            let network = ["network", "network_id"].iter().find_map(|key| subnet.properties().get(*key));
            match network.filter(|network| network.is_truthy()) {
                None => true,
                Some(network) => own.iter().any(|own| own.as_ref().is_none_or(|own| own == network)),
            }
        };
        let subnets = siblings.of_type("OS::Neutron::Subnet").filter(may_be_on);
        subnets.map(|subnet| subnet.name.to_owned()).collect()
    }
}

#[async_trait]
impl Driver for Server {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create if needs_agent(cx.facts) && !agent::is_prepared(cx.facts) => {
                agent::prepare(cx, COLLECTORS).await
            }
            Operation::Create => create::start(cx).await,
            Operation::Update { changed, .. }
                if changed.contains_key("software_config_transport")
                    && needs_agent(cx.facts)
                    && !agent::is_prepared(cx.facts) =>
            {
                agent::prepare(cx, COLLECTORS).await
            }
            Operation::Update { before, changed } => update::start(cx, before, changed).await,
            Operation::Delete => delete(cx).await,
            Operation::Check => check(cx).await,
            Operation::Suspend => turn(cx, "suspend", "SUSPENDED").await,
            Operation::Resume => turn(cx, "resume", "ACTIVE").await,
            Operation::Snapshot => image::start(cx).await,
            Operation::Adopt => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, state: &Value) -> Result<Step, Failure> {
        match state.str_at("stage") {
            // The server may never have been created.
            Some("ports") => return delete_ports(cx).await,
            Some("agent") => return delete_agent(cx).await,
            _ => {}
        }
        let id = cx.facts.require_id()?;
        match state.str_at("stage") {
            Some(queue::STAGE) => queue::poll(&update::ServerTasks, cx, state).await,
            Some("gone") => look_after_delete(cx, id, state).await,
            Some("suspend") => look_after_suspend(cx, id, state).await,
            Some("resume") => look_after_resume(cx, id, state).await,
            Some(image::STAGE) => image::poll(cx, state).await,
            _ => look_after_build(cx, id, state).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if needs_agent(cx.facts) && !agent::is_prepared(cx.facts) {
            return agent::find(cx).await;
        }
        create::find(cx).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        attributes::read(cx, names).await
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = cx.facts.require_id()?;
        let request = CloudRequest::new(NOVA.0, Method::Get, server_path(id)).microversion(present::MICROVERSION);
        let server = take(cx.cloud.call(request).await?.body, "server");
        if matches!(status(&server), "DELETED" | "SOFT_DELETED") {
            return Err(Failure::new(FailureKind::NotFound, Class::NotFound, "the server is deleted"));
        }
        let mut live = self.live_in(cx, &server).await?;
        live.extend(present::in_ports(cx, id).await?);
        Ok(live)
    }

    async fn live_in(&self, cx: &Context<'_>, server: &Value) -> Result<Map, Failure> {
        Ok(present::in_server(cx.facts, server))
    }

    async fn push_metadata(&self, cx: &Context<'_>) -> Result<(), Failure> {
        push::own(cx).await
    }

    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<Duration>, Failure> {
        interfaces::detach(cx, &interfaces::named_ports(wanted)).await
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(true) };
        match show(cx, id).await {
            Ok(server) => Ok(matches!(status(&server), "ERROR" | "DELETED" | "SOFT_DELETED")),
            Err(failure) if failure.is_not_found() => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    fn has_lock(&self) -> bool {
        true
    }

    /// Nova refuses most changes of a locked server, not only its delete.
    async fn lock(&self, cx: &Context<'_>, locked: bool) -> Result<(), Failure> {
        let action = if locked { "lock" } else { "unlock" };
        act(cx, cx.facts.require_id()?, Value::from_iter([(action, Value::Null)])).await.map(drop)
    }

    fn snapshots(&self) -> bool {
        true
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        image::delete(cx).await
    }
}
