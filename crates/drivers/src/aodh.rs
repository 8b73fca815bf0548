//! OS::Aodh::*: alarms, which differ in their rule.

mod rule;

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, ResourceType};
use kiln_value::{Map, Value};

use crate::call::AODH;
use crate::path;
use crate::rest::{Edit, Shape, shaped};
use rule::Rule;

/// The driver of an Aodh type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    let rule = match resource_type.name.strip_prefix("OS::Aodh::")? {
        "Alarm" => Rule::Threshold,
        "CompositeAlarm" => Rule::Composite,
        "EventAlarm" => Rule::Fields("event", &["event_type", "query"]),
        "LBMemberHealthAlarm" => Rule::LoadBalancerMember,
        "PrometheusAlarm" => Rule::Fields("prometheus", &["comparison_operator", "query", "threshold"]),
        "GnocchiResourcesAlarm" => Rule::Fields("gnocchi_resources_threshold", rule::RESOURCES),
        "GnocchiAggregationByMetricsAlarm" => {
            Rule::Fields("gnocchi_aggregation_by_metrics_threshold", rule::BY_METRICS)
        }
        "GnocchiAggregationByResourcesAlarm" => {
            Rule::Fields("gnocchi_aggregation_by_resources_threshold", rule::BY_RESOURCES)
        }
        _ => return None,
    };
    shaped(resource_type, Alarm(rule))
}

/// An alarm.
struct Alarm(Rule);

/// The actions of a state: given URLs, and queues, for which Aodh creates a trust.
const ACTIONS: [(&str, &str); 3] = [
    ("alarm_actions", "alarm_queues"),
    ("ok_actions", "ok_queues"),
    ("insufficient_data_actions", "insufficient_data_queues"),
];

/// The action that sends a message to a queue.
fn queue_url(queue: &Value) -> Value {
    let name = path::segment(queue.as_str().unwrap_or_default()).replace("%20", "+");
    format!("trust+zaqar://?queue_name={name}").into()
}

impl Alarm {
    /// The body of a request, from the properties.
    fn body(&self, cx: &Context<'_>, properties: &Map) -> Map {
        let mut body: Map =
            properties.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        for (actions, queues) in ACTIONS {
            let list = |name: &str| properties.get(name).and_then(Value::as_list).unwrap_or_default().to_vec();
            let mut urls: Vec<Value> = list(actions).into_iter().filter(Value::is_truthy).collect();
            urls.extend(list(queues).iter().map(queue_url));
            body.shift_remove(queues);
            body.insert(actions.to_owned(), Value::List(urls));
        }
        self.0.fill(&mut body);
        body.insert("type".to_owned(), self.0.kind().into());
        body.insert("name".to_owned(), cx.facts.physical_name.as_str().into());
        body
    }
}

/// Sets whether an alarm is evaluated. Idempotent.
async fn enable(cx: &Context<'_>, id: &str, enabled: bool) -> Result<(), Failure> {
    let path = format!("/v2/alarms/{}", path::segment(id));
    let mut alarm = AODH.get(cx, path.clone()).await?;
    if let Some(alarm) = alarm.as_map_mut() {
        alarm.insert("enabled".to_owned(), enabled.into());
    }
    AODH.put(cx, path, alarm).await.map(|_| ())
}

#[async_trait]
impl Shape for Alarm {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        *body = self.body(cx, &cx.facts.properties);
        Ok(())
    }

    /// An update replaces the whole alarm, with all that Kiln does not know.
    async fn update_body(&self, cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        let id = cx.facts.require_id()?;
        let current = AODH.get(cx, format!("/v2/alarms/{}", path::segment(id))).await?;
        *body = current.as_map().cloned().unwrap_or_default();
        body.extend(self.body(cx, &cx.facts.properties));
        Ok(())
    }

    /// The actions of an alarm are those of the template and those of its queues. A composite rule has another form: it is
    /// compared by what an update would send.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let sent = self.body(cx, &cx.facts.properties);
        for (actions, queues) in ACTIONS {
            let mut urls = object.get(actions).and_then(Value::as_list).unwrap_or_default().to_vec();
            let mut take = |queue: &&Value| {
                let at = urls.iter().position(|url| *url == queue_url(queue));
                at.map(|at| urls.remove(at)).is_some()
            };
            let given = cx.facts.property(queues).as_list().unwrap_or_default();
            let held: Value = given.iter().filter(|queue| take(queue)).cloned().collect();
            live.extend([(queues.to_owned(), held), (actions.to_owned(), urls.into())]);
        }
        if sent.contains_key("composite_rule") && sent.get("composite_rule") == object.get("composite_rule") {
            live.insert("composite_rule".to_owned(), cx.facts.property("composite_rule").clone());
        }
        live.extend(self.0.live(object, &cx.facts.properties));
        // A suspended alarm is disabled.
        if cx.facts.state.0 == "SUSPEND" {
            live.shift_remove("enabled");
        }
        Ok(())
    }

    async fn suspend(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        enable(cx, id, false).await
    }

    async fn resume(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        enable(cx, id, true).await
    }
}
