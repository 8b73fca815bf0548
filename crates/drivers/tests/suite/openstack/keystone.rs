//! OS::Keystone::*

use kiln_value::value;

use crate::openstack::ground::Ground;
use crate::resource::Outcome;
use crate::scenarios;

scenarios!(a_project);

async fn a_project(ground: &Ground) {
    let mut project = ground.admin_resource("OS::Keystone::Project", "project");
    project.create(value!({"description": "d"})).await.unwrap();
    let shown = project.attributes(&["name", "domain_id", "enabled"]).await;
    assert_eq!(shown["name"], project.facts.physical_name.as_str().into());
    assert_eq!(shown["domain_id"], "default".into());
    assert_eq!(project.update(value!({"description": "e", "enabled": false})).await.unwrap(), Outcome::Updated);
    assert_eq!(project.attribute("enabled").await, false.into());
    project.delete().await;
}
