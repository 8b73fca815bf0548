//! The number of stacks that an engine works on at the same time is limited. A stack that only waits for its nested
//! stacks does not count, so that these always get their turn. Neither can one project keep all the room.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::Options;
use kiln_resource::{Cloud, Failure};
use kiln_stack::{Clouds, NoCloud};
use kiln_store::Stack;

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
    let template = "{heat_template_version: 2018-08-31, resources: {one: {type: OS::Neutron::Net}}}";
    let mut big = Vec::new();
    for number in 0..40 {
        big.push(bench.create_in("big", &format!("b{number}"), template).await);
    }
    let _engine = bench.engine_with(Options { max_stacks: 4, ..Options::default() });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let small = bench.create_in("small", "s", template).await;
    bench.settled(small).await;
    let mut unfinished = 0;
    for stack in &big {
        let stack = bench.backends.store.stack(*stack).await.expect("read").expect("there");
        unfinished += usize::from(stack.is_pending());
    }
    assert!(unfinished >= 30, "it waited for {} of 40 stacks", 40 - unfinished);
    for stack in big {
        bench.settled(stack).await;
    }
}
