//! Rules of alarms.

use kiln_value::{Map, Value, value};

/// Where the rule of an alarm comes from.
pub(super) enum Rule {
    /// `<kind>_rule` with these properties.
    Fields(&'static str, &'static [&'static str]),
    /// A threshold of a meter of Ceilometer.
    Threshold,
    /// Other rules, combined.
    Composite,
    /// The members of a pool.
    LoadBalancerMember,
}

/// The properties of the rule of OS::Aodh::GnocchiResourcesAlarm.
pub(super) const RESOURCES: &[&str] = &[
    "metric",
    "resource_id",
    "resource_type",
    "comparison_operator",
    "evaluation_periods",
    "aggregation_method",
    "granularity",
    "threshold",
];

/// The properties of the rule of OS::Aodh::GnocchiAggregationByMetricsAlarm.
pub(super) const BY_METRICS: &[&str] =
    &["metrics", "comparison_operator", "evaluation_periods", "aggregation_method", "granularity", "threshold"];

/// The properties of the rule of OS::Aodh::GnocchiAggregationByResourcesAlarm.
pub(super) const BY_RESOURCES: &[&str] = &[
    "metric",
    "query",
    "resource_type",
    "comparison_operator",
    "evaluation_periods",
    "aggregation_method",
    "granularity",
    "threshold",
];

/// The properties of the rule of OS::Aodh::Alarm, without its conditions.
const THRESHOLD: &[&str] =
    &["period", "evaluation_periods", "threshold", "statistic", "comparison_operator", "meter_name"];

/// Meters of Nova, whose metadata are those of servers.
const NOVA_METERS: [&str; 33] = [
    "instance",
    "memory",
    "memory.usage",
    "memory.resident",
    "cpu",
    "cpu_util",
    "vcpus",
    "disk.read.requests",
    "disk.read.requests.rate",
    "disk.write.requests",
    "disk.write.requests.rate",
    "disk.read.bytes",
    "disk.read.bytes.rate",
    "disk.write.bytes",
    "disk.write.bytes.rate",
    "disk.device.read.requests",
    "disk.device.read.requests.rate",
    "disk.device.write.requests",
    "disk.device.write.requests.rate",
    "disk.device.read.bytes",
    "disk.device.read.bytes.rate",
    "disk.device.write.bytes",
    "disk.device.write.bytes.rate",
    "disk.root.size",
    "disk.ephemeral.size",
    "network.incoming.bytes",
    "network.incoming.bytes.rate",
    "network.outgoing.bytes",
    "network.outgoing.bytes.rate",
    "network.incoming.packets",
    "network.incoming.packets.rate",
    "network.outgoing.packets",
    "network.outgoing.packets.rate",
];

fn take(body: &mut Map, names: &[&str]) -> Map {
    names.iter().filter_map(|name| Some(((*name).to_owned(), body.shift_remove(*name)?))).collect()
}

impl Rule {
    /// The type of the alarm.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Rule::Fields(kind, _) => kind,
            Rule::Threshold => "threshold",
            Rule::Composite => "composite",
            Rule::LoadBalancerMember => "loadbalancer_member_health",
        }
    }

    /// The properties in the rule of an alarm.
    pub(super) fn live(&self, alarm: &Value, given: &Map) -> Map {
        let rule = alarm.get(&format!("{}_rule", self.kind()));
        let read = |name: &str, wire: &str| Some((name.to_owned(), rule?.get(wire)?.clone()));
        let names = match self {
            Rule::Fields(_, names) => names,
            Rule::Threshold => THRESHOLD,
            Rule::Composite => &[],
            Rule::LoadBalancerMember => {
                let wires =
                    [("pool", "pool_id"), ("stack", "stack_id"), ("autoscaling_group_id", "autoscaling_group_id")];
                return wires.iter().filter_map(|(name, wire)| read(name, wire)).collect();
            }
        };
        let mut live: Map = names.iter().filter_map(|name| read(name, name)).collect();
        let conditions = rule.and_then(|rule| rule.get("query")).cloned().unwrap_or_default();
        match self {
            Rule::Threshold => live.extend(conditions_of_meter(conditions, given)),
            Rule::Fields("gnocchi_aggregation_by_resources_threshold", _) => {
                let given = given.get("query").unwrap_or(&Value::Null);
                live.insert("query".to_owned(), own_query(conditions, given));
            }
            _ => {}
        }
        live
    }

