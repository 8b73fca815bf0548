//! Software by cloud-init: the deployments of each server become user data that runs them in their order and reports back
//! to a wait condition. For images with cloud-init and Python, but without an agent.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use kiln_value::{Map, Value, value};
use sha2::{Digest as _, Sha256};

use super::server_software::SCRIPT;
use super::{Lowered, Source};
use crate::Refusal;

/// Seconds that the software of a server may take.
const TIMEOUT: i64 = 3600;

/// The reports of a server: that its operations begin, and their result.
const REPORTS: i64 = 2;

/// Texts that are longer are replaced by their digest in fingerprints.
const LONG: usize = 64;

/// What stands for the own address of a server in inputs, which its user data cannot contain.
const OWN_ADDRESS: &str = "@KILN_OWN_ADDRESS@";

/// What stands for the output of an operation in inputs: `@KILN_OUTPUT:OPERATION:NAME@`.
const OUTPUT: &str = "@KILN_OUTPUT:";

/// Replaces software deployments by user data.
///
/// Errors: what requires an agent: operations for the deletion, outputs of operations outside of their server, hooks that no
/// script stands for, and servers that exist already.
pub fn by_cloud_init(mut lowered: Lowered) -> Result<Lowered, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let template = std::mem::take(&mut lowered.template);
    let at_boot = std::mem::take(&mut lowered.at_boot);
    lowered.template = convert(template, None, &at_boot, &mut lowered.sources, &mut refusals);
    for (name, template) in std::mem::take(&mut lowered.nested) {
        let converted = convert(template, Some(&name), &at_boot, &mut lowered.sources, &mut refusals);
        lowered.nested.insert(name, converted);
    }
    if refusals.is_empty() { Ok(lowered) } else { Err(refusals) }
}

/// A deployment.
struct Step {
    name: String,
    servers: Vec<String>,
    config: String,
    inputs: Value,
    depends_on: Vec<String>,
}

/// Scripts by nested template and configuration.
type Scripts = BTreeMap<(Option<String>, String), String>;

struct Converter<'s> {
    /// The nested template.
    file: Option<&'s str>,
    prefix: String,
    at_boot: &'s Scripts,
    sources: &'s mut BTreeMap<String, Source>,
    refusals: &'s mut Vec<Refusal>,
}

impl Converter<'_> {
    fn refuse(&mut self, resource: &str, message: String) {
        let source = self.sources.get(&format!("{}resources.{resource}", self.prefix));
        let mut refusal = Refusal::new("unsupported", &source.map(|s| s.at.clone()).unwrap_or_default(), message);
        refusal.file = source.and_then(|source| source.file.clone());
        self.refusals.push(refusal.hint("Use an image with an agent, and software deployments."));
    }
}

fn convert(
    mut template: Value,
    file: Option<&str>,
    at_boot: &Scripts,
    sources: &mut BTreeMap<String, Source>,
    refusals: &mut Vec<Refusal>,
) -> Value {
    let prefix = file.map(|file| format!("{file}:")).unwrap_or_default();
    let mut converter = Converter { file, prefix, at_boot, sources, refusals };
    let Some(sections) = template.as_map_mut() else { return template };
    let outputs = sections.get("outputs").cloned().unwrap_or_default();
    if let Some(resources) = sections.get_mut("resources").and_then(Value::as_map_mut) {
        converter.convert(resources, &outputs);
    }
    template
}

