//! A type that has only the methods that every type needs.

use std::time::Duration;

use kiln_resource::{Facts, Found, Operation, Step};
use kiln_value::Map;

use crate::world::World;

/// The program answers one call after the other.
#[tokio::test]
async fn calls_of_a_project_that_hang_delay_no_other_project() {
    let world = World::of("plain.py", Duration::from_secs(10)).await;
    let facts = |name: &str, project: &str| {
        let mut facts = World::facts(name, "");
        facts.stack.project_id = project.to_owned();
        facts
    };
    let hangs: Vec<Facts> = (0..40).map(|number| facts(&format!("hangs-{number}"), "one")).collect();
    let mut hang = futures::future::join_all(hangs.iter().map(|facts| world.start(facts, Operation::Create)));
    // They are in progress before the others begin.
    assert!(futures::poll!(&mut hang).is_pending());
    for project in ["two", "three", "four", "two"] {
        let made = facts("it", project);
        let made = world.start(&made, Operation::Create);
        tokio::select! {
            biased;
            made = made => assert_eq!(made, Ok(Step::done().id("one")), "{project}"),
            _ = &mut hang => panic!("{project} waited for the calls of another project"),
        }
    }
}

#[tokio::test]
async fn what_a_type_does_not_have_is_refused_by_name_or_not_needed() {
    let world = World::of("plain.py", Duration::from_secs(10)).await;
    let facts = World::facts("it", "");
    let told = async |facts: &Facts, operation| world.start(facts, operation).await.expect_err("a failure").to_string();
    assert_eq!(world.start(&facts, Operation::Create).await, Ok(Step::done().id("one")));
    let text = "plug-in plain has no method find for Test::Plain".to_owned();
    assert_eq!(world.find(&facts).await, Ok(Found::CannotTell(text)));
    let update = Operation::Update { before: Map::new(), changed: Map::new() };
    let text = "NotSupported: Plug-in plain has no method update for Test::Plain.";
    assert_eq!(told(&facts, update).await, text);
    for operation in [Operation::Check, Operation::Suspend, Operation::Resume, Operation::Snapshot] {
        assert_eq!(world.start(&facts, operation).await, Ok(Step::done()));
    }
    assert_eq!(world.attributes(&facts, &["show"]).await, Ok(Map::new()));

    let method = "PluginError: Plug-in plain, method";
    let waits = told(&World::facts("waits", ""), Operation::Create).await;
    assert_eq!(waits, format!("{method} create: it asks to wait, but the type has no method poll"));
    let nameless = told(&World::facts("nameless", ""), Operation::Create).await;
    assert_eq!(nameless, format!("{method} create: the object has no id at the end of its create"));
    let odd = Facts { physical_id: Some("one".to_owned()), ..World::facts("odd", "") };
    let text = format!("{method} delete: only an update can request a replacement");
    assert_eq!(told(&odd, Operation::Delete).await, text);
    // Nothing was created: nothing is called.
    assert_eq!(world.start(&World::facts("odd", ""), Operation::Delete).await, Ok(Step::done()));
}
