//! Saved plans: what they need, who finds them, and what executes only once.

use std::sync::Arc;

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_resource::{PlanId, StackId};
use kiln_service::Limits;
use kiln_store::{MemoryStore, NewPlan, Plan, PlanPart, PlanStore as _, Planned};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, App, PROJECT, random_string, user};

const PLANS: &str = "/v1/tenant1/plans";

fn update(stack: &str) -> Value {
    let mut template = random_string();
    template["resources"]["two"] = json!({"type": "OS::Heat::RandomString"});
    json!({"action": "update", "stack": stack, "template": template})
}

async fn save(app: &App, body: &Value) -> Value {
    let answer = app.json(Method::POST, PLANS, body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()["plan"].clone()
}

fn path(plan: &Value) -> String {
    format!("{PLANS}/{}", plan["id"].as_str().expect("an ID"))
}

async fn execute(app: &App, plan: &Value) -> Answer {
    app.send(Method::POST, &format!("{}/execute", path(plan)), None, None).await
}

#[track_caller]
fn conflict(answer: &Answer, text: &str) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
    assert!(answer.json()["error"]["message"].as_str().expect("a text").contains(text), "{}", answer.text);
}

#[tokio::test]
async fn a_plan_is_executed_once_and_the_operation_names_it() {
    let app = App::new().await;
    let stack = app.create("web", random_string()).await;
    app.settle("web").await;
    let mut body = update("web");
    body["description"] = "one more".into();
    body["expires_in"] = (36_500_u64 * 86_400).into();
    let plan = save(&app, &body).await;
    let expected = json!({
        "action": "UPDATE", "status": "READY", "stack_name": "web", "description": "one more", "name": null,
        "operation_id": null, "user_name": "alice", "created_at": "2026-11-20T06:52:45Z", "expires_at": "2126-10-27T06:52:45Z",
        "totals": {"change": 2, "data_loss": 0, "interruption": 0, "none": 0, "replacement": 0},
    });
    for (key, value) in expected.as_object().expect("a map") {
        assert_eq!(&plan[key], value, "{key}");
    }
    assert_eq!(plan["document"]["resources"][1]["path"], "two", "{plan}");
    assert_eq!(app.get(&path(&plan)).await.json()["plan"], plan);

    let other = app.json(Method::POST, &format!("{}/execute", path(&plan)), &json!({"digest": "else"})).await;
    conflict(&other, "its digest is another one");
    let executed = execute(&app, &plan).await;
    assert_eq!(executed.status, StatusCode::ACCEPTED, "{}", executed.text);
    let executed = executed.json();
    assert_eq!(executed["stack"]["id"], plan["stack_id"], "{executed}");
    let operation = &app.get(&format!("{stack}/operations")).await.json()["operations"][0];
    assert_eq!((&operation["id"], &operation["plan_id"]), (&executed["operation_id"], &plan["id"]), "{operation}");
    let shown = app.get(&path(&plan)).await.json();
    assert_eq!(shown["plan"]["status"], "EXECUTED", "{shown}");
    assert_eq!(shown["plan"]["operation_id"], executed["operation_id"]);
    conflict(&execute(&app, &plan).await, "it was executed");
    conflict(&app.send(Method::DELETE, &path(&plan), None, None).await, "it is being executed");
    app.settle("web").await;
    assert_eq!(app.send(Method::DELETE, &path(&plan), None, None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(app.get(&path(&plan)).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn creates_returns_and_deletes_are_planned() {
    let app = App::new().await;
    let create = json!({"action": "create", "stack_name": "web", "template": random_string()});
    let plan = save(&app, &create).await;
    assert_eq!((&plan["action"], &plan["document"]["action"]), (&"CREATE".into(), &"create".into()), "{plan}");
    assert_eq!(execute(&app, &plan).await.json()["stack"]["id"], plan["stack_id"]);
    app.settle("web").await;

    let changed = execute(&app, &save(&app, &update("web")).await).await;
    assert_eq!(changed.status, StatusCode::ACCEPTED, "{}", changed.text);
    app.settle("web").await;
    let back = save(&app, &json!({"action": "update", "stack": plan["stack_id"], "revision": "1"})).await;
    assert_eq!(execute(&app, &back).await.status, StatusCode::ACCEPTED);
    app.settle("web").await;
    let template = app.get(&format!("/v1/tenant1/stacks/web/{}/template", plan["stack_id"].as_str().unwrap())).await;
    assert_eq!(template.json()["resources"], random_string()["resources"]);

    let delete = save(&app, &json!({"action": "delete", "stack": "web"})).await;
    assert_eq!(execute(&app, &delete).await.status, StatusCode::ACCEPTED);
    assert_eq!(app.get(&path(&delete)).await.json()["plan"]["status"], "EXECUTED");
}

/// A delete without a plan replaces a running request. A planned one is of what the plan shows.
#[tokio::test]
async fn a_planned_delete_replaces_no_other_request() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    let delete = json!({"action": "delete", "stack": "web"});
    let busy = app.json(Method::POST, PLANS, &delete).await;
    conflict(&busy, "Stack web already has an action (CREATE) in progress.");
    app.settle("web").await;
    let plan = save(&app, &delete).await;
    let stack = app.store.stack_by_name(PROJECT, "web").await.expect("read").expect("there");
    assert_eq!(execute(&app, &save(&app, &update("web")).await).await.status, StatusCode::ACCEPTED);
    conflict(&execute(&app, &plan).await, "the stack web has changed since");

    // The update comes after the check of the plan and before its request.
    let plan = plan["id"].as_str().expect("an ID").parse().expect("an ID");
    for version in [None, Some("of before")] {
        let planned = Some(Planned { plan, path: String::new() });
        let late = app.service.delete_planned(&user(&["member"]), &stack, version, planned).await;
        assert!(matches!(late, Err(kiln_service::Error::StalePlan(_))), "{late:?}");
    }
    let stack = app.store.stack_by_name(PROJECT, "web").await.expect("read").expect("there");
    assert_eq!(stack.state.to_string(), "UPDATE_IN_PROGRESS");
    let late = app.service.delete_planned(&user(&["member"]), &stack, None, None).await.expect("accepted");
    assert_eq!(late.state.to_string(), "DELETE_IN_PROGRESS");
}

#[tokio::test]
async fn a_plan_that_is_out_of_date_expired_or_rejected_is_refused() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    app.settle("web").await;
    let stale = save(&app, &update("web")).await;
    let rejected = save(&app, &update("web")).await;
    let mut brief = update("web");
    brief["expires_in"] = 0.into();
    let expired = save(&app, &brief).await;
    let answer = app.send(Method::POST, &format!("{}/reject", path(&rejected)), None, None).await;
    assert_eq!(answer.json()["plan"]["status"], "REJECTED", "{}", answer.text);
    let again = app.send(Method::POST, &format!("{}/reject", path(&rejected)), None, None).await;
    conflict(&again, "it was executed or rejected");
    conflict(&execute(&app, &rejected).await, "it was rejected");
    conflict(&execute(&app, &expired).await, "it has expired");
    assert_eq!(execute(&app, &save(&app, &update("web")).await).await.status, StatusCode::ACCEPTED);
    app.settle("web").await;
    conflict(&execute(&app, &stale).await, "the stack web has changed");
    let listed = app.get(PLANS).await.json();
    let statuses: Vec<&str> =
        listed["plans"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["EXECUTED", "EXPIRED", "REJECTED", "STALE"]);
}

#[tokio::test]
async fn lists_have_pages_and_a_filter() {
    let app = App::new().await;
    let create = |name: &str| json!({"action": "create", "stack_name": name, "template": random_string()});
    let (one, two) = (save(&app, &create("one")).await, save(&app, &create("two")).await);
    let ids = async |query: &str| {
        let listed = app.get(&format!("{PLANS}?{query}")).await.json();
        let plans = listed["plans"].as_array().expect("a list").clone();
        plans.into_iter().map(|plan| plan["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [two["id"].clone(), one["id"].clone()]);
    assert_eq!(ids("limit=1").await, [two["id"].clone()]);
    assert_eq!(ids(&format!("marker={}", two["id"].as_str().unwrap())).await, [one["id"].clone()]);
    assert_eq!(ids("stack=one").await, [one["id"].clone()]);
    assert_eq!(ids(&format!("stack={}", two["stack_id"].as_str().unwrap())).await, [two["id"].clone()]);
    assert!(ids("stack=three").await.is_empty());
    for wrong in ["marker=x", "limit=x"] {
        assert_eq!(app.get(&format!("{PLANS}?{wrong}")).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

/// An app with its store.
fn counted() -> (App, MemoryStore) {
    let store = MemoryStore::new(Arc::new(|| "2026-11-20T06:52:46Z".parse().expect("a time")));
    (App::on(Arc::new(store.clone()), user(&["member", "reader"]), Limits::default()), store)
}

/// Saves copies of a plan.
async fn copies(store: &MemoryStore, plan: &Value, number: u128, change: impl Fn(u128, Plan) -> Plan) {
    let id = plan["id"].as_str().expect("an ID").parse().expect("an ID");
    let saved = store.plan(PROJECT, id).await.expect("read").expect("there");
    let parts = store.plan_parts(id, None).await.expect("read").into_iter();
    let parts: Vec<PlanPart> = parts.map(|body| PlanPart { path: String::new(), body }).collect();
    for number in 1..=number {
        let plan = change(number, Plan { id: PlanId(Uuid::from_u128(store.calls() as u128)), ..saved.clone() });
        store.save_plan(&NewPlan { plan, desired: None, parts: parts.clone() }).await.expect("saved");
    }
}

/// Neither a list nor a save reads the plans or their stacks one by one.
#[tokio::test]
async fn many_plans_need_no_more_statements_than_a_few() {
    let (app, store) = counted();
    app.create("web", random_string()).await;
    app.settle("web").await;
    let plan = save(&app, &update("web")).await;
    let listed = async || {
        let before = store.calls();
        let listed = app.get(PLANS).await.json();
        (listed["plans"].as_array().expect("a list").len(), store.calls() - before)
    };
    let saving = async || {
        let before = store.calls();
        save(&app, &update("web")).await;
        store.calls() - before
    };
    let (few, saved) = (listed().await, saving().await);
    assert_eq!(few, (1, 3), "the plans, their stacks, and the trees of these");
    copies(&store, &plan, 97, |_, plan| plan).await;
    assert_eq!(listed().await, (99, 3), "of one stack");
    assert_eq!(saving().await, saved);
    copies(&store, &plan, 850, |number, plan| Plan { stack: StackId(Uuid::from_u128(number)), ..plan }).await;
    assert_eq!(listed().await, (950, 3), "of many stacks");
    let full = app.json(Method::POST, PLANS, &update("web")).await;
    assert!(full.text.contains("a stack can have 100 plans"), "{}", full.text);
}

/// As on AWS, they belong to the former state of the stack.
#[tokio::test]
async fn a_change_set_that_is_executed_as_a_plan_ends_the_others() {
    let (app, store) = counted();
    app.create("web", random_string()).await;
    app.settle("web").await;
    let plan = save(&app, &update("web")).await;
    copies(&store, &plan, 3, |number, plan| Plan { name: Some(format!("set-{number}")), ..plan }).await;
    let names = async || {
        let listed = app.get(PLANS).await.json();
        let plans = listed["plans"].as_array().expect("a list").clone();
        plans.into_iter().map(|plan| (plan["name"].clone(), plan)).collect::<Vec<_>>()
    };
    let before = names().await;
    assert_eq!(before.len(), 4);
    let set = before.iter().find(|(name, _)| name == "set-2").map(|(_, plan)| plan).expect("listed");
    let executed = execute(&app, set).await;
    assert_eq!(executed.status, StatusCode::ACCEPTED, "{}", executed.text);
    let left: Vec<Value> = names().await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["set-2".into(), Value::Null], "plans without a name are kept");
}

#[tokio::test]
async fn wrong_requests_are_refused_and_store_nothing() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    let template = random_string();
    for (status, body) in [
        (StatusCode::BAD_REQUEST, json!({"stack": "web", "template": template})),
        (StatusCode::BAD_REQUEST, json!({"action": "replace", "stack": "web"})),
        (StatusCode::BAD_REQUEST, json!({"action": "update", "template": template})),
        (StatusCode::BAD_REQUEST, json!({"action": "update", "stack": "web"})),
        (StatusCode::BAD_REQUEST, json!({"action": "create", "template": template})),
        (StatusCode::BAD_REQUEST, json!({"action": "delete", "stack": "web", "expires_in": -1})),
        (StatusCode::NOT_FOUND, json!({"action": "delete", "stack": "none"})),
        (StatusCode::CONFLICT, json!({"action": "create", "stack_name": "web", "template": template})),
        // Its create is in progress.
        (StatusCode::CONFLICT, update("web")),
    ] {
        let answer = app.json(Method::POST, PLANS, &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
    }
    assert_eq!(app.get(PLANS).await.json(), json!({"plans": []}));
}

#[tokio::test]
async fn nobody_finds_a_plan_of_another_project() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    app.settle("web").await;
    let plan = save(&app, &update("web")).await;
    let id = plan["id"].as_str().expect("an ID");
    for roles in [&["member", "reader"][..], &["admin", "member", "reader"]] {
        let other = app.clone().used_by(Caller { project_id: "tenant2".into(), ..user(roles) });
        let path = format!("/v1/tenant2/plans/{id}");
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::POST, format!("{path}/execute")),
            (Method::POST, format!("{path}/reject")),
            (Method::POST, format!("{path}/approve")),
            (Method::POST, format!("{path}/renew")),
        ] {
            let answer = other.send(method.clone(), &path, None, None).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}: {}", answer.text);
        }
        assert_eq!(other.get("/v1/tenant2/plans").await.json(), json!({"plans": []}));
        let of_id = json!({"action": "delete", "stack": plan["stack_id"]});
        let answer = other.json(Method::POST, "/v1/tenant2/plans", &of_id).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
    }
}

#[tokio::test]
async fn a_plan_is_approved_by_others_and_renewed_with_its_approvals() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    app.settle("web").await;
    let app = app.demanding_plans(1);
    let bob = Caller { user_id: "bob-id".into(), username: "bob".into(), ..user(&["member", "reader"]) };
    let bob = app.clone().used_by(bob);
    let plan = save(&app, &update("web")).await;
    assert_eq!((&plan["approvals"], &plan["approvals_needed"]), (&json!([]), &1.into()), "{plan}");
    let ask = async |app: &App, plan: &Value, what: &str| {
        app.send(Method::POST, &format!("{}/{what}", path(plan)), None, None).await
    };
    conflict(&ask(&app, &plan, "execute").await, "0 of the 1 approvals");
    let own = ask(&app, &plan, "approve").await;
    assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.text);
    assert!(own.text.contains("you made it"), "{}", own.text);
    let approved = ask(&bob, &plan, "approve").await.json();
    let approval = json!([{"user_id": "bob-id", "user_name": "bob", "approved_at": "2026-11-20T06:52:45Z"}]);
    assert_eq!(approved["plan"]["approvals"], approval);
    conflict(&ask(&bob, &plan, "execute").await, "0 of the 1 approvals");

    // Nobody approves what they have made, although another user has renewed it.
    let second = save(&app, &update("web")).await;
    let by_bob = ask(&bob, &second, "renew").await;
    assert_eq!(by_bob.status, StatusCode::CREATED, "{}", by_bob.text);
    let by_bob = by_bob.json()["plan"].clone();
    for user in [&app, &bob] {
        let own = ask(user, &by_bob, "approve").await;
        assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.text);
    }

    let renewed = ask(&app, &plan, "renew").await;
    assert_eq!(renewed.status, StatusCode::CREATED, "{}", renewed.text);
    let renewed = renewed.json()["plan"].clone();
    assert_eq!((&renewed["status"], &renewed["approvals"]), (&"READY".into(), &approval), "{renewed}");
    conflict(&ask(&app, &plan, "execute").await, "it was rejected");
    conflict(&ask(&app, &plan, "renew").await, "it was executed or rejected");
    assert_eq!(ask(&app, &renewed, "execute").await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn where_plans_are_required_only_who_may_do_without_changes_a_stack() {
    let app = App::new().await;
    let stack = app.create("web", random_string()).await;
    app.settle("web").await;
    let app = app.demanding_plans(0);
    let create = json!({"stack_name": "other", "template": random_string()});
    for (method, path, body) in [
        (Method::POST, "/v1/tenant1/stacks".to_owned(), Some(create)),
        (Method::PUT, stack.clone(), Some(json!({"template": random_string()}))),
        (Method::PATCH, stack.clone(), Some(json!({}))),
        (Method::DELETE, stack.clone(), None),
    ] {
        let body = body.map(|body| body.to_string());
        conflict(&app.send(method, &path, None, body.as_deref()).await, "Changes need a saved plan");
    }
    let may = std::iter::once((kiln_service::BYPASS.to_owned(), "role:member".into())).collect();
    let may = app.clone().with_policy(kiln_api::policy(true).with_overrides(&may).expect("a rule"));
    assert_eq!(may.json(Method::PATCH, &stack, &json!({})).await.status, StatusCode::ACCEPTED);
    app.settle("web").await;
    assert_eq!(execute(&app, &save(&app, &update("web")).await).await.status, StatusCode::ACCEPTED);
}

/// What a request needs, besides the rule of the request itself.
#[tokio::test]
async fn each_rule_alone_denies_a_request() {
    let app = App::new().await;
    app.create("web", random_string()).await;
    app.settle("web").await;
    let plan = save(&app, &update("web")).await;
    let created = save(&app, &json!({"action": "create", "stack_name": "new", "template": random_string()})).await;
    let delete = json!({"action": "delete", "stack": "web"});
    let deleting = save(&app, &delete).await;
    let of_plan = |plan: &Value, end: &str| format!("{}{end}", path(plan));
    let requests = [
        ("plans:create", "stacks:update", Method::POST, PLANS.to_owned(), Some(update("web"))),
        ("plans:create", "stacks:delete", Method::POST, PLANS.to_owned(), Some(delete)),
        ("plans:index", "stacks:template", Method::GET, PLANS.to_owned(), None),
        ("plans:show", "stacks:template", Method::GET, path(&plan), None),
        ("plans:execute", "stacks:create", Method::POST, of_plan(&created, "/execute"), None),
        ("plans:execute", "stacks:delete", Method::POST, of_plan(&deleting, "/execute"), None),
        ("plans:approve", "stacks:update", Method::POST, of_plan(&plan, "/approve"), None),
        ("plans:renew", "stacks:update", Method::POST, of_plan(&plan, "/renew"), None),
        ("plans:reject", "plans:reject", Method::POST, of_plan(&plan, "/reject"), None),
        ("plans:delete", "plans:delete", Method::DELETE, path(&plan), None),
        ("plans:execute", "stacks:update", Method::POST, of_plan(&plan, "/execute"), None),
    ];
    let denying = |rules: &[&str]| {
        let overrides = rules.iter().map(|rule| ((*rule).to_owned(), "!".into())).collect();
        app.clone().with_policy(kiln_api::policy(true).with_overrides(&overrides).expect("rules"))
    };
    let all = ["create", "index", "show", "execute", "approve", "renew", "reject", "delete"]
        .map(|name| format!("plans:{name}"));
    for (own, other, method, path, body) in requests {
        let body = body.map(|body| body.to_string());
        for rule in [own, other] {
            let refused = denying(&[rule]).send(method.clone(), &path, None, body.as_deref()).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{rule}: {method} {path}: {}", refused.text);
        }
        // The other rules of plans are not needed.
        let others: Vec<&str> = all.iter().map(String::as_str).filter(|rule| *rule != own).collect();
        if method == Method::GET || own == "plans:create" {
            let done = denying(&others).send(method.clone(), &path, None, body.as_deref()).await;
            assert!(done.status.is_success(), "{own} alone: {method} {path}: {}", done.text);
        }
    }
    let reader = app.clone().used_by(user(&["reader"]));
    assert_eq!(reader.get(&path(&plan)).await.status, StatusCode::OK);
    assert_eq!(execute(&reader, &plan).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.get(&format!("/v1/{PROJECT}/stacks/new")).await.status, StatusCode::NOT_FOUND);
}