impl Converter<'_> {
    fn convert(&mut self, resources: &mut Map, outputs: &Value) {
        let steps = self.steps(resources);
        if steps.is_empty() {
            return;
        }
        let servers: HashMap<String, Vec<String>> =
            steps.iter().map(|step| (step.name.clone(), step.servers.clone())).collect();
        let mut scripts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut before: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for step in &steps {
            let config = resources.get(&step.config).and_then(|config| config.get("properties")).cloned();
            let config = config.unwrap_or_default();
            let at_boot = self.at_boot.get(&(self.file.map(str::to_owned), step.config.clone()));
            if config.str_at("group") != Some(SCRIPT) && at_boot.is_none() {
                let group = config.str_at("group").unwrap_or("another hook").to_owned();
                self.refuse(&step.name, format!("{} is run by {group}, which requires an agent.", step.name));
            }
            for server in &step.servers {
                let mut inputs = step.inputs.clone();
                let mut read = Vec::new();
                with_outputs(&mut inputs, server, &servers, &mut read);
                for (name, output) in read {
                    wanted.entry(name).or_default().insert(output);
                }
                if !without_own(&mut inputs, server) {
                    self.refuse(&step.name, format!("An input of {} is an attribute of its own server.", step.name));
                }
                let content = config.get("config").cloned().unwrap_or_default();
                let script = match at_boot {
                    None => content,
                    Some(script) => {
                        with_config(&mut inputs, content, config.get("options").cloned());
                        script.into()
                    }
                };
                let name = short(&step.name);
                let entry = value!({"name": name, "script": script, "inputs": inputs});
                scripts.entry(server.clone()).or_default().push(entry);
                let needs = before.entry(server.clone()).or_default();
                for other in &step.depends_on {
                    match servers.get(other) {
                        Some(others) => needs.extend(others.iter().filter(|o| *o != server).map(|o| finished(o))),
                        None if other != server => drop(needs.insert(other.clone())),
                        None => {}
                    }
                }
            }
        }
        self.refuse_circles(&scripts, &before);
        let gone: BTreeSet<&String> = steps.iter().flat_map(|step| [&step.name, &step.config]).collect();
        resources.retain(|name, _| !gone.contains(name));
        let mut read = BTreeSet::new();
        attributes(outputs, &mut read);
        resources.values().for_each(|resource| attributes(resource, &mut read));
        scripts.values().flatten().for_each(|step| attributes(step, &mut read));
        for step in steps.iter().filter(|step| read.contains(&step.name)) {
            let message =
                format!("An output of {} is used outside of its server, where cloud-init cannot return it.", step.name);
            self.refuse(&step.name, message);
        }
        for step in scripts.values_mut().flatten().filter_map(Value::as_map_mut) {
            let name = step.get("name").and_then(Value::as_str).unwrap_or_default();
            if let Some(outputs) = wanted.get(name) {
                step.insert("outputs".to_owned(), outputs.iter().map(Value::from).collect::<Vec<Value>>().into());
            }
        }
        for resource in resources.values_mut() {
            wait_for_servers(resource, &servers);
        }
        for (server, scripts) in scripts {
            let needs = before.remove(&server).unwrap_or_default();
            self.add(resources, &server, scripts, needs);
        }
    }

    /// Refuses servers whose software waits for that of each other: all of it runs at the first boot.
    fn refuse_circles(&mut self, scripts: &BTreeMap<String, Vec<Value>>, before: &BTreeMap<String, BTreeSet<String>>) {
        let names: Vec<&String> = scripts.keys().collect();
        let places: HashMap<String, usize> =
            names.iter().enumerate().flat_map(|(i, name)| [((*name).clone(), i), (finished(name), i)]).collect();
        let edges: Vec<Vec<usize>> = names
            .iter()
            .map(|name| {
                let mut read = BTreeSet::new();
                scripts.get(*name).into_iter().flatten().for_each(|step| attributes(step, &mut read));
                let needs = before.get(*name).into_iter().flatten().chain(&read);
                needs.filter_map(|other| places.get(other)).copied().collect()
            })
            .collect();
        for circle in crate::circle::circles(&edges) {
            let circle: Vec<&str> = circle.into_iter().map(|i| names[i].as_str()).collect();
            self.refuse(
                circle[0],
                format!("The software of these servers waits for each other: {}.", circle.join(", ")),
            );
        }
    }

    /// The deployments in their order.
    fn steps(&mut self, resources: &Map) -> Vec<Step> {
        let mut found: Vec<Step> = Vec::new();
        for (name, resource) in resources {
            let kind = resource.str_at("type").unwrap_or_default();
            if !matches!(kind, "OS::Heat::SoftwareDeployment" | "OS::Heat::SoftwareDeploymentGroup") {
                continue;
            }
            let Some(properties) = resource.get("properties") else { continue };
            if properties.get("actions").is_some() {
                self.refuse(name, format!("{name} runs when the stack is deleted, which requires an agent."));
            }
            let one = properties.get("server").and_then(|server| server.str_at("get_resource"));
            if one.is_none() && properties.get("server").is_some() {
                self.refuse(name, format!("{name} runs on a server that exists already, which requires an agent."));
            }
            let several = properties.get("servers").and_then(Value::as_map).into_iter().flat_map(Map::values);
            let servers = one.into_iter().chain(several.filter_map(|server| server.str_at("get_resource")));
            let config = properties.get("config").and_then(|config| config.str_at("get_resource"));
            let depends_on = resource.get("depends_on").and_then(Value::as_list).unwrap_or_default();
            // What it reads outputs of runs before it too.
            let mut before: BTreeSet<String> = BTreeSet::new();
            properties.get("input_values").into_iter().for_each(|inputs| attributes(inputs, &mut before));
            before.extend(depends_on.iter().filter_map(Value::as_str).map(str::to_owned));
            found.push(Step {
                name: name.clone(),
                servers: servers.map(str::to_owned).collect(),
                config: config.unwrap_or_default().to_owned(),
                inputs: properties.get("input_values").cloned().unwrap_or_else(|| Value::Map(Map::new())),
                depends_on: before.into_iter().collect(),
            });
        }
        in_order(found)
    }

    /// Gives a server its user data and a wait condition.
    fn add(&mut self, resources: &mut Map, server: &str, steps: Vec<Value>, needs: BTreeSet<String>) {
        let handle = format!("{server}_software_handle");
        let run = format!("{server}_software_run");
        let fingerprint = fingerprint(&steps);
        let user_data = value!({
            "str_replace": {
                "template": (include_str!("run_software.sh")),
                "params": {
                    "@KILN_STEPS@": (Value::List(steps)),
                    "@KILN_URL@": {"get_attr": [(handle.as_str()), "endpoint"]},
                    "@KILN_TOKEN@": {"get_attr": [(handle.as_str()), "token"]}
                }
            }
        });
        let properties =
            resources.get_mut(server).and_then(|resource| resource.as_map_mut()?.get_mut("properties")?.as_map_mut());
        let Some(properties) = properties else { return };
        properties.insert("user_data_format".to_owned(), "RAW".into());
        if properties.insert("user_data".to_owned(), user_data).is_some() {
            self.refuse(server, format!("{server} has user data of its own."));
        }
        if let Some(resource) = resources.get_mut(server).and_then(Value::as_map_mut)
            && !needs.is_empty()
        {
            let known = resource.entry("depends_on".to_owned()).or_insert_with(|| Value::List(Vec::new()));
            if let Value::List(known) = known {
                known.extend(needs.into_iter().map(Value::from));
            }
        }
        // An update that changes the operations replaces the server. Its reports must be new: the number of the run is
        // another one then. With it, the metadata of the handle change, which removes the reports of the run before;
        // and the timeout, which replaces the condition. The entry in the metadata counts as the report of the begin.
        let number = value!({"get_attr": [(run.as_str()), "value"]});
        let begun = value!({"status": "SUCCESS", "reason": "No report yet.", "data": (number.clone())});
        let condition = value!({
            "type": "OS::Heat::WaitCondition",
            "depends_on": [server],
            "properties": {
                "handle": {"get_resource": (handle.as_str())},
                "count": REPORTS,
                "timeout": {"list_join": ["", [(format!("{TIMEOUT}.")), number]]}
            }
        });
        let run_number = value!({
            "type": "OS::Heat::RandomString",
            "properties": {"length": 6, "character_classes": [{"class": "digits"}], "salt": fingerprint}
        });
        let handle_resource = value!({"type": "OS::Heat::WaitConditionHandle", "metadata": {"begin": begun}});
        let source = self.sources.get(&format!("{}resources.{server}", self.prefix)).cloned();
        for (name, resource) in [(run, run_number), (handle, handle_resource), (finished(server), condition)] {
            if let Some(source) = &source {
                self.sources.insert(format!("{}resources.{name}", self.prefix), source.clone());
            }
            resources.insert(name, resource);
        }
    }
}

