//! Saved plans: single use, expiry, parts, change sets, and what is purged.

use kiln_resource::{Action, Status};
use kiln_store::{
    Approval, Author, Details, Error, NewPlan, NewStack, Plan, PlanId, PlanPart, PlanQuery, PlanState, Planned,
    Retention, StackId, StackQuery, StackRequest, Store, version_of,
};
use kiln_value::{Value, value};
use uuid::Uuid;

use crate::bed::{Bed, beds};
use crate::make::{PROJECT, at, child, claimed, deleting, resource, settle, settling, stack, text};

/// Long before the clock of any database.
const PAST: i64 = -1_000_000_000;

fn plan(stack: StackId, second: i64) -> NewPlan {
    let desired = text("planned");
    let plan = Plan {
        id: PlanId(Uuid::new_v4()),
        project: PROJECT.into(),
        stack,
        stack_name: "web".into(),
        name: None,
        action: Action::Update,
        generation: 1,
        author: Some(Author { user_id: "u1".to_owned(), username: "Ann".to_owned() }),
        desired: Some(desired.digests()),
        digest: "d".into(),
        state: PlanState::Ready,
        body: value!({ "parameters": { "password": "geheim" } }),
        created: at(second),
        expires: Some(at(1_000)),
    };
    let part = |path: &str, number: i64| PlanPart { path: path.to_owned(), body: format!("{{\"number\":{number}}}") };
    NewPlan { plan, desired: Some(desired), parts: vec![part("", 1), part("group", 2), part("", 3)] }
}

fn named(new: NewPlan, name: &str) -> NewPlan {
    NewPlan { plan: Plan { name: Some(name.to_owned()), ..new.plan }, ..new }
}

fn of_project(project: &str) -> PlanQuery {
    PlanQuery { project: project.to_owned(), ..PlanQuery::default() }
}

/// An update that uses up a plan.
fn executing(plan: PlanId) -> StackRequest {
    let planned = Some(Planned { plan, path: String::new() });
    let details = Details { planned, ..Details::default() };
    StackRequest { desired: Some(text("planned")), details, ..StackRequest::new(Action::Update, at(9)) }
}

async fn state(store: &dyn Store, plan: PlanId) -> PlanState {
    store.plan(PROJECT, plan).await.unwrap().unwrap().state
}

#[tokio::test]
async fn plans_are_listed_by_project_newest_first_with_their_parts() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, _) = claimed(store, "web").await;
        let (first, second) = (plan(made.id, 1), plan(made.id, 2));
        let other = plan(StackId(Uuid::new_v4()), 3);
        let other = NewPlan { plan: Plan { stack_name: "api".into(), ..other.plan }, ..other };
        let foreign = plan(made.id, 4);
        let foreign = NewPlan { plan: Plan { project: "p2".into(), ..foreign.plan }, ..foreign };
        for new in [&first, &second, &other, &foreign] {
            store.save_plan(new).await.unwrap();
        }
        let all = store.plans(&of_project(PROJECT)).await.unwrap();
        assert_eq!(all, [other.plan.clone(), second.plan.clone(), first.plan.clone()]);
        assert_eq!(store.count_plans(PROJECT).await.unwrap(), 3);
        let page = PlanQuery { marker: Some(other.plan.id), limit: Some(1), ..of_project(PROJECT) };
        assert_eq!(store.plans(&page).await.unwrap(), std::slice::from_ref(&second.plan));
        let web = PlanQuery { stack_name: Some("web".to_owned()), ..of_project(PROJECT) };
        assert_eq!(store.plans(&web).await.unwrap().len(), 2);
        let of_stack = PlanQuery { stack: Some(made.id), limit: Some(1), ..of_project(PROJECT) };
        assert_eq!(store.plans(&of_stack).await.unwrap(), std::slice::from_ref(&second.plan));
        let brief = PlanQuery { without_bodies: true, ..of_stack };
        let expected = Plan { body: Value::Null, ..second.plan.clone() };
        assert_eq!(store.plans(&brief).await.unwrap(), [expected]);
        let unknown = PlanQuery { marker: Some(foreign.plan.id), ..of_project(PROJECT) };
        assert!(matches!(store.plans(&unknown).await, Err(Error::NotFound(_))), "of another project");
        assert_eq!(store.plan(PROJECT, foreign.plan.id).await.unwrap(), None);
        assert_eq!(store.plan(PROJECT, first.plan.id).await.unwrap(), Some(first.plan.clone()));
        let numbers = |parts: Vec<String>| -> Vec<i64> {
            parts.iter().map(|part| part.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()).collect()
        };
        assert_eq!(numbers(store.plan_parts(first.plan.id, None).await.unwrap()), [1, 2, 3]);
        assert_eq!(numbers(store.plan_parts(first.plan.id, Some("")).await.unwrap()), [1, 3]);
        assert_eq!(numbers(store.plan_parts(first.plan.id, Some("group")).await.unwrap()), [2]);
        assert_eq!(store.desired(&text("planned").digests()).await.unwrap(), text("planned"));
        store.delete_plans(&[first.plan.id, other.plan.id]).await.unwrap();
        store.delete_plans(&[]).await.unwrap();
        assert_eq!(store.plans(&of_project(PROJECT)).await.unwrap(), [second.plan]);
        assert_eq!(store.plan_parts(first.plan.id, None).await.unwrap(), Vec::<String>::new());
        bed.end().await;
    }
}

