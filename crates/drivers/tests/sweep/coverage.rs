//! No driver escapes the sweep unnoticed.

use crate::player::types;

/// Types with a driver that are not swept, and why.
const NOT_SWEPT: [(&str, &str); 11] = [
    ("OS::Heat::Stack", "the simulated cloud has no orchestration service"),
    ("OS::Neutron::AddressScope", "the simulated Neutron has no address scopes"),
    ("OS::Neutron::MeteringLabel", "the simulated Neutron has no metering"),
    ("OS::Neutron::MeteringRule", "the simulated Neutron has no metering"),
    ("OS::Neutron::QoSBandwidthLimitRule", "the simulated Neutron has no rules of policies"),
    ("OS::Neutron::QoSDscpMarkingRule", "the simulated Neutron has no rules of policies"),
    ("OS::Neutron::QoSMinimumBandwidthRule", "the simulated Neutron has no rules of policies"),
    ("OS::Neutron::QoSMinimumPacketRateRule", "the simulated Neutron has no rules of policies"),
    ("OS::Neutron::RBACPolicy", "the simulated Neutron has no sharing policies"),
    ("OS::Neutron::Segment", "the simulated Neutron has no segments"),
    ("OS::Neutron::SubnetPool", "the simulated Neutron has no subnet pools"),
];

#[test]
fn every_driver_is_swept_or_named() {
    let cases = crate::all();
    let is_swept = |name: &str| cases.iter().any(|(_, case)| case.type_name == name);
    for kind in types() {
        let Some(driver) = kiln_drivers::driver_for(kind) else { continue };
        let is_named = NOT_SWEPT.iter().any(|(name, _)| *name == kind.name);
        let must_be = !driver.is_pure();
        assert_eq!(must_be, is_swept(&kind.name) != is_named && must_be, "{}", kind.name);
    }
}