/// A text that changes if the operations of a server do, with their files and inputs.
fn fingerprint(steps: &[Value]) -> Value {
    let mut steps = steps.to_vec();
    for step in steps.iter_mut().filter_map(Value::as_map_mut) {
        step.get_mut("script").into_iter().for_each(shorten);
        if let Some(inputs) = step.get_mut("inputs").and_then(Value::as_map_mut) {
            inputs.values_mut().for_each(shorten);
        }
    }
    value!({"digest": ["sha256", {"str_replace": {"template": "$steps", "params": {"$steps": steps}}}]})
}

/// Replaces a long text by its digest.
fn shorten(value: &mut Value) {
    if let Value::Str(text) = value
        && text.len() > LONG
    {
        *value = format!("{:x}", Sha256::digest(text.as_bytes())).into();
    }
}

/// Gives a script that stands for a hook what the hook would read: the configuration, the inputs and the options.
fn with_config(inputs: &mut Value, content: Value, options: Option<Value>) {
    let Some(inputs) = inputs.as_map_mut() else { return };
    let all = Value::Map(inputs.clone());
    inputs.insert("KILN_CONFIG".to_owned(), content);
    inputs.insert("KILN_INPUTS".to_owned(), all);
    inputs.insert("KILN_OPTIONS".to_owned(), options.unwrap_or_else(|| Value::Map(Map::new())));
}

