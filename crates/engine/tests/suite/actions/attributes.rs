//! The attributes of a resource, as `resource show` reads them.

use kiln_stack::LoadedStack;
use kiln_value::value;

use crate::actions::bench::{Bench, sources};

/// As in Heat: attributes beside the whole object take further requests, and a URL of a console is created by reading it.
#[tokio::test]
async fn attributes_beside_a_whole_object_are_not_read() {
    let bench = Bench::new().await;
    let resources = value!({
        "whole": {"type": "Test::Thing", "properties": {"word": "whole"}},
        "plain": {"type": "Test::Thing", "properties": {"word": "plain"}},
    });
    let stack = bench.create(&sources(resources, &value!({}), &[])).await;
    let view = LoadedStack::load(&bench.backends, stack.id).await.expect("read").expect("there");
    let shown = async |name: &str| {
        let attributes = view.attributes(name, &["show".to_owned()]).await;
        attributes.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(shown("whole").await, ["show"]);
    assert_eq!(shown("plain").await, ["secret", "show"]);
}
