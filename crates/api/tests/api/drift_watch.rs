//! What regular comparisons have found is listed for those who may know it.

use std::sync::Arc;

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_service::Limits;
use kiln_store::{DriftRepair, DriftReport, DriftStatus, DriftStore as _, DriftedResource, MemoryStore};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{App, random_string, stack_of, user};

const DRIFT: &str = "/v1/tenant1/drift";
const SCHEDULES: &str = "/v1/tenant1/drift_schedules";
const TTL: std::time::Duration = std::time::Duration::from_mins(1);

fn app(store: &MemoryStore, caller: Caller) -> App {
    App::on(Arc::new(store.clone()), caller, Limits::default()).with_extensions(store)
}

#[tokio::test]
async fn what_was_found_is_listed_for_the_project_and_by_policy_for_all() {
    let store = MemoryStore::new(Arc::new(|| "2026-11-20T06:52:45Z".parse().expect("a time")));
    let made = app(&store, user(&["member", "reader"]));
    let stack = stack_of(&made.create("s", random_string()).await);
    made.json(Method::PUT, SCHEDULES, &json!({"stack": "s", "every": 3600})).await;
    store.plan_drift_checks(None).await.expect("decided");
    let before = made.get(DRIFT).await.json()["drift"][0].clone();
    assert_eq!((&before["status"], &before["checked_at"]), (&Value::Null, &Value::Null));
    let check = store.claim_drift_check(Uuid::nil(), TTL, None).await.expect("read").expect("due");
    let resource = |path: &str, properties: &[&str]| DriftedResource {
        path: path.to_owned(),
        properties: properties.iter().map(|name| (*name).to_owned()).collect(),
    };
    let resources = vec![resource("server", &["flavor", "name"]), resource("group/0/port", &[])];
    let time = "2026-11-20T06:50:00.5Z".parse().expect("a time");
    let repairs = vec![DriftRepair { path: "server".to_owned(), property: "name".to_owned(), time }];
    let report = DriftReport {
        status: DriftStatus::Drifted,
        resources,
        drifted: 2,
        reason: None,
        repairs,
        stopped: vec![resource("server", &["name"])],
    };
    let of_it = made.settle("s").await;
    let began = "2026-11-20T06:52:00Z".parse().expect("a time");
    assert!(store.end_drift_check(&check, &of_it, &report, began).await.expect("written"));

    let listed = json!({"drift": [{
        "stack_id": stack.to_string(), "stack_name": "s", "project": "tenant1", "status": "DRIFTED", "reason": null,
        "drifted_resources": 2, "resources": [
            {"resource_path": "server", "status": "MODIFIED", "properties": ["flavor", "name"]},
            {"resource_path": "group/0/port", "status": "DELETED", "properties": []},
        ],
        "repairs": [{"resource_path": "server", "property": "name", "repaired_at": "2026-11-20T06:50:00Z"}],
        "no_longer_repaired": [{"resource_path": "server", "status": "MODIFIED", "properties": ["name"]}],
        "since": "2026-11-20T06:52:00Z", "checked_at": "2026-11-20T06:52:00Z",
        "next_check_at": "2026-11-20T07:52:45Z",
    }]});
    let reader = app(&store, user(&["reader"]));
    assert_eq!(reader.get(&format!("{DRIFT}?status=DRIFTED")).await.json(), listed);
    assert_eq!(reader.get(&format!("{DRIFT}?status=IN_SYNC")).await.json(), json!({"drift": []}));
    assert_eq!(reader.get(&format!("{DRIFT}?status=drifted")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(reader.get(&format!("{DRIFT}?marker=x")).await.status, StatusCode::BAD_REQUEST);
    let set = reader.json(Method::PUT, SCHEDULES, &json!({"stack": "s", "every": 3600})).await;
    assert_eq!(set.status, StatusCode::FORBIDDEN);

    let stranger = Caller { project_id: "tenant2".into(), ..user(&["member", "reader"]) };
    let other = app(&store, stranger);
    assert_eq!(other.get("/v1/tenant2/drift").await.json(), json!({"drift": []}));
    assert_eq!(other.get("/v1/tenant2/drift?global_tenant=true").await.status, StatusCode::FORBIDDEN);
    let theirs = json!({"stack": stack.to_string(), "every": 3600});
    let refused = other.json(Method::PUT, "/v1/tenant2/drift_schedules", &theirs).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND, "{}", refused.text);
    let operator = other.with_rules(&[("drift:global_index", "role:member")]).with_extensions(&store);
    assert_eq!(operator.get("/v1/tenant2/drift?global_tenant=true").await.json(), listed);

    // Who may set a schedule, and not update stacks, cannot let engines do so.
    let half = made.clone().with_rules(&[("stacks:update", "role:nobody")]).with_extensions(&store);
    for (repair, status) in [(false, StatusCode::OK), (true, StatusCode::FORBIDDEN)] {
        let set = half.json(Method::PUT, SCHEDULES, &json!({"stack": "s", "every": 3600, "repair": repair})).await;
        assert_eq!(set.status, status, "{}", set.text);
    }
}
