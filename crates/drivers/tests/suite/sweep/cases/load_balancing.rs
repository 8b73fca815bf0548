//! Octavia.

use kiln_testcloud::Service;
use kiln_value::{Value, value};

use super::{Case, case};

impl Case {
    /// A load balancer `{balancer}`.
    fn balanced(self) -> Self {
        self.on_network().needs("balancer", "OS::Octavia::LoadBalancer", value!({"vip_subnet": "{subnet}"}))
    }

    /// A listener `{listener}` of a load balancer.
    fn behind_listener(self) -> Self {
        let listener = value!({"loadbalancer": "{balancer}", "protocol": "HTTP", "protocol_port": 80});
        self.balanced().needs("listener", "OS::Octavia::Listener", listener)
    }

    /// A pool `{pool}` of a load balancer.
    fn with_pool(self) -> Self {
        let pool = value!({"loadbalancer": "{balancer}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"});
        self.balanced().needs("pool", "OS::Octavia::Pool", pool)
    }
}

pub(crate) fn load_balancer() -> Case {
    let given = |text: &str| value!({"name": "given", "vip_subnet": "{subnet}", "description": text});
    case("OS::Octavia::LoadBalancer", given("d"))
        .on_network()
        .updated(given("e"))
        .built_by(Service::LoadBalancer, "/lbaas/loadbalancers$")
}

pub(crate) fn listener() -> Case {
    let given = |limit: i64| value!({"loadbalancer": "{balancer}", "protocol": "HTTP", "protocol_port": 80, "connection_limit": limit});
    case("OS::Octavia::Listener", given(5)).balanced().updated(given(6))
}

pub(crate) fn pool() -> Case {
    let given = |persistence: Value| {
        value!({
            "listener": "{listener}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "name": "given",
            "session_persistence": persistence,
        })
    };
    case("OS::Octavia::Pool", given(value!({"type": "APP_COOKIE", "cookie_name": "c"})))
        .behind_listener()
        .updated(given(value!({"type": "SOURCE_IP"})))
}

pub(crate) fn pool_member() -> Case {
    let given = |weight: i64| {
        value!({
            "pool": "{pool}", "address": "10.71.0.9", "protocol_port": 80, "weight": weight, "subnet": "{subnet}",
        })
    };
    case("OS::Octavia::PoolMember", given(1)).with_pool().updated(given(2))
}

pub(crate) fn health_monitor() -> Case {
    let given = |delay: i64| value!({"pool": "{pool}", "type": "HTTP", "delay": delay, "timeout": 3, "max_retries": 2});
    case("OS::Octavia::HealthMonitor", given(5)).with_pool().updated(given(6))
}

pub(crate) fn l7_policy() -> Case {
    let given = |url: &str| value!({"listener": "{listener}", "action": "REDIRECT_TO_URL", "redirect_url": url});
    case("OS::Octavia::L7Policy", given("http://a")).behind_listener().updated(given("http://b"))
}

pub(crate) fn l7_rule() -> Case {
    let given =
        |text: &str| value!({"l7policy": "{policy}", "type": "PATH", "compare_type": "STARTS_WITH", "value": text});
    let policy = value!({"listener": "{listener}", "action": "REJECT"});
    case("OS::Octavia::L7Rule", given("/a"))
        .behind_listener()
        .needs("policy", "OS::Octavia::L7Policy", policy)
        .updated(given("/b"))
        .untold()
}

fn profile() -> Value {
    value!({"flavor_data": "{}", "provider_name": "amphora"})
}

fn zone_data() -> Value {
    value!({"availability_zone_data": "{}", "provider_name": "amphora"})
}

pub(crate) fn lb_flavor() -> Case {
    let given = |text: &str| value!({"flavor_profile": "{profile}", "description": text});
    case("OS::Octavia::Flavor", given("d"))
        .needs("profile", "OS::Octavia::FlavorProfile", profile())
        .updated(given("e"))
        .by_admin()
}

pub(crate) fn lb_flavor_profile() -> Case {
    let given = value!({"flavor_data": "{}", "provider_name": "amphora", "name": "given"});
    case("OS::Octavia::FlavorProfile", profile()).updated(given).by_admin()
}

pub(crate) fn lb_zone() -> Case {
    let given = |text: &str| value!({"availability_zone_profile": "{profile}", "description": text});
    case("OS::Octavia::AvailabilityZone", given("d"))
        .needs("profile", "OS::Octavia::AvailabilityZoneProfile", zone_data())
        .updated(given("e"))
        .by_admin()
}

pub(crate) fn lb_zone_profile() -> Case {
    let given = value!({"availability_zone_data": "{}", "provider_name": "amphora", "name": "given"});
    case("OS::Octavia::AvailabilityZoneProfile", zone_data()).updated(given).by_admin()
}
