//! Updates of groups that keep to a saved plan.

use std::time::Duration;

use kiln_resource::{PlanId, StackId, State, Status};
use kiln_stack::LoadedStack;
use kiln_store::{HealthMark, MessageBody, NewPlan, Plan, Planned, Stack, StackRequest};
use kiln_value::value;
use kiln_view::preview;

use crate::groups::bench::Bench;
use crate::stack::save_plan;

const MEMBER: &str = "{heat_template_version: '2018-08-31', parameters: {v: {type: string, default: x}}, resources: {
  one: {type: 'OS::Heat::TestResource', properties: {value: {get_param: v}}}, two: {type: 'OS::Heat::RandomString'}}}";

fn template(resources: &str) -> String {
    format!("{{heat_template_version: '2018-08-31', resources: {{{resources}}}}}")
}

/// A group of this size whose members have this value and change in batches.
fn numbered(count: &str, value: &str) -> String {
    template(&format!(
        "n: {{type: 'OS::Heat::TestResource', properties: {{value: '{value}'}}}},
         g: {{type: 'OS::Heat::ResourceGroup',
         update_policy: {{rolling_update: {{max_batch_size: 1, min_in_service: 2, pause_time: 60}}}},
         properties: {{count: {count}, resource_def: {{type: member.yaml, properties: {{v: '{value}'}}}}}}}}"
    ))
}

fn scaling(size: u32, value: &str) -> String {
    template(&format!(
        "g: {{type: 'OS::Heat::AutoScalingGroup', properties: {{min_size: 1, max_size: 9, desired_capacity: {size},
         rolling_updates: {{max_batch_size: 1, min_in_service: 2, pause_time: 60}},
         resource: {{type: member.yaml, properties: {{v: '{value}'}}}}}}}},
         up: {{type: 'OS::Heat::ScalingPolicy', properties: {{auto_scaling_group_id: {{get_resource: g}},
         adjustment_type: change_in_capacity, scaling_adjustment: 1}}}}"
    ))
}

/// A group whose members hold a group.
fn deep(size: u32, value: &str) -> String {
    let inner = "{type: 'OS::Heat::AutoScalingGroup', properties: {min_size: 1, max_size: 9, desired_capacity: 2, \
                 resource: {type: member.yaml, properties: {v: VALUE}}}}"
        .replace("VALUE", value);
    template(&format!(
        "g: {{type: 'OS::Heat::AutoScalingGroup', properties: {{min_size: 1, max_size: 9, desired_capacity: {size},
         resource: {inner}}}}}"
    ))
}

/// The stack after an update that keeps to the plan which is made before `meanwhile`.
async fn executed(bench: &Bench, id: StackId, template: &str, meanwhile: impl AsyncFnOnce()) -> Stack {
    let files = [("member.yaml", MEMBER)];
    let preview = bench.preview_with(id, template, &files).await;
    let plan = save_plan(&bench.backends, &preview).await;
    meanwhile().await;
    bench.update_planned(id, template, &files, plan).await;
    bench.settled(id).await
}

