//! OS::Zun::Container

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, ResourceType, Step, TypeRules};
use kiln_value::{Class, Diagnostic, Map, Value, text, value};

use super::{interfaces, words};
use crate::call::{NEUTRON, security_group_id};
use crate::queue;
use crate::rest::{RestDriver, Shape};
use crate::validation::{conflict, failed, unspecified};

/// A container.
pub(super) struct Container(RestDriver);

impl Container {
    pub(super) fn new(resource_type: &ResourceType) -> Option<Self> {
        RestDriver::shaped(resource_type, Plain).map(Self)
    }
}

/// What the definition cannot express.
struct Plain;

/// The restart policy in requests; `None` if it is none.
fn restart_policy(policy: &str) -> Option<Value> {
    let (name, count) = match policy.split_once(':') {
        Some(("on-failure", count)) => ("on-failure", if count.is_empty() { "0" } else { count }),
        None if matches!(policy, "always" | "unless-stopped" | "on-failure" | "no") => (policy, "0"),
        _ => return None,
    };
    Some(value!({"Name": name, "MaximumRetryCount": count}))
}

/// A command: as given, if it has the same words.
fn shown_command(given: &Value, shown: &Value) -> Value {
    let words = match shown {
        Value::List(words) => words.iter().map(text::str).collect(),
        line => words::split(line.as_str().unwrap_or_default()).unwrap_or_default(),
    };
    let is_given = words::split(given.as_str().unwrap_or_default()).is_ok_and(|given| given == words);
    if is_given { given.clone() } else { words.join(" ").into() }
}

/// A restart policy in the words of the template: as given, if it is the same.
fn shown_restart_policy(given: &Value, shown: &Value) -> Value {
    let parts =
        |policy: &Value| ["Name", "MaximumRetryCount"].map(|key| policy.get(key).map(text::str).unwrap_or_default());
    let [name, count] = parts(shown);
    match given.as_str().and_then(restart_policy) {
        Some(policy) if parts(&policy) == [name.clone(), count.clone()] => given.clone(),
        _ if name == "on-failure" => format!("{name}:{count}").into(),
        _ if name.is_empty() => Value::Null,
        _ => name.into(),
    }
}

/// The security groups of a container: the given names or IDs of those that it has, and the IDs of the others.
async fn shown_groups(cx: &Context<'_>, present: &[Value]) -> Result<Value, Failure> {
    let mut others = present.to_vec();
    let mut shown = Vec::new();
    for given in cx.facts.property("security_groups").as_list().unwrap_or_default() {
        let is_shown = others.contains(given);
        let id = if is_shown { given.clone() } else { security_group_id(cx, &text::str(given)).await?.into() };
        if let Some(at) = others.iter().position(|one| *one == id) {
            others.swap_remove(at);
            shown.push(given.clone());
        }
    }
    shown.extend(others);
    Ok(shown.into())
}