/// The wait condition of a server.
fn finished(server: &str) -> String {
    format!("{server}_software")
}

/// Sorts steps so that each is behind those that it depends on; otherwise in the order of the template. Steps in circles
/// are left at the end: the validation of the template reports them.
fn in_order(steps: Vec<Step>) -> Vec<Step> {
    let places: HashMap<String, usize> = steps.iter().enumerate().map(|(i, step)| (step.name.clone(), i)).collect();
    let mut open: Vec<usize> = Vec::with_capacity(steps.len());
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (i, step) in steps.iter().enumerate() {
        let before: Vec<usize> = step.depends_on.iter().filter_map(|name| places.get(name)).copied().collect();
        open.push(before.len());
        for other in before {
            behind[other].push(i);
        }
    }
    let mut ready: VecDeque<usize> = (0..steps.len()).filter(|i| open[*i] == 0).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(i) = ready.pop_front() {
        order.push(i);
        for next in &behind[i] {
            open[*next] -= 1;
            if open[*next] == 0 {
                ready.push_back(*next);
            }
        }
    }
    order.extend((0..steps.len()).filter(|i| open[*i] > 0));
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    order.into_iter().filter_map(|i| steps[i].take()).collect()
}

/// The resources that a value reads attributes of.
fn attributes(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| attributes(item, found)),
        Value::Map(map) => {
            found.extend(map.get("get_attr").and_then(|path| path.at(0)?.as_str()).map(str::to_owned));
            map.values().for_each(|item| attributes(item, found));
        }
        _ => {}
    }
}

/// The name of the operation of a deployment.
fn short(deployment: &str) -> &str {
    deployment.strip_suffix("_deploy").unwrap_or(deployment)
}

/// Replaces outputs of deployments that run only on this server, which are known there; `read` gets their operations and
/// names.
fn with_outputs(
    value: &mut Value,
    server: &str,
    servers: &HashMap<String, Vec<String>>,
    read: &mut Vec<(String, String)>,
) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| with_outputs(item, server, servers, read)),
        Value::Map(map) => {
            let path = map.get("get_attr").and_then(Value::as_list).unwrap_or_default();
            if let [Value::Str(deployment), Value::Str(output)] = path
                && servers.get(deployment).is_some_and(|of| *of == [server])
            {
                let (operation, output) = (short(deployment).to_owned(), output.clone());
                *value = format!("{OUTPUT}{operation}:{output}@").into();
                read.push((operation, output));
            } else {
                map.values_mut().for_each(|item| with_outputs(item, server, servers, read));
            }
        }
        _ => {}
    }
}

/// Replaces the own address of a server; `false` if other attributes of it remain.
fn without_own(value: &mut Value, server: &str) -> bool {
    match value {
        Value::List(items) => items.iter_mut().all(|item| without_own(item, server)),
        Value::Map(map) => {
            let path = map.get("get_attr").and_then(Value::as_list);
            let is_own = path.and_then(|path| path.first()?.as_str()) == Some(server);
            if is_own && path.and_then(|path| path.get(1)?.as_str()) == Some("first_address") {
                *value = OWN_ADDRESS.into();
                return true;
            }
            !is_own && map.values_mut().all(|item| without_own(item, server))
        }
        _ => true,
    }
}

/// Resources that wait for deployments wait for the software of their servers.
fn wait_for_servers(resource: &mut Value, servers: &HashMap<String, Vec<String>>) {
    let Some(Value::List(names)) = resource.as_map_mut().and_then(|map| map.get_mut("depends_on")) else { return };
    let mut waits: Vec<Value> = Vec::new();
    for name in names.drain(..) {
        match name.as_str().and_then(|name| servers.get(name)) {
            Some(servers) => waits.extend(servers.iter().map(|server| Value::from(finished(server)))),
            None => waits.push(name),
        }
    }
    let mut seen = BTreeSet::new();
    waits.retain(|name| seen.insert(kiln_value::text::str(name)));
    *names = waits;
}
