//! Policies: placement, scaling, alarms.

use kiln_value::{Map, Value, value};

use super::level::{INSTANTIATION_LEVELS, Numbers, VDU_INITIAL_DELTA, VDU_INSTANTIATION_LEVELS};
use super::scaling::{Scaling, Signals};
use super::security::SECURITY_GROUP_RULE;
use super::server_software::is_server;
use super::state::State;
use crate::graph::{Node, Policy};

/// Policies that make groups of servers.
const SCALING: [&str; 2] = ["tosca.policies.nfv.ScalingAspects", "tosca.policies.Scaling"];

/// Policies of the NFV profile that say how those of other types scale.
const PARTS_OF_SCALING: [&str; 4] =
    [VDU_INITIAL_DELTA, "tosca.policies.nfv.VduScalingAspectDeltas", INSTANTIATION_LEVELS, VDU_INSTANTIATION_LEVELS];

/// Policies that describe what a VNF allows; nothing follows for its resources.
const DESCRIPTIONS: [&str; 6] = [
    "tosca.policies.nfv.SupportedVnfInterface",
    "tosca.policies.nfv.VnfIndicator",
    "tosca.policies.nfv.VnfPackageChange",
    "tosca.policies.nfv.LcmCoordinationsForLcmOperation",
    "tosca.policies.nfv.VirtualLinkBitrateInitialDelta",
    "tosca.policies.nfv.VirtualLinkBitrateScalingAspectDeltas",
];

/// Bitrates by the level of the VNF.
const LINK_LEVELS: &str = "tosca.policies.nfv.VirtualLinkInstantiationLevels";

impl<'g> State<'g> {
    pub(super) fn lower_policies(&mut self) {
        for policy in &self.graph.policies {
            if policy.is_a("tosca.policies.nfv.AffinityRule") {
                self.place(policy, "affinity", &format!("{}_group", policy.name));
            } else if policy.is_a("tosca.policies.nfv.AntiAffinityRule") {
                self.place(policy, "anti-affinity", &format!("{}_group", policy.name));
            } else if policy.is_a("tosca.policies.Placement") {
                let kind = placement(policy).to_owned();
                self.place(policy, &kind, &policy.name);
            } else if policy.is_a("tosca.policies.Reservation") {
                self.reserve(policy);
            } else if SCALING.iter().chain(&[SECURITY_GROUP_RULE]).any(|name| policy.is_a(name)) {
                // Lowered below.
            } else if PARTS_OF_SCALING.iter().any(|name| policy.is_a(name)) {
                // Read below, by the groups of servers.
            } else if policy.is_a(LINK_LEVELS) {
                let message =
                    format!("The policy {} has no effect: bitrates are those of the networks themselves.", policy.name);
                self.note(&policy.at, message);
            } else if DESCRIPTIONS.iter().any(|name| policy.is_a(name)) {
                self.note(&policy.at, format!("The policy {} ({}) has no effect.", policy.name, policy.type_name));
            } else if !Self::raises_alarms(policy) {
                let message = format!("Policies of type {} are not supported ({}).", policy.type_name, policy.name);
                self.refuse(&policy.at.key("type"), message);
            }
        }
        self.secure_ports();
        let numbers = self.initial_numbers();
        // Servers that scale move into nested templates, where other policies do not reach them.
        for policy in &self.graph.policies {
            if policy.is_a("tosca.policies.nfv.ScalingAspects") {
                self.scale_aspects(policy, &numbers);
            } else if policy.is_a("tosca.policies.Scaling") {
                self.scale(policy);
            }
        }
        self.multiply(&numbers);
        for policy in &self.graph.policies {
            if Self::raises_alarms(policy) {
                self.raise_alarms(policy);
            }
        }
    }

    /// Whether a policy of another kind has triggers with conditions of metrics.
    fn raises_alarms(policy: &Policy) -> bool {
        let is_other = !policy.is_a("tosca.policies.Scaling") && !policy.is_a("tosca.policies.Placement");
        let mut triggers = policy.triggers.values();
        is_other
            && !policy.triggers.is_empty()
            && triggers
                .all(|trigger| trigger.get("condition").is_some_and(|condition| condition.get("threshold").is_some()))
    }

    /// The nodes that a policy is about: its targets, and the members of those that are groups.
    pub(super) fn named_by(&self, policy: &Policy) -> Vec<String> {
        let groups = policy.targets.iter().flat_map(|target| {
            let group = self.groups.get(target.as_str()).filter(|_| policy.of_groups);
            group.map_or_else(|| vec![target.clone()], |group| group.members.clone())
        });
        groups.collect()
    }

