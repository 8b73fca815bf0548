//! A small template cannot make values that exhaust the memory of an engine.

use std::fmt::Write as _;

use kiln_resource::Status;
use kiln_stack::LoadedStack;

use super::bench::Bench;

/// `v0` has 1,000 characters, each following one ten times as many as the one before.
fn chain(length: usize) -> String {
    let text = "x".repeat(1000);
    let mut template = format!(
        "heat_template_version: 2018-08-31\nresources:\n  v0: {{type: OS::Heat::Value, properties: {{value: {text}}}}}\n"
    );
    for at in 1..length {
        let before = format!("{{get_attr: [v{}, value]}}", at - 1);
        let ten = vec![before; 10].join(", ");
        writeln!(template, "  v{at}: {{type: OS::Heat::Value, properties: {{value: {{list_join: ['', [{ten}]]}}}}}}")
            .expect("a text");
    }
    template
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_values_fails_where_it_becomes_too_large() {
    let bench = Bench::new();
    let _engine = bench.engine();
    let id = bench.create(&chain(12), None).await;
    let stack = bench.settled(id).await;
    assert_eq!(stack.state.status, Status::Failed);
    assert!(
        stack.reason.contains("resources.v4: Request limit exceeded: The properties and metadata of a resource have"),
        "{}",
        stack.reason
    );
}

/// Each value is small enough, but not all together.
#[tokio::test(start_paused = true)]
async fn the_resources_of_a_stack_have_a_total_size() {
    let bench = Bench::new();
    let _engine = bench.engine();
    let mut template = chain(4);
    for at in 0..100 {
        writeln!(template, "  w{at}: {{type: OS::Heat::Value, properties: {{value: {{get_attr: [v3, value]}}}}}}")
            .expect("a text");
    }
    let id = bench.create(&template, None).await;
    let stack = bench.settled(id).await;
    assert_eq!(stack.state.status, Status::Failed);
    assert!(stack.reason.contains("of the resources of a stack have"), "{}", stack.reason);
    let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
    let made: usize = view.resources().map(|row| row.definition.as_ref().map_or(0, |one| one.size())).sum();
    assert!(made < 70 << 20, "{made}");
}

#[tokio::test(start_paused = true)]
async fn the_outputs_of_a_stack_have_a_total_size() {
    let bench = Bench::new();
    let _engine = bench.engine();
    let mut template = chain(4);
    template.push_str("outputs:\n");
    for at in 0..50 {
        writeln!(template, "  o{at}: {{value: {{get_attr: [v3, value]}}}}").expect("a text");
    }
    let id = bench.create(&template, None).await;
    bench.settled(id).await;
    let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
    let outputs = view.outputs(None).await;
    let with_value = outputs.iter().filter(|output| output.error.is_none()).count();
    assert_eq!((with_value, outputs.len()), (4, 50));
    assert!(outputs[49].error.as_deref().is_some_and(|error| error.contains("The outputs of a stack have")));
    // One of them can be read.
    assert_eq!(view.outputs(Some("o49")).await[0].error, None);
}

#[tokio::test(start_paused = true)]
async fn the_members_of_a_group_have_a_total_size() {
    let member = format!("{{type: OS::Heat::Value, properties: {{value: {}}}}}", "x".repeat(400_000));
    let groups = [
        format!("{{type: OS::Heat::ResourceGroup, properties: {{count: 900, resource_def: {member}}}}}"),
        format!(
            "{{type: OS::Heat::AutoScalingGroup, properties: {{min_size: 900, max_size: 900, resource: {member}}}}}"
        ),
        format!(
            "{{type: OS::Heat::ResourceChain, properties: {{resources: [{}], resource_properties: {{value: {}}}}}}}",
            vec!["OS::Heat::Value"; 900].join(", "),
            "x".repeat(400_000)
        ),
    ];
    for group in groups {
        let bench = Bench::new();
        let _engine = bench.engine();
        let template = format!("heat_template_version: 2018-08-31\nresources:\n  group: {group}\n");
        let id = bench.create(&template, None).await;
        let stack = bench.settled(id).await;
        assert_eq!(stack.state.status, Status::Failed);
        assert!(stack.reason.contains("The definitions of the members of a group have"), "{}", stack.reason);
    }
}

/// A config may be a part of a message many times.
#[tokio::test(start_paused = true)]
async fn the_parts_of_a_message_have_a_total_size() {
    let bench = Bench::new();
    let _engine = bench.engine();
    let part = "{config: {get_resource: config}}";
    let template = format!(
        "heat_template_version: 2018-08-31\nresources:\n  config: {{type: OS::Heat::SoftwareConfig, properties: {{config: \
         {}}}}}\n  message: {{type: OS::Heat::MultipartMime, properties: {{parts: [{}]}}}}\n",
        "x".repeat(100_000),
        vec![part; 50].join(", ")
    );
    let id = bench.create(&template, None).await;
    let stack = bench.settled(id).await;
    assert_eq!(stack.state.status, Status::Failed);
    assert!(stack.reason.contains("resources.message: Request limit exceeded: The parts have"), "{}", stack.reason);
}