#[tokio::test(start_paused = true)]
async fn updates_of_groups_are_executed_as_planned() {
    let awaited = |value: &str| numbered("{get_attr: [n, output]}", value);
    let table: [(&str, &str, &str); 9] = [
        // `min_in_service` needs a third member for the time of the update.
        ("members of a new definition", &numbered("2", "1"), &numbered("2", "2")),
        ("more members", &numbered("2", "1"), &numbered("4", "1")),
        ("fewer members of a new definition", &numbered("4", "1"), &numbered("2", "2")),
        ("a size that is known later", &awaited("1"), &awaited("3")),
        ("a new group", &template(""), &numbered("2", "1")),
        ("no group", &numbered("2", "1"), &template("")),
        ("a scaling group in batches", &scaling(2, "1"), &scaling(3, "2")),
        ("a new scaling group", &template(""), &scaling(2, "1")),
        ("groups in new members", &deep(1, "1"), &deep(3, "2")),
    ];
    for (what, before, after) in table {
        let bench = Bench::new();
        let engine = bench.engine();
        let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
        bench.completed(id).await;
        bench.update_with(id, before, &[("member.yaml", MEMBER)]).await;
        bench.completed(id).await;
        let stack = executed(&bench, id, after, async || {}).await;
        assert_eq!(stack.state.status, Status::Complete, "{what}: {}", stack.reason);
        assert!(stack.details.planned.is_some(), "{what}");
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_replaced_keeps_to_the_plan() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    bench.update_with(id, &scaling(2, "1"), &[("member.yaml", MEMBER)]).await;
    bench.completed(id).await;
    let before = bench.child(id, "g").await;
    mark(&bench, id, "g").await;
    let stack = executed(&bench, id, &scaling(2, "1"), async || {}).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_ne!(bench.child(id, "g").await, before);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn creates_and_deletes_are_executed_as_planned() {
    let awaited = numbered("{get_attr: [n, output]}", "2");
    for template in [numbered("2", "1"), awaited, scaling(2, "1"), deep(2, "1")] {
        let bench = Bench::new();
        let engine = bench.engine();
        let id = bench.create_planned(&template, &[("member.yaml", MEMBER)]).await;
        bench.completed(id).await;
        assert!(!members(&bench, id).await.is_empty());
        let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
        let preview = preview::preview_delete(&bench.backends, &view).await.expect("a plan");
        let plan = save_plan(&bench.backends, &preview).await;
        let mut request = StackRequest::delete(&view.stack, bench.backends.clock.now());
        request.details.planned = Some(Planned { plan, path: String::new() });
        bench.backends.store.request(id, request).await.expect("stored");
        bench.completed(id).await;
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_after_the_plan_of_a_delete_is_not_deleted() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create_planned(&scaling(2, "1"), &[("member.yaml", MEMBER)]).await;
    bench.completed(id).await;
    let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
    let preview = preview::preview_delete(&bench.backends, &view).await.expect("a plan");
    let plan = save_plan(&bench.backends, &preview).await;
    bench.signal(id, "up", value!({"current": "alarm"})).await;
    bench.quiet(id).await;
    let before = members(&bench, id).await;
    let mut request = StackRequest::delete(&view.stack, bench.backends.clock.now());
    request.details.planned = Some(Planned { plan, path: String::new() });
    bench.backends.store.request(id, request).await.expect("stored");
    let stack = bench.settled(id).await;
    assert!(stack.reason.contains("has changed since the plan"), "{}", stack.reason);
    assert_eq!((before.len(), members(&bench, id).await), (3, before));
    engine.kill();
}

/// Marks a resource as unhealthy.
async fn mark(bench: &Bench, stack: StackId, resource: &str) {
    let body = HealthMark { unhealthy: true, reason: Some("it looks bad".to_owned()) };
    bench.send(stack, Some(resource), MessageBody::MarkUnhealthy(body)).await;
    bench.quiet(stack).await;
}

/// The members with the numbers of their requests.
async fn members(bench: &Bench, id: StackId) -> Vec<(String, i64, State)> {
    let rows = bench.backends.store.resources(bench.child(id, "g").await).await.expect("read");
    rows.into_iter().map(|row| (row.name, row.generation, row.state)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_signal_after_the_plan_stops_the_update_before_its_calls() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    bench.update_with(id, &scaling(2, "1"), &[("member.yaml", MEMBER)]).await;
    bench.completed(id).await;
    let mut before = Vec::new();
    let stack = executed(&bench, id, &scaling(2, "2"), async || {
        bench.signal(id, "up", value!({"current": "alarm"})).await;
        bench.quiet(id).await;
        before = members(&bench, id).await;
    })
    .await;
    assert_eq!(before.len(), 3);
    assert!(stack.reason.contains("has changed since the plan"), "{}", stack.reason);
    assert_eq!(members(&bench, id).await, before);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_mark_after_the_plan_stops_the_update_before_its_calls() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    bench.update_with(id, &numbered("2", "1"), &[("member.yaml", MEMBER)]).await;
    bench.completed(id).await;
    let group = bench.child(id, "g").await;
    let stack = executed(&bench, id, &numbered("3", "1"), async || mark(&bench, group, "1").await).await;
    let text = "it would be replaced; the plan keeps it";
    assert!(stack.reason.contains("resources.g.resources[1]: outside of the plan"), "{}", stack.reason);
    assert!(stack.reason.ends_with(text), "{}", stack.reason);
    let events = bench.events(group).await;
    assert!(events.iter().any(|event| event.resource_name == "1" && event.reason.ends_with(text)), "{events:?}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_gone_is_not_executed() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    bench.update_with(id, &numbered("2", "1"), &[("member.yaml", MEMBER)]).await;
    bench.completed(id).await;
    let first = members(&bench, id).await;
    let preview = bench.preview_with(id, &numbered("2", "2"), &[("member.yaml", MEMBER)]).await;
    let plan = save_plan(&bench.backends, &preview).await;
    let store = &bench.backends.store;
    // A store does not delete a plan that is being executed, but it may be restored without it.
    let saved = store.plan(&preview.stack.project, plan).await.expect("read").expect("there");
    let plan = PlanId(bench.backends.chance.uuid());
    let elsewhere = Plan { id: plan, project: "elsewhere".to_owned(), ..saved };
    store.save_plan(&NewPlan { plan: elsewhere, desired: None, parts: Vec::new() }).await.expect("saved");
    bench.update_planned(id, &numbered("2", "2"), &[("member.yaml", MEMBER)], plan).await;
    let stack = bench.settled(id).await;
    assert_eq!(stack.reason, format!("the plan {plan} no longer exists"));
    assert_eq!(members(&bench, id).await, first);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn another_engine_continues_within_the_plan() {
    for is_marked in [false, true] {
        let bench = Bench::new();
        let first = bench.engine();
        let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
        bench.completed(id).await;
        bench.update_with(id, &numbered("2", "1"), &[("member.yaml", MEMBER)]).await;
        bench.completed(id).await;
        let files = [("member.yaml", MEMBER)];
        let preview = bench.preview_with(id, &numbered("2", "2"), &files).await;
        let plan = save_plan(&bench.backends, &preview).await;
        bench.update_planned(id, &numbered("2", "2"), &files, plan).await;
        // The batches are at 0 s, 60 s and 120 s.
        tokio::time::sleep(Duration::from_secs(90)).await;
        first.kill();
        let group = bench.child(id, "g").await;
        if is_marked {
            let body = HealthMark { unhealthy: true, reason: Some("it looks bad".to_owned()) };
            bench.send(group, Some("0"), MessageBody::MarkUnhealthy(body)).await;
        }
        let second = bench.engine();
        let stack = bench.settled(id).await;
        if is_marked {
            assert!(stack.reason.ends_with("it would be replaced; the plan only updates it"), "{}", stack.reason);
        } else {
            assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        }
        second.kill();
    }
}
