//! Scaling groups and policies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Message, MessageBus};
use kiln_resource::{Failure, StackId, State, Status};
use kiln_store::quota::{Quota, QuotaStore as _};
use kiln_store::{Cancel, HealthMark, MemoryStore, MessageBody};
use kiln_value::{Value, value};
use kiln_view::preview::PlannedChange;

use crate::groups::bench::Bench;

/// A group with a policy; `group` are further properties of the group, `policy` those of the policy.
fn template(value: &str, group: &str, policy: &str) -> String {
    format!(
        "heat_template_version: '2018-08-31'
resources:
  g:
    type: OS::Heat::AutoScalingGroup
    properties:
      {group}
      resource: {{type: 'OS::Heat::TestResource', properties: {{value: {value}, wait_secs: 2}}}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {{get_resource: g}}
      {policy}
  seen: {{type: 'OS::Heat::Value', properties: {{value: {{get_attr: [g, current_size]}}}}}}
outputs:
  size: {{value: {{get_attr: [g, current_size]}}}}
  list: {{value: {{get_attr: [g, outputs_list, output]}}}}
  refs: {{value: {{get_attr: [g, refs]}}}}
  first: {{value: {{get_attr: [g, resource.0.output]}}}}
  map: {{value: {{get_attr: [g, outputs, output]}}}}
"
    )
}

const ONE_MORE: &str = "{adjustment_type: change_in_capacity, scaling_adjustment: 1}";

fn policy(properties: &str) -> String {
    properties.trim_matches(['{', '}']).replace(", ", "\n      ")
}

fn plain(value: &str) -> String {
    template(value, "min_size: 1\n      max_size: 4\n      desired_capacity: 2", &policy(ONE_MORE))
}

/// The names of the members, oldest first.
async fn names(bench: &Bench, stack: StackId) -> Vec<String> {
    let map = bench.outputs(stack).await.get("map").and_then(Value::as_map).cloned().unwrap_or_default();
    map.into_iter().map(|(name, _)| name).collect()
}

async fn size(bench: &Bench, stack: StackId) -> i64 {
    bench.outputs(stack).await.get("size").and_then(Value::as_i64).expect("a number")
}

fn alarm() -> Value {
    value!({"previous": "ok", "current": "alarm", "reason": "hot"})
}

#[tokio::test(start_paused = true)]
async fn a_signal_changes_the_size_while_the_stack_stays_complete() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create(&plain("one"), None).await;
    bench.completed(id).await;
    let before = names(&bench, id).await;
    assert_eq!((before.len(), before[0].len()), (2, 12));
    bench.signal(id, "up", alarm()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let group = bench.row(id, "g").await;
    assert_eq!(group.metadata.get("scaling_in_progress"), Some(&true.into()));
    assert!(group.state.to_string() == "CREATE_COMPLETE" && !bench.settled(id).await.is_pending());
    assert!(bench.signals(id).await.is_empty(), "the event comes at the end");
    bench.quiet(id).await;
    let after = names(&bench, id).await;
    assert_eq!((after.len(), &after[..2]), (3, &before[..]));
    assert_eq!(bench.signals(id).await, ["up COMPLETE alarm state changed from ok to alarm (hot)"]);
    let group = bench.row(id, "g").await;
    assert_eq!(group.metadata.get("scaling_in_progress"), Some(&false.into()));
    let end = group.metadata.get("cooldown_end").and_then(Value::as_map).cloned().expect("an end");
    assert_eq!(end.values().next(), Some(&"change_in_capacity : 1".into()));
    // The stored attributes are those of now; another resource sees them at the next update.
    assert_eq!(group.attributes.get("refs").and_then(Value::as_map).map(|refs| refs.len()), Some(3));
    let stack = bench.settled(id).await;
    assert_eq!((stack.state.to_string().as_str(), stack.generation), ("CREATE_COMPLETE", 1));
    engine.kill();
}

/// The quota of the project, which may change while the service runs.
#[tokio::test(start_paused = true)]
async fn a_group_grows_no_further_than_the_quota_of_its_project() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create(&plain("one"), None).await;
    bench.completed(id).await;
    let project = bench.settled(id).await.project;
    // The stack has the group, two members, the policy and the value.
    for (most, members) in [(Some(5), 2), (Some(6), 3), (Some(-1), 4)] {
        bench.store.set_quotas(&project, &[(Quota::ResourcesPerStack, most)].into()).await.expect("set");
        bench.signal(id, "up", alarm()).await;
        bench.quiet(id).await;
        assert_eq!(size(&bench, id).await, members, "{most:?}");
    }
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn the_oldest_members_leave_first() {
    let bench = Bench::new();
    let engine = bench.engine();
    let group = "min_size: 1\n      max_size: 9\n      desired_capacity: 4";
    let policy = "adjustment_type: exact_capacity\n      scaling_adjustment: 2";
    let id = bench.create(&template("one", group, policy), None).await;
    bench.completed(id).await;
    let before = names(&bench, id).await;
    bench.signal(id, "up", Value::Null).await;
    bench.quiet(id).await;
    assert_eq!(names(&bench, id).await, &before[2..]);
    assert_eq!(bench.signals(id).await, ["up COMPLETE No signal details provided"]);
    // Nothing changes: there is no event.
    bench.signal(id, "up", Value::Null).await;
    bench.quiet(id).await;
    assert_eq!(bench.signals(id).await.len(), 1);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn signals_during_a_change_and_a_cooldown_do_nothing() {
    let bench = Bench::new();
    let engine = bench.engine();
    let group = "min_size: 1\n      max_size: 9\n      cooldown: 100";
    let policy = "adjustment_type: change_in_capacity\n      scaling_adjustment: 1\n      cooldown: 600";
    let id = bench.create(&template("one", group, policy), None).await;
    bench.completed(id).await;
    // The cooldown of the group counts from its create.
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!(size(&bench, id).await, 1);
    tokio::time::sleep(Duration::from_secs(100)).await;
    bench.signal(id, "up", alarm()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!(size(&bench, id).await, 2);
    // The cooldown of the policy counts from the change.
    tokio::time::sleep(Duration::from_secs(500)).await;
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!(size(&bench, id).await, 2);
    tokio::time::sleep(Duration::from_secs(110)).await;
    // The state of the alarm does not matter.
    bench.signal(id, "up", value!({"current": "ok"})).await;
    bench.quiet(id).await;
    assert_eq!(size(&bench, id).await, 3);
    assert_eq!(bench.signals(id).await.len(), 2);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_on_after_the_death_of_an_engine() {
    for delay in [0, 1, 5, 20, 500, 1_000, 2_100, 4_000] {
        let bench = Bench::new();
        let first = bench.engine();
        let id = bench.create(&plain("one"), None).await;
        bench.completed(id).await;
        bench.signal(id, "up", alarm()).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        first.kill();
        let second = bench.engine();
        bench.quiet(id).await;
        assert_eq!(size(&bench, id).await, 3, "{delay}");
        assert_eq!(bench.signals(id).await.len(), 1, "{delay}");
        assert_eq!(bench.row(id, "g").await.metadata.get("scaling_in_progress"), Some(&false.into()), "{delay}");
        bench.signal(id, "up", alarm()).await;
        bench.quiet(id).await;
        assert_eq!(size(&bench, id).await, 4, "{delay}");
        second.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_during_a_change_ends_with_the_size_of_the_template() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create(&plain("one"), None).await;
    bench.completed(id).await;
    bench.signal(id, "up", alarm()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.update(id, &plain("two")).await;
    bench.completed(id).await;
    bench.quiet(id).await;
    let child = bench.child(id, "g").await;
    let members = bench.members(child).await;
    assert!(members.len() == 2 && members.iter().all(|member| member.ends_with("=two")), "{members:?}");
    assert_eq!(bench.row(id, "g").await.metadata.get("scaling_in_progress"), Some(&false.into()));
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!(size(&bench, id).await, 3);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_failed_change_leaves_the_group_usable() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create(&plain("one"), None).await;
    bench.completed(id).await;
    let before = bench.row(id, "g").await.metadata;
    let child = bench.child(id, "g").await;
    bench.signal(id, "up", alarm()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.send(child, None, MessageBody::Cancel(Cancel { interrupt: true, ..Cancel::default() })).await;
    bench.quiet(id).await;
    assert_eq!(bench.settled(child).await.state.to_string(), "UPDATE_FAILED");
    assert!(bench.signals(id).await.is_empty());
    let group = bench.row(id, "g").await;
    assert_eq!((group.state.to_string().as_str(), group.metadata), ("CREATE_COMPLETE", before));
    assert_eq!(size(&bench, id).await, 2);
    // The failed member counts no more, and is repaired.
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!((size(&bench, id).await, bench.signals(id).await.len()), (3, 1));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn failed_members_leave_first() {
    let bench = Bench::new();
    let engine = bench.engine();
    let group = "min_size: 1\n      max_size: 4\n      desired_capacity: 3";
    let one_less = "adjustment_type: change_in_capacity\n      scaling_adjustment: -1";
    let id = bench.create(&template("one", group, one_less), None).await;
    bench.completed(id).await;
    let child = bench.child(id, "g").await;
    let before = names(&bench, id).await;
    bench.mark_unhealthy(child, &before[2]).await;
    assert_eq!((size(&bench, id).await, names(&bench, id).await), (2, before[..2].to_vec()));
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!(names(&bench, id).await, &before[1..2]);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn unhealthy_members_are_replaced_at_the_next_update() {
    let bench = Bench::new();
    let engine = bench.engine();
    let id = bench.create(&plain("one"), None).await;
    bench.completed(id).await;
    let child = bench.child(id, "g").await;
    let name = names(&bench, id).await.remove(0);
    let object = bench.row(child, &name).await.id;
    bench.mark_unhealthy(child, &name).await;
    assert_eq!(bench.row(child, &name).await.state, State::new(kiln_resource::Action::Check, Status::Failed));
    bench.update(id, &plain("one")).await;
    bench.completed(id).await;
    assert_eq!(size(&bench, id).await, 2);
    let replaced = bench.row(child, &name).await;
    assert!(replaced.id != object && replaced.state.status == Status::Complete);
    engine.kill();
}

/// Aodh marks a member and updates the stack at once: the mark counts, even if no engine has seen it yet.
#[tokio::test(start_paused = true)]
async fn a_mark_counts_in_the_update_that_follows_it() {
    let bench = Bench::new();
    let engine = bench.engine();
    let plain = template("one", "min_size: 1\n      max_size: 4", &policy(ONE_MORE));
    let id = bench.create(&plain, None).await;
    bench.completed(id).await;
    for size_wanted in [2, 3] {
        bench.signal(id, "up", alarm()).await;
        bench.quiet(id).await;
        assert_eq!(size(&bench, id).await, size_wanted);
    }
    let (child, before) = (bench.child(id, "g").await, names(&bench, id).await);
    engine.kill();
    bench.send_mark(child, &before[0]).await;
    bench.update(id, &plain).await;
    let engine = bench.engine();
    bench.completed(id).await;
    assert_eq!(names(&bench, id).await, &before[1..]);
    engine.kill();

    let bench = Bench::new();
    let engine = bench.engine();
    let plain = "heat_template_version: 2018-08-31\nresources: {text: {type: OS::Heat::RandomString}}\n";
    let id = bench.create(plain, None).await;
    bench.completed(id).await;
    let marked = bench.row(id, "text").await.id;
    engine.kill();
    bench.send_mark(id, "text").await;
    bench.update(id, plain).await;
    let engine = bench.engine();
    bench.completed(id).await;
    assert!(bench.row(id, "text").await.id != marked, "the marked resource is replaced");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn rolling_updates_replace_members_one_by_one() {
    let bench = Bench::new();
    let engine = bench.engine();
    let rolling = "rolling_updates: {max_batch_size: 1, min_in_service: 2, pause_time: 30}";
    let group = format!("min_size: 1\n      max_size: 4\n      desired_capacity: 2\n      {rolling}");
    let of = |value: &str| template(value, &group, &policy(ONE_MORE));
    let id = bench.create(&of("one"), None).await;
    let created = bench.completed(id).await;
    let before = names(&bench, id).await;
    bench.update(id, &of("two")).await;
    let mut most = 0;
    while bench.backends.store.stack(id).await.expect("read").expect("there").is_pending() {
        most = most.max(bench.backends.store.resources(bench.child(id, "g").await).await.expect("read").len());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let done = bench.completed(id).await;
    assert!((60.0..80.0).contains(&(done - created)), "{done}");
    assert_eq!(most, 3);
    let members = bench.members(bench.child(id, "g").await).await;
    assert!(members.len() == 2 && members.iter().all(|member| member.ends_with("=two")), "{members:?}");
    // One was updated, one left, one is new.
    let after = names(&bench, id).await;
    assert_eq!(after.iter().filter(|name| before.contains(name)).count(), 1);
    // Another update without a new definition replaces none.
    bench.update(id, &of("two")).await;
    bench.completed(id).await;
    assert_eq!(names(&bench, id).await, after);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_group_does_not_grow_beyond_the_limit_of_resources() {
    let bench = Bench::new();
    let engine = bench.engine();
    let policy = "adjustment_type: exact_capacity\n      scaling_adjustment: 998";
    let id = bench.create(&template("one", "min_size: 1\n      max_size: 5000", policy), None).await;
    bench.completed(id).await;
    // With the three resources of the stack itself, that is one too many.
    bench.signal(id, "up", alarm()).await;
    bench.quiet(id).await;
    assert_eq!((size(&bench, id).await, bench.signals(id).await.len()), (1, 0));
    engine.kill();
}

/// The plan knows the names of the members that stay, leave and come.
#[tokio::test(start_paused = true)]
async fn the_plan_of_an_update_is_what_happens() {
    let bench = Bench::new();
    let engine = bench.engine();
    for (before, after, batches) in
        [(2, 4, "{max_batch_size: 1}"), (4, 2, "{max_batch_size: 3}"), (3, 3, "{max_batch_size: 2, min_in_service: 3}")]
    {
        let of = |value: &str, size: u32| {
            let group = format!("min_size: 1\n      max_size: 9\n      desired_capacity: {size}");
            template(value, &format!("{group}\n      rolling_updates: {batches}"), &policy(ONE_MORE))
        };
        let id = bench.create(&of("one", before), None).await;
        bench.completed(id).await;
        let there = names(&bench, id).await;
        for (value, size) in [("two", before), ("two", after), ("three", after)] {
            let planned = bench.planned(id, &of(value, size)).await;
            let was = names(&bench, id).await;
            bench.update(id, &of(value, size)).await;
            bench.completed(id).await;
            let is = names(&bench, id).await;
            let mut actual: Vec<String> =
                is.iter().filter(|name| !was.contains(name)).map(|name| format!("+{name}")).collect();
            actual.extend(was.iter().filter(|name| !is.contains(name)).map(|name| format!("-{name}")));
            actual.sort();
            assert_eq!(planned, actual, "{there:?} {value} {size} {batches}");
        }
        bench.ask(id, kiln_resource::Action::Delete).await;
    }
    engine.kill();
}

impl Bench {
    /// The members that a plan adds and deletes.
    async fn planned(&self, stack: StackId, template: &str) -> Vec<String> {
        let preview = self.preview(stack, template).await;
        let group = preview.entries.into_iter().find(|entry| entry.name == "g").and_then(|entry| entry.nested);
        let entries = group.expect("a nested stack").entries;
        let mut planned: Vec<String> = entries
            .iter()
            .filter_map(|entry| match entry.change {
                PlannedChange::Added => Some(format!("+{}", entry.name)),
                PlannedChange::Deleted => Some(format!("-{}", entry.name)),
                _ => None,
            })
            .collect();
        planned.sort();
        planned
    }

    async fn mark_unhealthy(&self, stack: StackId, resource: &str) {
        self.send_mark(stack, resource).await;
        self.quiet(stack).await;
    }

    async fn send_mark(&self, stack: StackId, resource: &str) {
        let body = HealthMark { unhealthy: true, reason: Some("sick".to_owned()) };
        self.send(stack, Some(resource), MessageBody::MarkUnhealthy(body)).await;
    }
}

/// A message bus that keeps what it is told.
#[derive(Default)]
struct Bus(Mutex<Vec<Message>>);

#[async_trait]
impl MessageBus for Bus {
    async fn send(&self, messages: &[Message]) -> Result<(), Failure> {
        self.0.lock().expect("whole").extend_from_slice(messages);
        Ok(())
    }
}

impl Bus {
    /// What was told about changes of size: type, kind, amount, capacity and text.
    async fn scalings(&self) -> Vec<String> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut told = Vec::new();
        for message in self.0.lock().expect("whole").iter() {
            let Some(kind) = message.event_type.strip_prefix("orchestration.autoscaling.") else { continue };
            let payload = &message.payload;
            let values = ["adjustment_type", "adjustment", "capacity", "message"]
                .map(|key| kiln_value::text::str(payload.get(key).expect(key)));
            let group = payload.get("groupname").and_then(Value::as_str).expect("a group");
            assert!(group.starts_with("s-g-"), "{group}");
            told.push(format!("{kind}: {}", values.join(", ")).replace(group, "G"));
            assert_eq!(payload.get("stack_name"), Some(&"s".into()));
            assert_eq!(message.error, kind == "error");
        }
        told
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_size_are_announced_when_they_start_and_end() {
    let mut bench = Bench::new();
    let clock = Arc::clone(&bench.backends.clock);
    bench.backends.store = Arc::new(MemoryStore::new(Arc::new(move || clock.now())).with_notifications());
    let bus = Arc::<Bus>::default();
    let start = || bench.engine_of(|engine| engine.with_bus(Arc::clone(&bus) as Arc<dyn MessageBus>));
    let engine = start();
    let id = bench.create(&plain("one").replace("wait_secs: 2", "wait_secs: 20"), None).await;
    bench.completed(id).await;
    assert_eq!(bus.scalings().await, [""; 0]);
    bench.signal(id, "up", alarm()).await;
    let started = "start: ChangeInCapacity, 1, 2, Start resizing the group G";
    assert_eq!(bus.scalings().await, [started]);
    // Another engine completes the change and tells of its end.
    engine.kill();
    let _engine = start();
    bench.quiet(id).await;
    assert_eq!(bus.scalings().await, [started, "end: ChangeInCapacity, 1, 3, End resizing the group G"]);
}