#[tokio::test]
async fn a_plan_is_used_up_once_and_together_with_its_request() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, _) = claimed(store, "web").await;
        let new = plan(made.id, 1);
        let id = new.plan.id;
        store.save_plan(&new).await.unwrap();
        let refused = StackRequest { if_generation: Some(7), ..executing(id) };
        assert!(matches!(store.request(made.id, refused).await, Err(Error::Changed(_))));
        assert_eq!(state(store, id).await, PlanState::Ready, "the request was refused, so the plan is not used");
        let asked = store.request(made.id, executing(id)).await.unwrap();
        assert_eq!(state(store, id).await, PlanState::Executed);
        let operation = store.revision(made.id, asked.generation).await.unwrap().unwrap();
        assert_eq!((operation.plan, operation.id), (Some(id), asked.operation()));
        let again = store.request(made.id, executing(id)).await;
        assert!(matches!(again, Err(Error::PlanUsed(used)) if used == id), "{again:?}");
        assert_eq!(store.stack(made.id).await.unwrap().unwrap().generation, asked.generation);
        assert!(!store.reject_plan(id).await.unwrap());

        let (rejected, expired) = (plan(made.id, 2), plan(made.id, 3));
        let expired = NewPlan { plan: Plan { expires: Some(at(PAST)), ..expired.plan }, ..expired };
        for new in [&rejected, &expired] {
            store.save_plan(new).await.unwrap();
        }
        assert!(store.reject_plan(rejected.plan.id).await.unwrap());
        assert_eq!(state(store, rejected.plan.id).await, PlanState::Rejected);
        for plan in [rejected.plan.id, expired.plan.id, PlanId(Uuid::new_v4())] {
            assert!(matches!(store.request(made.id, executing(plan)).await, Err(Error::PlanUsed(_))));
        }

        // A plan that creates its stack.
        let planned = |id: StackId, plan: PlanId| NewStack {
            id,
            root: id,
            planned: Some(Planned { plan, path: String::new() }),
            ..stack(&id.to_string())
        };
        let create = plan(StackId(Uuid::new_v4()), 4);
        store.save_plan(&create).await.unwrap();
        let made = store.create_stack(planned(create.plan.stack, create.plan.id)).await.unwrap();
        assert_eq!(made.details.planned, Some(Planned { plan: create.plan.id, path: String::new() }));
        let same = store.create_stack(planned(create.plan.stack, create.plan.id)).await;
        assert!(matches!(same, Err(Error::NameTaken(_) | Error::PlanUsed(_))), "not answered as done: {same:?}");
        let again = store.create_stack(planned(StackId(Uuid::new_v4()), create.plan.id)).await;
        assert!(matches!(again, Err(Error::PlanUsed(_))), "{again:?}");
        bed.end().await;
    }
}

#[tokio::test]
async fn a_user_approves_a_plan_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, _) = claimed(store, "web").await;
        let (new, other) = (plan(made.id, 1), plan(made.id, 2));
        store.save_plan(&new).await.unwrap();
        store.save_plan(&other).await.unwrap();
        let approval = |user: &str, second: i64| Approval {
            plan: new.plan.id,
            author: Author { user_id: user.to_owned(), username: "Bob".repeat(100) },
            time: at(second),
        };
        for given in [approval("u3", 5), approval("u2", 4), approval("u3", 6)] {
            store.approve_plan(&given).await.unwrap();
        }
        assert_eq!(store.approvals(new.plan.id).await.unwrap(), [approval("u2", 4), approval("u3", 5)]);
        assert_eq!(store.approvals(other.plan.id).await.unwrap(), []);
        store.delete_plans(&[new.plan.id]).await.unwrap();
        assert_eq!(store.approvals(new.plan.id).await.unwrap(), []);
        bed.end().await;
    }
}

