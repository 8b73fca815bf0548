//! The sweep: every driver that the simulated cloud can serve goes through create, update and delete with each call
//! disturbed, each step repeated, each undo repeated, and its engine dead between or within any two. The end must be the
//! same as without, nothing may be there twice, and nothing may be left after the delete.
//!
//! A type is one entry of `cases.rs`; `player.rs` plays the engine's rules. All runs in this process on paused time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod cases;
mod compare;
mod coverage;
mod player;
mod runs;
mod stage;
mod wire;

/// A test of each case.
macro_rules! sweep {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            $crate::runs::sweep($crate::cases::$name()).await;
        })*

        /// The cases, by the name of their test.
        fn all() -> Vec<(&'static str, cases::Case)> {
            vec![$((stringify!($name), cases::$name())),*]
        }
    };
}

sweep!(
    net,
    net_named,
    net_described,
    subnet,
    port,
    port_named,
    router,
    router_interface,
    router_interface_by_port,
    router_gateway,
    floating_ip,
    floating_ip_association,
    security_group,
    security_group_rule,
    security_group_rule_described,
    provider_net,
    qos_policy,
    qos_bandwidth_limit_rule,
    qos_dscp_marking_rule,
    qos_minimum_bandwidth_rule,
    qos_minimum_packet_rate_rule,
    address_scope,
    address_scope_named,
    subnet_pool,
    segment,
    metering_label,
    metering_label_described,
    metering_rule,
    rbac_policy,
    server,
    server_named,
    server_on_subnet,
    server_port_described,
    server_from_volume,
    key_pair,
    key_pair_imported,
    key_pair_saved,
    server_group,
    server_group_named,
    flavor,
    flavor_with_id,
    volume,
    volume_named,
    volume_described,
    volume_in_use,
    volume_attachment,
    web_image,
    web_image_with_id,
    project,
    project_described,
    role,
    role_named,
    region,
    region_with_id,
    service,
    endpoint,
);