    /// Moves the properties of the rule into the rule.
    pub(super) fn fill(&self, body: &mut Map) {
        let rule = match self {
            Rule::Fields(_, names) => take(body, names),
            Rule::Threshold => threshold(body),
            Rule::Composite => {
                let composite = body.shift_remove("composite_rule").unwrap_or_default();
                let operator = composite.str_at("operator").unwrap_or_default().to_owned();
                Map::from([(operator, composite.get("rules").cloned().unwrap_or_default())])
            }
            Rule::LoadBalancerMember => {
                let mut rule = take(body, &["pool", "stack", "autoscaling_group_id"]);
                for (property, wire) in [("pool", "pool_id"), ("stack", "stack_id")] {
                    if let Some(value) = rule.shift_remove(property) {
                        rule.insert(wire.to_owned(), value);
                    }
                }
                rule
            }
        };
        body.insert(format!("{}_rule", self.kind()), Value::Map(rule));
    }
}

/// The query of the template in the one that Aodh has made of it: it adds conditions for the project.
fn own_query(shown: Value, given: &Value) -> Value {
    let parse = |text: &Value| kiln_yaml::json::parse(text.as_str()?).ok();
    let (Some(whole), Some(own)) = (parse(&shown), parse(given)) else { return shown };
    let parts = whole.get("and").and_then(Value::as_list).unwrap_or_default();
    if whole == own || parts.contains(&own) { given.clone() } else { shown }
}

/// Whether Aodh has added a condition, for the project of the alarm.
fn is_of_project(condition: &Value) -> bool {
    matches!(condition.str_at("field"), Some("project" | "project_id"))
}

/// The metadata and the other conditions of a threshold.
fn conditions_of_meter(shown: Value, given: &Map) -> Map {
    let Value::List(mut conditions) = shown else { return Map::new() };
    let prefix = metadata_prefix(given.get("meter_name"));
    let mut metadata = Map::new();
    for key in given.get("matching_metadata").and_then(Value::as_map).into_iter().flat_map(Map::keys) {
        let field = metadata_field(prefix, key);
        let at = conditions.iter().position(|condition| condition.str_at("field") == Some(&field));
        let value = at.map(|at| conditions.remove(at)).and_then(|condition| condition.get("value").cloned());
        metadata.insert(key.clone(), value.unwrap_or_default());
    }
    conditions.retain(|condition| !is_of_project(condition));
    Map::from([("matching_metadata".to_owned(), metadata.into()), ("query".to_owned(), conditions.into())])
}

/// Ceilometer has the metadata of servers and those of other resources at different places.
fn metadata_prefix(meter: Option<&Value>) -> &'static str {
    let meter = meter.map(kiln_value::text::str).unwrap_or_default();
    if NOVA_METERS.contains(&meter.as_str()) { "user_metadata." } else { "metering." }
}

fn metadata_field(prefix: &str, key: &str) -> String {
    let key = key.strip_prefix("metadata.").unwrap_or(key);
    let bare = ["metering.", "user_metadata."].iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
    format!("metadata.{prefix}{bare}")
}

/// The rule of a threshold: the metadata to match are further conditions.
fn threshold(body: &mut Map) -> Map {
    let prefix = metadata_prefix(body.get("meter_name"));
    let mut rule = take(body, THRESHOLD);
    let mut query = match body.shift_remove("query") {
        Some(Value::List(query)) => query,
        _ => Vec::new(),
    };
    let metadata = body.shift_remove("matching_metadata").unwrap_or_default();
    for (key, value) in metadata.as_map().into_iter().flatten() {
        let (field, text) = (metadata_field(prefix, key), kiln_value::text::str(value));
        query.push(value!({"field": field, "op": "eq", "value": text}));
    }
    if !query.is_empty() {
        rule.insert("query".to_owned(), Value::List(query));
    }
    rule
}