#[async_trait]
impl Shape for Plain {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let facts = cx.facts;
        let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
        if let Some(policy) = facts.property("restart_policy").as_str().and_then(restart_policy) {
            put("restart_policy", policy);
        }
        if facts.property("networks").is_truthy() {
            put("nets", interfaces::wire(facts.property("networks")));
        }
        if let Some(command) = facts.property("command").as_str().filter(|command| !command.is_empty()) {
            let words = words::split(command).map_err(|text| Failure::other(Class::ValueError, text))?;
            put("command", words.into_iter().map(Value::from).collect());
        }
        // An interactive container has a terminal, unless the template says otherwise.
        if facts.property("tty").is_null() && !facts.property("interactive").is_null() {
            put("tty", facts.property("interactive").clone());
        }
        Ok(())
    }

    /// An interactive container must not stop.
    fn state(&self, object: &Value) -> Option<String> {
        let is_interactive = object.get("interactive").is_some_and(Value::is_truthy);
        (is_interactive && object.str_at("status") == Some("Stopped")).then(|| "Error".to_owned())
    }

    fn reason(&self, facts: &Facts, object: &Value) -> Option<String> {
        let what = format!("Error in creating container '{}'", facts.name);
        Some(match object.str_at("status") {
            Some("Stopped") => {
                format!("{what} - interactive mode was enabled but the container has stopped running")
            }
            _ => format!("{what} - {}", text::str(object.get("status_reason").unwrap_or(&Value::Null))),
        })
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "addresses" {
            return Ok(None);
        }
        let Some(Value::Map(by_id)) = object.get("addresses") else { return Ok(Some(Value::Null)) };
        let networks = NEUTRON.list(cx, "/v2.0/networks", &[], "networks").await?;
        let mut all = by_id.clone();
        for (id, addresses) in by_id {
            let network = networks.iter().find(|network| network.str_at("id") == Some(id));
            if let Some(name) = network.and_then(|network| network.str_at("name")) {
                let mut list = all.get(name).and_then(Value::as_list).unwrap_or_default().to_vec();
                list.extend(addresses.as_list().unwrap_or_default().iter().cloned());
                all.insert(name.to_owned(), list.into());
            }
        }
        Ok(Some(all.into()))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let facts = cx.facts;
        for name in ["mounts", "hints"] {
            live.shift_remove(name);
        }
        if let Some(command) = object.get("command") {
            live.insert("command".to_owned(), shown_command(facts.property("command"), command));
        }
        let given = facts.property("restart_policy");
        let policy = object.get("restart_policy").cloned().unwrap_or_default();
        live.insert("restart_policy".to_owned(), shown_restart_policy(given, &policy));
        if let Some(networks) = interfaces::shown(facts.property("networks"), object) {
            live.insert("networks".to_owned(), networks);
        }
        // Zun shows the IDs.
        if facts.property("security_groups").is_truthy() {
            let present = object.get("security_groups").and_then(Value::as_list).unwrap_or_default();
            live.insert("security_groups".to_owned(), shown_groups(cx, present).await?);
        }
        // Zun shows it with its unit.
        let memory = object.get("memory").map(text::str).unwrap_or_default();
        if let Ok(memory) = memory.trim_end_matches(['M', 'm']).parse::<i64>() {
            live.insert("memory".to_owned(), memory.into());
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if let Some(policy) = facts.property("restart_policy").as_str().filter(|policy| !policy.is_empty())
            && restart_policy(policy).is_none()
        {
            return Err(failed(format!(
                "restart_policy \"{policy}\" is invalid. Valid values are \"no\", \"on-failure[:max-retry]\", \
                 \"always\", and \"unless-stopped\"."
            )));
        }
        let list = |name: &str| facts.property(name).as_list().unwrap_or_default();
        let has = |map: &Value, key: &str| map.get(key).is_some_and(|value| !value.is_null());
        // Values that are not known yet are null.
        let is_unknown = |map: &Value, keys: &[&str]| keys.iter().any(|key| map.get(key).is_some_and(Value::is_null));
        for mount in list("mounts") {
            match (has(mount, "volume_id"), has(mount, "volume_size")) {
                (true, true) => return Err(conflict(&["networks/volume_id", "networks/volume_size"])),
                (false, false) if !is_unknown(mount, &["volume_id", "volume_size"]) => {
                    return Err(failed(format!(
                        "One of the properties \"volume_id\" or \"volume_size\" should be set for the specified mount \
                         of container \"{}\".",
                        facts.name
                    )));
                }
                _ => {}
            }
        }
        for network in list("networks") {
            if !has(network, "network") && !has(network, "port") && !is_unknown(network, &["network", "port"]) {
                return Err(unspecified(&["network", "port"]));
            }
            if has(network, "fixed_ip") && has(network, "port") {
                return Err(conflict(&["networks.fixed_ip", "networks.port"]));
            }
        }
        Ok(())
    }
}

impl TypeRules for Container {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        self.0.validate(facts)
    }
}

#[async_trait]
impl Driver for Container {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let step = self.0.start(cx, operation).await?;
        match operation {
            Operation::Update { changed, .. } if changed.get("networks").is_some_and(Value::is_truthy) => {
                Ok(Step { progress: queue::now(interfaces::STAGE).progress, ..step })
            }
            _ => Ok(step),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if state.str_at("stage") == Some(interfaces::STAGE) {
            return interfaces::settle(cx, state).await;
        }
        self.0.poll(cx, operation, state).await
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        self.0.find(cx).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        self.0.attributes(cx, names).await
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        self.0.live(cx).await
    }

    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        self.0.live_in(cx, object).await
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        self.0.needs_replace_failed(cx).await
    }
}
