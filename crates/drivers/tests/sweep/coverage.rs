//! No driver escapes the sweep unnoticed.

use kiln_resource::DriverKind;

use crate::player::types;

/// Types with a driver that are not swept, and why.
const NOT_SWEPT: [(&str, &str); 1] = [("OS::Heat::Stack", "the simulated cloud has no orchestration service")];

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

/// The engine gives a pure driver no cloud.
#[test]
fn what_needs_a_service_is_not_pure() {
    for kind in types().iter().filter(|kind| kind.driver != DriverKind::Placeholder && !kind.service.is_empty()) {
        let is_pure = kiln_drivers::driver_for(kind).is_some_and(|driver| driver.is_pure());
        assert!(!is_pure, "{} needs {:?}", kind.name, kind.service);
    }
}