#[tokio::test]
async fn two_requests_with_one_plan_at_once_are_one() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, _) = claimed(store, "web").await;
        let (api, _) = claimed(store, "api").await;
        let new = plan(web.id, 1);
        store.save_plan(&new).await.unwrap();
        let ask = |stack| store.request(stack, executing(new.plan.id));
        let (one, two) = tokio::join!(ask(web.id), ask(api.id));
        assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1, "{one:?} {two:?}");
        bed.end().await;
    }
}

#[tokio::test]
async fn a_request_with_a_version_is_refused_if_a_nested_stack_has_moved() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, _) = claimed(store, "web").await;
        let row = resource(web.id, "group");
        let nested = store.create_stack(child(&web, &row)).await.unwrap();
        let of_tree = StackQuery { root: Some(web.id), nested: true, ..StackQuery::default() };
        let version = async || Some(version_of(store.stacks(&of_tree).await.unwrap()));
        let seen = version().await;
        let update = |if_version| StackRequest { if_version, ..StackRequest::new(Action::Update, at(3)) };
        let asked = store.request(web.id, update(seen.clone())).await.unwrap();
        assert!(matches!(store.request(web.id, update(seen)).await, Err(Error::Changed(id)) if id == web.id));
        let seen = version().await;
        store.request(nested.id, update(None)).await.unwrap();
        assert!(matches!(store.request(web.id, update(seen)).await, Err(Error::Changed(_))));
        assert_eq!(store.stack(web.id).await.unwrap().unwrap().generation, asked.generation);
        let seen = version().await;
        store.request(web.id, update(seen)).await.unwrap();
        bed.end().await;
    }
}

#[tokio::test]
async fn change_sets_have_one_name_per_stack_and_end_with_it() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, lease) = claimed(store, "web").await;
        let (first, second) = (named(plan(made.id, 1), "first"), named(plan(made.id, 2), "second"));
        let (unnamed, elsewhere) = (plan(made.id, 3), named(plan(StackId(Uuid::new_v4()), 3), "first"));
        for set in [&first, &second, &unnamed, &elsewhere] {
            store.save_plan(set).await.unwrap();
        }
        let taken = store.save_plan(&named(plan(made.id, 4), "first")).await;
        assert!(matches!(taken, Err(Error::NameTaken(_))), "{taken:?}");
        let asked = store.request(made.id, StackRequest::new(Action::Delete, at(5))).await.unwrap();
        store.commit(lease, deleting(asked.generation)).await.unwrap();
        let left = store.plans(&of_project(PROJECT)).await.unwrap();
        assert_eq!(left, [elsewhere.plan.clone(), unnamed.plan], "a plan is kept as long as its stack is known");
        assert_eq!(store.plan_parts(first.plan.id, None).await.unwrap(), Vec::<String>::new());
        while store.forget(&Retention { deleted_before: at(10_000), operations: 0 }).await.unwrap() > 0 {}
        assert_eq!(store.plans(&of_project(PROJECT)).await.unwrap(), [elsewhere.plan]);
        bed.end().await;
    }
}

/// The engine reads the plan of a request until the request ends.
#[tokio::test]
async fn a_plan_that_is_being_executed_is_neither_deleted_nor_purged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, lease) = claimed(store, "web").await;
        let (used, other) = (plan(made.id, 1), plan(made.id, 2));
        for new in [&used, &other] {
            store.save_plan(new).await.unwrap();
        }
        let id = used.plan.id;
        let asked = store.request(made.id, executing(id)).await.unwrap();
        if bed.is_shared() {
            // Meanwhile, it has expired.
            bed.execute("UPDATE kiln_plan SET expires = 1").await;
        }
        assert_eq!(store.delete_plans(&[id, other.plan.id]).await.unwrap(), [id]);
        while store.forget(&Retention { deleted_before: at(-9), operations: 0 }).await.unwrap() > 0 {}
        let left: Vec<PlanId> = store.plans(&of_project(PROJECT)).await.unwrap().iter().map(|plan| plan.id).collect();
        assert_eq!(left, [id]);
        assert_eq!(store.plan_parts(id, None).await.unwrap().len(), 3);
        store.commit(lease, settling(settle(asked.generation, Action::Update, Status::Complete))).await.unwrap();
        assert_eq!(store.delete_plans(&[id]).await.unwrap(), []);
        assert_eq!(store.plan_parts(id, None).await.unwrap(), Vec::<String>::new());
        bed.end().await;
    }
}

