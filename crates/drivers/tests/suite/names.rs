//! Errors for unknown names.

use kiln_cloud::{Connector, Credentials, Options};
use kiln_resource::{Context, Facts, NoSoftware, Operation, properties, shipped};
use kiln_testcloud::Testcloud;
use kiln_value::{Value, value};

/// The failure of a create, as `class: text`.
async fn failure(type_name: &str, given: &Value) -> String {
    let testcloud = Testcloud::builder().in_process();
    let connector = Connector::new(testcloud.transport(), Options::new(testcloud.auth_url().parse().expect("a URL")));
    let demo = testcloud.users().demo;
    let cloud = connector.cloud(&Credentials::password(demo.user, demo.password, demo.project, "Default")).await;
    let kind = shipped::types().expect("definitions").into_iter().find(|kind| kind.name == type_name).expect("a type");
    let driver = kiln_drivers::driver_for(&kind).expect("a driver");
    let given = given.as_map().cloned().unwrap_or_default();
    let facts = Facts {
        name: "it".to_owned(),
        physical_name: "it".to_owned(),
        properties: properties::resolve(&kind.properties, &given).expect("properties"),
        ..Facts::default()
    };
    let cx = Context { cloud: &*cloud, software: &NoSoftware, facts: &facts, now: 0.0, seed: [0; 32], polls: 0 };
    let failure = driver.start(&cx, &Operation::Create).await.expect_err("a failure");
    format!("{}: {}", failure.class, failure.message)
}

#[tokio::test]
async fn a_missing_security_group() {
    let text = "EntityNotFound: The Resource (allow_all) could not be found.";
    let port = value!({"network": "n", "security_groups": ["allow_all"]});
    assert_eq!(failure("OS::Neutron::Port", &port).await, text);
}