    /// The servers that a policy is about.
    pub(super) fn targets(&self, policy: &Policy) -> Vec<&'g Node> {
        let mut servers: Vec<&Node> = self.named_by(policy).iter().flat_map(|name| self.servers(name)).collect();
        servers.dedup_by(|a, b| a.name == b.name);
        servers
    }

    /// Servers near to each other, or apart.
    fn place(&mut self, policy: &'g Policy, kind: &str, name: &str) {
        let scope = policy.properties.as_ref().and_then(|properties| properties.get("scope")).and_then(Value::as_str);
        if let Some(scope) = scope.filter(|scope| !matches!(*scope, "nfvi_node" | "compute" | "region")) {
            let message =
                format!("The policy {} has the scope {scope}: server groups are about hosts only.", policy.name);
            self.note(&policy.at, message);
            if matches!(scope, "zone" | "zone_group" | "nfvi_pop") {
                return;
            }
        }
        let mut properties = Map::new();
        properties.insert("name".to_owned(), name.into());
        properties.insert("policies".to_owned(), value!([kind]));
        self.add(name, "OS::Nova::ServerGroup", properties, &policy.at);
        for server in self.targets(policy) {
            self.hint(&server.name, "group", value!({"get_resource": name}));
        }
    }

    fn reserve(&mut self, policy: &'g Policy) {
        let id = policy.properties.as_ref().and_then(|properties| properties.get("reservation_id"));
        let id = id.or_else(|| policy.template.get("reservation")?.get("reservation_id"));
        let Some(id) = id.cloned() else {
            let message = format!("The policy {} must have the property reservation_id.", policy.name);
            return self.refuse(&policy.at, message);
        };
        for server in self.targets(policy) {
            let id = self.value(server, None, &id, &policy.at);
            self.hint(&server.name, "reservation", id);
        }
    }

    fn hint(&mut self, server: &str, key: &str, hint: Value) {
        let Some(properties) = self.properties_of(server) else { return };
        let hints = properties.entry("scheduler_hints".to_owned()).or_insert_with(|| Value::Map(Map::new()));
        if let Some(hints) = hints.as_map_mut() {
            hints.insert(key.to_owned(), hint);
        }
    }

    /// A group of servers that grows and shrinks. The numbers are those of the policy, else those of the capability
    /// `scalable` of the first server.
    fn scale(&mut self, policy: &'g Policy) {
        let empty = Map::new();
        let properties = policy.properties.as_ref().unwrap_or(&empty);
        let targets: Vec<String> = match properties.get("targets").and_then(Value::as_list) {
            Some(names) if policy.targets.is_empty() => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => self.targets(policy).into_iter().map(|server| server.name.clone()).collect(),
        };
        let first = targets.first().and_then(|name| self.nodes.get(name.as_str()).copied());
        let mut number = |key: &str| {
            let of_server = first.and_then(|node| node.capability("scalable")?.properties.get(key));
            let value = properties.get(key).or(of_server)?;
            // Inputs become parameters.
            Some(first.map_or_else(|| value.clone(), |node| self.value(node, None, value, &policy.at)))
        };
        let least = number("min_instances").unwrap_or(Value::Int(0));
        let most = number("max_instances").unwrap_or(Value::Int(1));
        let initial = number("default_instances").or_else(|| number("min_instances")).unwrap_or(Value::Int(1));
        let cooldown = number("cooldown");
        let step = number("increment").map_or(Some(1), |step| step.as_i64());
        let Some(step) = step else {
            let message = format!("The increment of {} must be a number that the document contains.", policy.name);
            return self.refuse(&policy.at, message);
        };
        self.extract(&Scaling {
            at: policy.at.clone(),
            group: format!("{}_group", policy.name),
            signals: Some(Signals { prefix: policy.name.clone(), step, cooldown }),
            targets,
            least,
            most,
            initial,
        });
    }

    /// The aspects of a VNF: one group for each, with the servers that its deltas name.
    fn scale_aspects(&mut self, policy: &'g Policy, numbers: &Numbers) {
        let aspects =
            policy.properties.as_ref().and_then(|properties| properties.get("aspects")).and_then(Value::as_map);
        for (aspect, definition) in aspects.into_iter().flatten() {
            let deltas = self.graph.policies.iter().filter(|other| {
                other.is_a("tosca.policies.nfv.VduScalingAspectDeltas")
                    && other.properties.as_ref().and_then(|p| p.get("aspect")).and_then(Value::as_str) == Some(aspect)
            });
            let deltas: Vec<&Policy> = deltas.collect();
            let mut targets: Vec<String> =
                deltas.iter().flat_map(|delta| self.targets(delta)).map(|server| server.name.clone()).collect();
            targets.dedup();
            let step = deltas.iter().find_map(|delta| {
                let deltas = delta.properties.as_ref()?.get("deltas")?.as_map()?;
                deltas.values().find_map(|delta| delta.get("number_of_instances")?.as_i64())
            });
            let known: Vec<_> = targets.iter().filter_map(|target| numbers.get(target)).collect();
            let initial = known.first().map(|number| number.initial);
            let differs = known.iter().any(|number| Some(number.initial) != initial);
            if targets.is_empty() {
                let message = format!("No server scales with the aspect {aspect}.");
                self.note(&policy.at, message);
                continue;
            }
            let step = step.unwrap_or(1);
            let initial = initial.unwrap_or(1);
            let base = known.first().and_then(|number| number.delta).unwrap_or(initial);
            if differs {
                let message = format!(
                    "The servers of the aspect {aspect} begin with different numbers: all of them begin with {initial}."
                );
                self.note(&policy.at, message);
            }
            let levels = definition.get("max_scale_level").and_then(Value::as_i64).unwrap_or(1);
            let profile = |key: &str| {
                let node = self.nodes.get(targets.first()?.as_str())?;
                node.properties.get("vdu_profile")?.get(key)?.as_i64()
            };
            let grown = base.saturating_add(step.saturating_mul(levels));
            let least = profile("min_number_of_instances").unwrap_or(base).min(initial);
            let most = profile("max_number_of_instances").unwrap_or(grown).max(initial);
            self.extract(&Scaling {
                at: policy.at.clone(),
                group: aspect.clone(),
                signals: Some(Signals { prefix: aspect.clone(), step, cooldown: None }),
                targets,
                least: least.into(),
                most: most.into(),
                initial: initial.into(),
            });
        }
    }

    /// Alarms that signal scaling policies.
    fn raise_alarms(&mut self, policy: &'g Policy) {
        for (name, trigger) in &policy.triggers {
            let at = policy.at.key("triggers").key(name);
            let condition = trigger.get("condition").and_then(Value::as_map).cloned().unwrap_or_default();
            let mut properties = Map::new();
            if let Some(text) = condition.get("constraint").and_then(Value::as_str) {
                properties.insert("description".to_owned(), text.into());
            }
            let metric = trigger.get("metric").or_else(|| condition.get("metric"));
            let fields = [
                ("metric", metric),
                ("aggregation_method", condition.get("aggregation_method").or_else(|| condition.get("method"))),
                ("granularity", condition.get("granularity").or_else(|| condition.get("period"))),
                ("threshold", condition.get("threshold")),
                ("resource_type", condition.get("resource_type")),
                ("comparison_operator", condition.get("comparison_operator")),
                ("evaluation_periods", condition.get("evaluations")),
            ];
            for (key, value) in fields {
                if let Some(value) = value {
                    properties.insert(key.to_owned(), value.clone());
                }
            }
            properties.entry("resource_type".to_owned()).or_insert_with(|| "instance".into());
            let group = trigger.get("metadata").filter(|metadata| metadata.as_str().is_some());
            let query = group.map_or_else(
                || value!({"=": {"stack_id": {"get_param": "OS::stack_id"}}}),
                |group| value!({"=": {"server_group": group}}),
            );
            properties.insert("query".to_owned(), Self::json(&query));
            let actions = trigger.get("action").and_then(Value::as_list).unwrap_or_default();
            let up = condition.get("comparison_operator").and_then(Value::as_str).is_none_or(|c| c.starts_with('g'));
            let suffix = if up { "scale_out" } else { "scale_in" };
            let urls: Vec<Value> = actions
                .iter()
                .filter_map(Value::as_str)
                .map(|action| format!("{action}_{suffix}"))
                .filter(|action| self.resources.contains_key(action))
                .map(|action| value!({"get_attr": [action, "signal_url"]}))
                .collect();
            if urls.is_empty() {
                self.note(&at, format!("The alarm {name} has no action that is a scaling policy: it signals nobody."));
            } else {
                properties.insert("alarm_actions".to_owned(), urls.into());
            }
            self.add(name, "OS::Aodh::GnocchiAggregationByResourcesAlarm", properties, &at);
        }
    }

    /// JSON text of a value with functions.
    fn json(value: &Value) -> Value {
        match value.get("=").and_then(|map| map.as_map()?.first()) {
            Some((key, Value::Map(_))) => value!({
                "str_replace": {
                    "template": (format!("{{\"=\": {{\"{key}\": \"$value\"}}}}")),
                    "params": {"$value": {"get_param": "OS::stack_id"}}
                }
            }),
            _ => kiln_value::text::json(value).into(),
        }
    }

    /// Whether there is a server of this name.
    pub(super) fn is_server_name(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| is_server(node))
    }
}

/// The policy of a server group: what the property says, else what the name of the type says.
fn placement(policy: &Policy) -> &str {
    let named = policy.properties.as_ref().and_then(|properties| properties.get("policy"));
    let named = named.and_then(|named| named.as_str().or_else(|| named.at(0)?.as_str()));
    let known = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"];
    if let Some(named) = named.and_then(|named| known.into_iter().find(|known| *known == named)) {
        return named;
    }
    let lower = policy.type_name.to_ascii_lowercase();
    if lower.contains("anti") { "anti-affinity" } else { "affinity" }
}
