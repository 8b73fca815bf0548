//! Long lists.

use kiln_cfn::Options;
use kiln_store::{DesiredText, NewStack, StackId};
use serde_json::Value;
use uuid::Uuid;

use crate::support::App;

/// All entries of a list, page by page; the number of pages.
async fn all(app: &App, action: &str, list: &str, stack: Option<&str>) -> (Vec<Value>, usize) {
    let (mut entries, mut token, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        let mut params = vec![("ContentType", "JSON")];
        params.extend(stack.map(|stack| ("StackName", stack)));
        params.extend(token.as_deref().map(|token| ("NextToken", token)));
        let answer = app.get(action, &params).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let result = answer.json()[format!("{action}Response")][format!("{action}Result")].clone();
        entries.extend(result[list].as_array().expect("a list").iter().cloned());
        pages += 1;
        match result["NextToken"].as_str() {
            Some(next) => token = Some(next.to_owned()),
            None => return (entries, pages),
        }
    }
}

#[tokio::test]
async fn every_entry_is_on_one_page() {
    let app = App::of(&["member", "reader"], Options { page: 2, ..Options::default() }).await;
    for name in ["a", "b", "c", "d", "e"] {
        app.create(name).await;
    }
    for (action, list) in [("ListStacks", "StackSummaries"), ("DescribeStacks", "Stacks")] {
        let (stacks, pages) = all(&app, action, list, None).await;
        let mut names: Vec<&str> = stacks.iter().map(|stack| stack["StackName"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!((names, pages), (vec!["a", "b", "c", "d", "e"], 3), "{action}");
    }
    let (events, pages) = all(&app, "DescribeStackEvents", "StackEvents", None).await;
    let mut ids: Vec<&str> = events.iter().map(|event| event["EventId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), pages), (5, 3));
    let (resources, pages) = all(&app, "ListStackResources", "StackResourceSummaries", Some("a")).await;
    assert_eq!((resources.len(), pages), (1, 1));
}

#[tokio::test]
async fn a_stack_that_cannot_be_read_does_not_hide_the_others() {
    let app = App::new().await;
    for name in ["a", "c"] {
        app.create(name).await;
    }
    let desired = DesiredText { template: "{}".into(), environment: "{}".into(), files: "{}".into() };
    let (id, now) = (StackId(Uuid::from_u128(1)), "2026-11-20T06:52:45Z".parse().unwrap());
    app.store.create_stack(NewStack::new(id, "b".into(), "tenant1".into(), desired, now)).await.unwrap();
    for (action, list) in [("ListStacks", "StackSummaries"), ("DescribeStacks", "Stacks")] {
        let (stacks, _) = all(&app, action, list, None).await;
        let mut shown: Vec<_> =
            stacks.iter().map(|one| (one["StackName"].as_str(), one["StackStatus"].as_str())).collect();
        shown.sort_unstable();
        let expected = ["a", "b", "c"].map(|name| (Some(name), Some("CREATE_IN_PROGRESS")));
        assert_eq!(shown, expected, "{action}");
    }
    let one = app.get("DescribeStacks", &[("StackName", "b")]).await;
    assert_ne!(one.status, 200, "{}", one.text);
}
