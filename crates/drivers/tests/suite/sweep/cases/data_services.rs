//! Barbican, Designate, Aodh, Swift, Zaqar, Mistral, Manila, Magnum, Blazar, Ironic.

use kiln_testcloud::Service;
use kiln_value::{Value, value};

use super::{Case, case};

fn secret(text: &str) -> Value {
    value!({"payload": text})
}

pub(crate) fn barbican_secret() -> Case {
    case("OS::Barbican::Secret", value!({"name": "given", "payload": "text", "secret_type": "passphrase"})).untold()
}

pub(crate) fn barbican_order() -> Case {
    let given = value!({"type": "key", "algorithm": "aes", "bit_length": 256});
    case("OS::Barbican::Order", given).untold().built_by(Service::KeyManager, "/orders$")
}

impl Case {
    fn with_secrets(self) -> Self {
        self.needs("one", "OS::Barbican::Secret", secret("a")).needs("two", "OS::Barbican::Secret", secret("b"))
    }
}

pub(crate) fn generic_container() -> Case {
    let given = value!({"secrets": [{"name": "a", "ref": "{one}"}, {"name": "b", "ref": "{two}"}]});
    case("OS::Barbican::GenericContainer", given).with_secrets().untold()
}

pub(crate) fn certificate_container() -> Case {
    let given = value!({"name": "given", "certificate_ref": "{one}", "private_key_ref": "{two}"});
    case("OS::Barbican::CertificateContainer", given).with_secrets().untold()
}

pub(crate) fn rsa_container() -> Case {
    let given = value!({"public_key_ref": "{one}", "private_key_ref": "{two}"});
    case("OS::Barbican::RSAContainer", given).with_secrets().untold()
}

fn zone(ttl: i64) -> Value {
    value!({"name": "sweep.test.", "email": "a@sweep.test", "ttl": ttl})
}

pub(crate) fn dns_zone() -> Case {
    case("OS::Designate::Zone", zone(60)).updated(zone(70)).built_by(Service::Dns, "/zones$")
}

pub(crate) fn dns_record_set() -> Case {
    let given = |address: &str| value!({"zone": "sweep.test.", "name": "www", "type": "A", "records": [address]});
    case("OS::Designate::RecordSet", given("10.0.0.1"))
        .needs("zone", "OS::Designate::Zone", zone(60))
        .updated(given("10.0.0.2"))
}

fn actions(url: &str) -> Value {
    value!({"alarm_actions": [url], "alarm_queues": ["a queue"], "enabled": true})
}

fn alarm_case(kind: &'static str, rule: &Value) -> Case {
    let given = |url: &str| {
        let mut all = actions(url).as_map().expect("a map").clone();
        all.extend(rule.as_map().expect("a map").clone());
        Value::Map(all)
    };
    case(kind, given("http://one")).updated(given("http://two"))
}

pub(crate) fn alarm() -> Case {
    let query = value!([{"field": "resource_id", "op": "eq", "value": "x"}]);
    let metadata = value!({"metering.stack": "s", "metadata.user_metadata.a": 1});
    let given = value!({"meter_name": "cpu_util", "threshold": 50, "query": query, "matching_metadata": metadata});
    alarm_case("OS::Aodh::Alarm", &given)
}

pub(crate) fn composite_alarm() -> Case {
    let rule = |metric: &str| value!({"type": "gnocchi_resources_threshold", "metric": metric});
    let rules = value!([(rule("a")), (rule("b"))]);
    alarm_case("OS::Aodh::CompositeAlarm", &value!({"composite_rule": {"operator": "or", "rules": rules}}))
}

pub(crate) fn event_alarm() -> Case {
    alarm_case("OS::Aodh::EventAlarm", &value!({"event_type": "compute.instance.update"}))
}

pub(crate) fn gnocchi_metrics_alarm() -> Case {
    alarm_case("OS::Aodh::GnocchiAggregationByMetricsAlarm", &value!({"metrics": ["m"], "threshold": 5}))
}

pub(crate) fn gnocchi_aggregate_alarm() -> Case {
    let given = value!({"metric": "m", "query": "{}", "resource_type": "instance", "threshold": 5});
    alarm_case("OS::Aodh::GnocchiAggregationByResourcesAlarm", &given)
}

pub(crate) fn gnocchi_resource_alarm() -> Case {
    let given = value!({"metric": "m", "resource_id": "r", "resource_type": "instance", "threshold": 5});
    alarm_case("OS::Aodh::GnocchiResourcesAlarm", &given)
}

