//! The number of stacks that an engine works on at the same time is limited. A stack that only waits for its nested
//! stacks does not count, so that these always get their turn. Neither can one project keep all the room.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::Options;
use kiln_resource::{Cloud, Failure};
use kiln_stack::{Clouds, NoCloud};
use kiln_store::{Stack, StackId};

use crate::groups::bench::Bench;

/// A stack with `depth` levels of nested stacks below it.
fn nested(depth: usize) -> String {
    let mut member = "{type: OS::Heat::Value, properties: {value: x}}".to_owned();
    for _ in 0..depth {
        member = format!("{{type: OS::Heat::ResourceGroup, properties: {{count: 2, resource_def: {member}}}}}");
    }
    format!("{{heat_template_version: 2018-08-31, resources: {{top: {member}}}}}")
}

#[tokio::test(start_paused = true)]
async fn more_parents_than_an_engine_takes_do_not_block_their_nested_stacks() {
    let bench = Bench::new();
    let mut stacks = Vec::new();
    for number in 0..5 {
        stacks.push(bench.create_in("demo", &format!("s{number}"), &nested(3)).await);
    }
    let _engine = bench.engine_with(Options { max_stacks: 2, nested_depth: 5, ..Options::default() });
    for stack in stacks {
        bench.completed(stack).await;
    }
}

const NET: &str = "{heat_template_version: 2018-08-31, resources: {one: {type: OS::Neutron::Net}}}";

/// A cloud that takes two seconds to refuse a call.
struct SlowCloud;

#[async_trait]
impl Clouds for SlowCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Arc::new(NoCloud))
    }
}

#[tokio::test(start_paused = true)]
async fn a_project_with_many_stacks_does_not_block_another() {
    let bench = Bench::with_clouds(Arc::new(SlowCloud));
    let big = waiting(&bench, "big", 40).await;
    let _engine = bench.engine_with(Options { max_stacks: 4, ..Options::default() });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let small = bench.create_in("small", "s", NET).await;
    bench.settled(small).await;
    let unfinished = unfinished(&bench, &big).await;
    assert!(unfinished >= 30, "it waited for {} of 40 stacks", 40 - unfinished);
    for stack in big {
        bench.settled(stack).await;
    }
}

/// Stacks of a project that wait for an engine.
async fn waiting(bench: &Bench, project: &str, number: usize) -> Vec<StackId> {
    let mut stacks = Vec::new();
    for number in 0..number {
        stacks.push(bench.create_in(project, &format!("{project}-{number}"), NET).await);
    }
    stacks
}

async fn unfinished(bench: &Bench, stacks: &[StackId]) -> usize {
    let mut unfinished = 0;
    for stack in stacks {
        let stack = bench.backends.store.stack(*stack).await.expect("read").expect("there");
        unfinished += usize::from(stack.is_pending());
    }
    unfinished
}

#[tokio::test(start_paused = true)]
async fn the_first_stack_of_a_project_is_claimed_as_soon_as_there_is_room() {
    let bench = Bench::with_clouds(Arc::new(SlowCloud));
    let big = waiting(&bench, "big", 60).await;
    let _engine = bench.engine_with(Options { max_stacks: 4, ..Options::default() });
    // Others have been looked for, and there were none.
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let before = unfinished(&bench, &big).await;
    for small in waiting(&bench, "small", 1).await {
        bench.settled(small).await;
    }
    let waited_for = before - unfinished(&bench, &big).await;
    assert!(waited_for <= 8, "it waited for {waited_for} stacks");
}

/// Ten thousand stacks of one project are older than the only stack of each of 999 others.
#[tokio::test(start_paused = true)]
async fn a_thousand_projects_share_an_engine() {
    let bench = Bench::with_clouds(Arc::new(SlowCloud));
    let big = waiting(&bench, "big", 10_000).await;
    let mut small = Vec::new();
    for number in 1..1_000 {
        small.extend(waiting(&bench, &format!("p{number}"), 1).await);
    }
    let start = tokio::time::Instant::now();
    let _engine = bench.engine_with(Options::default());
    for stack in small {
        bench.settled(stack).await;
    }
    let (waited, done) = (start.elapsed(), 10_000 - unfinished(&bench, &big).await);
    // The engine has room for 1,000: it fills half of it before it knows that the project is a big one.
    println!("the others waited {waited:?} and for {done} stacks");
    assert!(done <= 1_500 && waited < Duration::from_secs(8), "the others waited {waited:?} and for {done} stacks");
}