#[tokio::test]
async fn a_delete_of_a_plan_and_its_request_at_once_are_one_of_them() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        for number in 0..8 {
            let (made, _) = claimed(store, &format!("web-{number}")).await;
            let new = plan(made.id, 1);
            store.save_plan(&new).await.unwrap();
            let ids = [new.plan.id];
            let (asked, deleted) = tokio::join!(store.request(made.id, executing(ids[0])), store.delete_plans(&ids));
            let kept = store.plan(PROJECT, ids[0]).await.unwrap().is_some();
            assert_eq!((asked.is_ok(), deleted.unwrap().len()), (kept, usize::from(kept)), "{asked:?}");
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn plans_are_purged_long_after_they_expired() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, _) = claimed(store, "web").await;
        let (old, kept) = (plan(made.id, 1), plan(made.id, 2));
        let old = NewPlan { plan: Plan { expires: Some(at(PAST)), ..old.plan }, ..old };
        for new in [&old, &kept] {
            store.save_plan(new).await.unwrap();
        }
        while store.forget(&Retention { deleted_before: at(-9), operations: 0 }).await.unwrap() > 0 {}
        assert_eq!(store.plans(&of_project(PROJECT)).await.unwrap(), [kept.plan]);
        assert_eq!(store.plan_parts(old.plan.id, None).await.unwrap(), Vec::<String>::new());
        bed.end().await;
    }
}

/// The upgrade from the release before, where change sets had a table of their own.
#[tokio::test]
async fn change_sets_of_the_release_before_become_plans() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            upgrade(&bed).await;
        }
        bed.end().await;
    }
}

async fn upgrade(bed: &Bed) {
    let store = &*bed.store;
    let (made, _) = claimed(store, "web").await;
    let (ready, executed) = (named(plan(made.id, 1), "ready"), named(plan(made.id, 2), "executed"));
    for new in [&ready, &executed] {
        store.save_plan(new).await.unwrap();
    }
    let copy = "INSERT INTO kiln_change_set (id, project, stack, stack_name, name, generation, executed, body, created) \
                SELECT id, project, stack, stack_name, name, generation, CASE name WHEN 'executed' THEN 1 ELSE 0 END, \
                body, created FROM kiln_plan";
    let of_table = if bed.url().starts_with("mysql") { " ON kiln_stack" } else { "" };
    for statement in [
        copy,
        &format!("DROP INDEX kiln_stack_of_all{of_table}"),
        "DROP TABLE kiln_plan",
        "DROP TABLE kiln_plan_part",
        "DROP TABLE kiln_plan_approval",
        "DROP TABLE kiln_guard",
        "DROP TABLE kiln_take_over",
        "DROP TABLE kiln_project_owner",
        "DROP TABLE kiln_setting",
        "DROP TABLE kiln_answer",
        "DROP TABLE kiln_webhook",
        "DROP TABLE kiln_webhook_delivery",
        "DROP TABLE kiln_drift",
        "DROP TABLE kiln_drift_schedule",
        "DROP TABLE kiln_quota",
        "DROP TABLE kiln_duration",
        "DROP TABLE kiln_claim",
        "DROP TABLE kiln_worksheet",
        "ALTER TABLE kiln_operation DROP COLUMN plan",
        "ALTER TABLE kiln_engine DROP COLUMN plans",
        "ALTER TABLE kiln_engine DROP COLUMN known_schema",
        "DELETE FROM kiln_schema_version WHERE version >= 15",
    ] {
        bed.execute(statement).await;
    }
    store.migrate().await.unwrap();
    let former = |new: NewPlan, state: PlanState| Plan {
        author: None,
        desired: None,
        digest: String::new(),
        expires: None,
        state,
        ..new.plan
    };
    let expected = [former(executed, PlanState::Executed), former(ready, PlanState::Ready)];
    assert_eq!(store.plans(&of_project(PROJECT)).await.unwrap(), expected);
}
