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

    /// The properties in the rule of an alarm. Conditions are left out: Aodh adds some of its own.
    pub(super) fn live(&self, alarm: &Value) -> Map {
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
        let is_plain = |name: &&&str| **name != "query" || self.kind() == "prometheus";
        names.iter().filter(is_plain).filter_map(|name| read(name, name)).collect()
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

/// The rule of a threshold: the metadata to match are further conditions.
fn threshold(body: &mut Map) -> Map {
    let meter = body.get("meter_name").map(kiln_value::text::str).unwrap_or_default();
    let prefix = if NOVA_METERS.contains(&meter.as_str()) { "user_metadata." } else { "metering." };
    let mut rule = take(body, THRESHOLD);
    let mut query = match body.shift_remove("query") {
        Some(Value::List(query)) => query,
        _ => Vec::new(),
    };
    let metadata = body.shift_remove("matching_metadata").unwrap_or_default();
    for (key, value) in metadata.as_map().into_iter().flatten() {
        let key = key.strip_prefix("metadata.").unwrap_or(key);
        let bare = ["metering.", "user_metadata."].iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
        let (field, text) = (format!("metadata.{prefix}{bare}"), kiln_value::text::str(value));
        query.push(value!({"field": field, "op": "eq", "value": text}));
    }
    if !query.is_empty() {
        rule.insert("query".to_owned(), Value::List(query));
    }
    rule
}