pub(crate) fn member_health_alarm() -> Case {
    let pool = value!({"loadbalancer": "{balancer}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"});
    let given = value!({"pool": "{pool}", "stack": "s", "autoscaling_group_id": "g"});
    let balancer = value!({"vip_subnet": "{subnet}"});
    alarm_case("OS::Aodh::LBMemberHealthAlarm", &given)
        .on_network()
        .needs("balancer", "OS::Octavia::LoadBalancer", balancer)
        .needs("pool", "OS::Octavia::Pool", pool)
}

pub(crate) fn prometheus_alarm() -> Case {
    alarm_case("OS::Aodh::PrometheusAlarm", &value!({"query": "up", "threshold": 1}))
}

pub(crate) fn swift_container() -> Case {
    let given = value!({
        "name": "given", "X-Container-Read": ".r:*", "X-Container-Meta": {"web-index": "i"},
    });
    case("OS::Swift::Container", given)
}

pub(crate) fn swift_signal_handle() -> Case {
    case("OS::Heat::SwiftSignalHandle", value!({})).keeping("endpoint")
}

pub(crate) fn zaqar_queue() -> Case {
    case("OS::Zaqar::Queue", value!({"metadata": {"a": 1, "b": 2}})).updated(value!({"metadata": {"b": 3, "c": 4}}))
}

pub(crate) fn zaqar_subscription() -> Case {
    let given = |life: i64| value!({"queue_name": "{queue}", "subscriber": "mailto:a@b", "ttl": life});
    case("OS::Zaqar::Subscription", given(60)).needs("queue", "OS::Zaqar::Queue", value!({})).updated(given(70))
}

pub(crate) fn zaqar_signed_url() -> Case {
    let given = value!({"queue": "{queue}", "paths": ["messages"], "methods": ["GET", "POST"], "ttl": 60});
    case("OS::Zaqar::SignedQueueURL", given).needs("queue", "OS::Zaqar::Queue", value!({})).keeping("signature")
}

pub(crate) fn zaqar_trigger() -> Case {
    let given = |text: &str| value!({"queue_name": "{queue}", "workflow_id": "w", "input": {"a": text}});
    case("OS::Zaqar::MistralTrigger", given("x")).needs("queue", "OS::Zaqar::Queue", value!({})).updated(given("y"))
}

pub(crate) fn cron_trigger() -> Case {
    let given = value!({"pattern": "0 1 * * *", "workflow": {"name": "w", "input": {"a": 1}}, "count": 3});
    case("OS::Mistral::CronTrigger", given)
}

pub(crate) fn share_security_service() -> Case {
    let given = |text: &str| value!({"type": "ldap", "name": "given", "description": text, "user": "u"});
    case("OS::Manila::SecurityService", given("d")).updated(given("e"))
}

fn template(public: bool) -> Value {
    value!({
        "image": "cirros", "flavor": "m1.nano", "external_network": "public", "coe": "kubernetes", "public": public,
        "labels": {"a": "b"},
    })
}

pub(crate) fn cluster_template() -> Case {
    case("OS::Magnum::ClusterTemplate", template(false)).updated(template(true)).by_admin()
}

pub(crate) fn bay_model() -> Case {
    let mut named = template(false);
    named.as_map_mut().expect("a map").insert("name".to_owned(), "given".into());
    case("OS::Magnum::BayModel", named).by_admin()
}

pub(crate) fn blazar_host() -> Case {
    case("OS::Blazar::Host", value!({"name": "compute1", "extra_capability": {"gpu": "True"}})).by_admin().untold()
}

pub(crate) fn blazar_lease() -> Case {
    let reservation = value!({"resource_type": "physical:host", "min": 1, "max": 1});
    let given = value!({
        "name": "given", "start_date": "2026-02-01 10:00", "end_date": "2026-02-02 10:00",
        "reservations": [reservation],
    });
    case("OS::Blazar::Lease", given).needs("host", "OS::Blazar::Host", value!({"name": "compute1"})).by_admin()
}

pub(crate) fn ironic_port() -> Case {
    let given = |network: &str| {
        value!({
            "node": "node-1", "address": "52:54:00:11:22:33", "physical_network": network, "pxe_enabled": true,
            "extra": {"a": "b"},
        })
    };
    case("OS::Ironic::Port", given("one")).updated(given("two")).by_admin()
}
