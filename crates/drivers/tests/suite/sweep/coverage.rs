//! Checks that the sweep covers every driver.

use kiln_resource::{DriverKind, ResourceType};

use crate::resource::types;

/// Types with a driver that are not tested, with the reason.
const NOT_SWEPT: [(&str, &str); 6] = [
    ("OS::Heat::Stack", "the simulated cloud has no orchestration service"),
    ("OS::Heat::SoftwareDeployment", "it waits for a signal: see crates/credentials/tests/suite/deployments.rs"),
    ("AWS::IAM::AccessKey", "it reads its user: see crates/kiln/tests/kiln/all_types.rs"),
    ("OS::Heat::SwiftSignal", "it waits for signals and has no object: see tests/suite/openstack/swift.rs"),
    ("OS::Heat::WaitCondition", "it waits for signals and has no object: see crates/credentials/tests/suite/waits.rs"),
    ("OS::Heat::StructuredDeployment", "it waits for a signal: see crates/credentials/tests/suite/deployments.rs"),
];

/// Services of Kiln itself.
const OWN: [&str; 2] = ["orchestration", "cloudformation"];

#[test]
fn every_driver_is_tested_or_listed() {
    let cases = crate::sweep::all();
    let is_swept = |name: &str| cases.iter().any(|(_, case)| case.type_name == name);
    for kind in types() {
        let Some(driver) = kiln_drivers::driver_for(kind) else { continue };
        let is_named = NOT_SWEPT.iter().any(|(name, _)| *name == kind.name);
        let must_be = driver.needs_cloud();
        assert_eq!(must_be, is_swept(&kind.name) != is_named && must_be, "{}", kind.name);
    }
}

/// For a driver that requires no cloud, the engine provides a cloud that refuses every call.
#[test]
fn types_of_services_require_a_cloud() {
    let is_own = |service: &String| OWN.contains(&service.as_str());
    let with_service =
        |kind: &&ResourceType| kind.driver != DriverKind::Placeholder && !kind.service.iter().all(is_own);
    for kind in types().iter().filter(with_service) {
        if let Some(driver) = kiln_drivers::driver_for(kind) {
            assert!(driver.needs_cloud(), "{} needs {:?}", kind.name, kind.service);
            assert!(!driver.is_repeatable(), "{}: its calls may be in progress when they are repeated", kind.name);
        }
    }
}
