//! `/guards`: what nobody may do with stacks and their resources until the guard is lifted. Heat has no such call.

use std::collections::BTreeSet;

use axum::response::Response;
use http::{Method, StatusCode};
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_resource::{GuardRule, StackPolicy, Verb};
use kiln_service::{ADD_GUARD, AddedGuard, InFlight, LIFT_GUARD};
use kiln_store::{Guard, GuardTerms, StackId};
use kiln_value::{Map, Value, text, value};

use super::plan::stack_of;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};
use crate::openapi::schema;
use crate::view::instant::instant;

pub(super) static ADD: Endpoint = Endpoint {
    name: "AddGuard",
    method: Method::PUT,
    path: "/{tenant_id}/guards",
    rule: Rule::Kiln(&[ADD_GUARD, DefaultRule { name: REQUIRE_PLANS, check: DefaultCheck::MEMBER }]),
    tag: "guards",
    summary: "Protect a stack, some of its resources, or all stacks of the project",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(add(call)),
};

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListGuards",
    method: Method::GET,
    path: "/{tenant_id}/guards",
    rule: Rule::Kiln(&[DefaultRule { name: "guards:index", check: DefaultCheck::READER }]),
    tag: "guards",
    summary: "List the guards of the project, or of a stack, oldest first",
    query: &[("stack", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowGuard",
    method: Method::GET,
    path: "/{tenant_id}/guards/{guard_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "guards:show", check: DefaultCheck::READER }]),
    tag: "guards",
    summary: "Show a guard",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static LIFT: Endpoint = Endpoint {
    name: "LiftGuard",
    method: Method::DELETE,
    path: "/{tenant_id}/guards/{guard_id}",
    rule: Rule::Kiln(&[LIFT_GUARD]),
    tag: "guards",
    summary: "Lift a guard",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(lift(call)),
};

static BODY: Body = Body {
    name: "AddGuard",
    required: true,
    is_template: false,
    schema: || {
        let verbs = value!({ "type": "string", "enum": ["update", "replace", "delete"] });
        value!({
            "type": "object",
            "properties": {
                "stack": (schema::text()),
                "protect": { "type": "array", "items": verbs },
                "resources": (schema::text()),
                "lock": { "type": "boolean" },
                "freeze": { "type": "boolean" },
                "signals": { "type": "boolean" },
                "plans": { "type": "string", "enum": ["required"] },
                "stack_policy": (schema::text()),
                "ignore": { "type": "array", "items": (schema::text()) },
                "leave": { "type": "boolean" },
                "until": { "type": "string", "format": "date-time" },
                "reason": (schema::text()),
            },
        })
    },
};

/// The rule of who may require plans, and no longer require them.
const REQUIRE_PLANS: &str = "guards:require_plans";

/// `PUT`: adds a guard. The same guard is not added twice.
async fn add(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    let terms =
        GuardTerms { rule: rule(body)?, until: until(body)?, reason: given(body, "reason").unwrap_or_default() };
    if terms.rule == GuardRule::RequirePlans {
        call.allow(REQUIRE_PLANS)?;
    }
    let stack = if given(body, "stack").is_some() { Some(stack_of(call, body).await?) } else { None };
    let AddedGuard { guard, in_flight, locked } = call.service().add_guard(&call.caller, stack.as_ref(), terms).await?;
    let in_flight = in_flight.iter().map(|InFlight { stack, path, action }| {
        value!({ "stack_id": (stack.to_string()), "resource_path": path, "action": (action.as_str()) })
    });
    Ok(reply::json(&value!({
        "guard": (view(&guard)), "in_flight": (in_flight.collect::<Value>()), "locked": (locked.into_iter().collect::<Value>()),
    })))
}

async fn list(call: &Call) -> Result<Response, ApiError> {
    let root = match call.query.get("stack") {
        Some(name) => Some(stack_of(call, &Map::from([("stack".to_owned(), name.into())])).await?.root),
        None => None,
    };
    let guards = call.service().guards(&call.caller, root).await?;
    Ok(reply::json(&value!({ "guards": (guards.iter().map(view).collect::<Value>()) })))
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    Ok(reply::json(&value!({ "guard": (view(&guard(call).await?)) })))
}

async fn lift(call: &Call) -> Result<Response, ApiError> {
    let guard = guard(call).await?;
    if guard.terms.rule == GuardRule::RequirePlans {
        call.allow(REQUIRE_PLANS)?;
    }
    call.service().lift_guard(&call.caller, &guard).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// The guard of the path.
async fn guard(call: &Call) -> Result<Guard, ApiError> {
    Ok(call.service().guard(&call.caller, call.params.get("guard_id")).await?)
}

fn given(body: &Map, key: &str) -> Option<String> {
    body.get(key).filter(|given| !given.is_null()).map(text::str)
}

fn until(body: &Map) -> Result<Option<jiff::Timestamp>, ApiError> {
    let invalid = |_| ApiError::bad_request("'until' is not a time such as 2027-01-31T12:00:00Z.");
    given(body, "until").map(|until| until.parse().map_err(invalid)).transpose()
}

/// What the guard of a body forbids.
fn rule(body: &Map) -> Result<GuardRule, ApiError> {
    let invalid = |why: String| ApiError::bad_request(why);
    let known = [
        "stack",
        "protect",
        "resources",
        "lock",
        "freeze",
        "signals",
        "plans",
        "stack_policy",
        "ignore",
        "leave",
        "until",
        "reason",
    ];
    if let Some(unknown) = body.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(invalid(format!("A guard has no '{unknown}'.")));
    }
    let is_given = |key: &&str| body.get(*key).is_some_and(|given| !given.is_null() && *given != Value::Bool(false));
    let kinds: Vec<&str> =
        ["protect", "freeze", "plans", "stack_policy", "ignore"].into_iter().filter(is_given).collect();
    let [kind] = kinds.as_slice() else {
        return Err(invalid(
            "A guard needs one of 'protect', 'freeze', 'plans', 'stack_policy' and 'ignore'.".to_owned(),
        ));
    };
    for (key, of) in [("resources", "protect"), ("lock", "protect"), ("signals", "freeze"), ("leave", "ignore")] {
        if is_given(&key) && *kind != of {
            return Err(invalid(format!("'{key}' belongs to '{of}'.")));
        }
    }
    match *kind {
        "freeze" => Ok(GuardRule::Freeze { signals: body.get("signals").is_some_and(Value::is_truthy) }),
        "plans" if given(body, "plans").as_deref() == Some("required") => Ok(GuardRule::RequirePlans),
        "plans" => Err(invalid("'plans' is 'required': lift the guard to no longer require them.".to_owned())),
        "ignore" => {
            let properties = body.get("ignore").and_then(query::texts);
            let properties = properties
                .ok_or_else(|| invalid("'ignore' is not a list of properties such as 'server.tags'.".to_owned()))?;
            Ok(GuardRule::Ignore { properties, leave: body.get("leave").is_some_and(Value::is_truthy) })
        }
        "stack_policy" => {
            let policy = StackPolicy::try_from(given(body, "stack_policy").unwrap_or_default());
            policy.map(GuardRule::StackPolicy).map_err(|error| invalid(error.to_string()))
        }
        _ => {
            let verb = |verb: &Value| verb.as_str().and_then(|verb| verb.parse::<Verb>().ok());
            let from = body.get("protect").and_then(Value::as_list);
            let from: Option<BTreeSet<Verb>> = from.and_then(|verbs| verbs.iter().map(verb).collect());
            let from =
                from.ok_or_else(|| invalid("'protect' is not a list of 'update', 'replace' and 'delete'.".to_owned()))?;
            let lock = body.get("lock").is_some_and(Value::is_truthy);
            Ok(GuardRule::Protect { from, resources: given(body, "resources"), lock })
        }
    }
}

fn view(guard: &Guard) -> Value {
    let mut shown = value!({
        "id": (guard.id.to_string()),
        "stack_id": (guard.stack.as_ref().map(StackId::to_string)),
    });
    let rule = match &guard.terms.rule {
        GuardRule::Protect { from, resources, lock } => {
            let from: Value = from.iter().map(|verb| verb.as_str()).collect();
            value!({ "protect": from, "resources": (resources.clone()), "lock": (*lock) })
        }
        GuardRule::Freeze { signals } => value!({ "freeze": true, "signals": (*signals) }),
        GuardRule::RequirePlans => value!({ "plans": "required" }),
        GuardRule::StackPolicy(policy) => value!({ "stack_policy": (policy.text()) }),
        GuardRule::Ignore { properties, leave } => {
            value!({ "ignore": (properties.iter().collect::<Value>()), "leave": (*leave) })
        }
    };
    let rest = value!({
        "until": (guard.terms.until.map(instant)),
        "reason": (&guard.terms.reason),
        "user_id": (&guard.author.user_id),
        "user_name": (&guard.author.username),
        "created_at": (instant(guard.created)),
    });
    for part in [rule, rest] {
        if let (Some(shown), Value::Map(part)) = (shown.as_map_mut(), part) {
            shown.extend(part);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use jiff::Timestamp;
    use kiln_resource::{Action, Resource, ResourceId, State, Status};
    use kiln_store::Batch;
    use serde_json::{Value, json};

    use crate::support::{Answer, App, random_string, stack_of};

    const GUARDS: &str = "/v1/tenant1/guards";

    async fn add(app: &App, body: Value) -> Value {
        let added = app.json(Method::PUT, GUARDS, &body).await;
        assert_eq!(added.status, StatusCode::OK, "{}", added.text);
        added.json()
    }

    async fn lift(app: &App, added: &Value) -> StatusCode {
        let id = added["guard"]["id"].as_str().expect("an ID");
        app.send(Method::DELETE, &format!("{GUARDS}/{id}"), None, None).await.status
    }

    #[tokio::test]
    async fn guards_are_added_once_shown_and_lifted() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let body = json!({
            "stack": "s", "protect": ["delete", "replace"], "resources": "db/*", "until": "2099-01-01T00:00:00Z", "reason": "data",
        });
        let added = add(&app, body.clone()).await;
        let guard = &added["guard"];
        let shown = json!({
            "id": guard["id"], "stack_id": stack_of(&path).to_string(), "protect": ["replace", "delete"],
            "resources": "db/*", "lock": false, "until": "2099-01-01T00:00:00Z", "reason": "data", "user_id": guard["user_id"],
            "user_name": "alice", "created_at": guard["created_at"],
        });
        assert_eq!((guard, &added["in_flight"]), (&shown, &json!([])));
        assert_eq!(add(&app, body).await["guard"]["id"], guard["id"], "it is there already");
        let project = add(&app, json!({"freeze": true, "signals": true})).await;
        assert_eq!((&project["guard"]["stack_id"], &project["guard"]["signals"]), (&Value::Null, &json!(true)));
        let listed = app.get(GUARDS).await.json();
        assert_eq!(listed, json!({"guards": [shown, project["guard"]]}));
        assert_eq!(app.get(&format!("{GUARDS}?stack=s")).await.json(), listed);
        let one = format!("{GUARDS}/{}", guard["id"].as_str().expect("an ID"));
        assert_eq!(app.get(&one).await.json()["guard"], shown);
        assert_eq!(lift(&app, &added).await, StatusCode::NO_CONTENT);
        assert_eq!(
            (lift(&app, &added).await, app.get(&one).await.status),
            (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND)
        );
    }

    #[tokio::test]
    async fn what_protects_nothing_is_refused() {
        let app = App::new().await;
        app.create("s", random_string()).await;
        for (body, why) in [
            (json!({}), "A guard needs one of"),
            (json!({"protect": ["delete"], "freeze": true}), "A guard needs one of"),
            (json!({"protect": []}), "protects from update, replace or delete"),
            (json!({"protect": ["create"]}), "protects from update, replace or delete"),
            (json!({"protect": ["explode"]}), "is not a list of"),
            (json!({"protect": ["replace"]}), "name resources to protect them from replace"),
            (json!({"protect": ["delete"], "resources": "a//b"}), "names between its slashes"),
            (json!({"protect": ["delete"], "lock": true}), "is of one stack"),
            (
                json!({"stack": "s", "protect": ["delete"], "lock": true, "until": "2099-01-01T00:00:00Z"}),
                "does not end by itself",
            ),
            (json!({"freeze": true, "lock": true}), "'lock' belongs to 'protect'"),
            (json!({"freeze": true, "resources": "a"}), "'resources' belongs to 'protect'"),
            (json!({"plans": "optional"}), "lift the guard"),
            (json!({"protect": ["delete"], "forever": true}), "A guard has no 'forever'"),
            (json!({"freeze": true, "until": "soon"}), "'until' is not a time"),
            (json!({"freeze": true, "until": "2001-01-01T00:00:00Z"}), "in the past"),
            (json!({"stack_policy": "{}", "stack": "s"}), "Error validating stack policy"),
            (json!({"stack_policy": "{\"Statement\": []}"}), "a stack policy is of a stack"),
        ] {
            let refused = app.json(Method::PUT, GUARDS, &body).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}: {}", refused.text);
            assert!(refused.text.contains(why), "{body}: {}", refused.text);
        }
        let unknown = app.json(Method::PUT, GUARDS, &json!({"freeze": true, "stack": "t"})).await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        assert_eq!(app.get(GUARDS).await.json(), json!({"guards": []}));
    }

    /// What is known at once is refused before anything is stored, with the guard, its author and the reason.
    #[tokio::test]
    async fn guarded_changes_are_conflicts() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let stack = stack_of(&path);
        let mut row = Resource::new(
            stack,
            ResourceId(uuid::Uuid::from_u128(1)),
            "first",
            "OS::Heat::RandomString",
            Timestamp::UNIX_EPOCH,
        );
        (row.state, row.physical_id) = (State::new(Action::Create, Status::Complete), Some("p".to_owned()));
        app.commit(stack, Batch { save: vec![row].into(), ..Batch::default() }).await;
        let nothing = json!({"heat_template_version": "2018-08-31"});
        let update = async |template: &Value| {
            app.json(Method::PUT, &path, &json!({"stack_name": "s", "template": template})).await
        };
        let delete = async || app.send(Method::DELETE, &path, None, None).await;
        let suspend = async || app.json(Method::POST, &format!("{path}/actions"), &json!({"suspend": null})).await;
        let create = async |name: &str| {
            app.json(Method::POST, "/v1/tenant1/stacks", &json!({"stack_name": name, "template": random_string()}))
                .await
        };
        let conflict = |answer: Answer, what: &str, guard: &Value| {
            assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
            let id = guard["guard"]["id"].as_str().expect("an ID");
            let words = format!("the guard {id} of alice (audit)");
            assert!(answer.text.contains(what) && answer.text.contains(&words), "{}", answer.text);
        };

        let guard = add(&app, json!({"stack": "s", "protect": ["delete"], "reason": "audit"})).await;
        conflict(delete().await, "the stack s stays as it is", &guard);
        lift(&app, &guard).await;

        let guard = add(&app, json!({"stack": "s", "protect": ["delete"], "resources": "*", "reason": "audit"})).await;
        conflict(delete().await, "the resource first of the stack s", &guard);
        conflict(update(&nothing).await, "the resource first of the stack s", &guard);
        lift(&app, &guard).await;

        let guard = add(&app, json!({"stack": "s", "protect": ["update"], "reason": "audit"})).await;
        conflict(update(&random_string()).await, "the stack s", &guard);
        lift(&app, &guard).await;

        let guard = add(&app, json!({"freeze": true, "reason": "audit"})).await;
        for answer in [delete().await, update(&random_string()).await, suspend().await] {
            conflict(answer, "the stack s", &guard);
        }
        conflict(create("t").await, "a new stack in this project", &guard);
        lift(&app, &guard).await;

        let guard = add(&app, json!({"plans": "required"})).await;
        for answer in [delete().await, update(&random_string()).await, create("t").await] {
            assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
            assert!(answer.text.contains("Changes need a saved plan"), "{}", answer.text);
        }
        assert_eq!(suspend().await.status, StatusCode::OK, "it changes no resource that a plan would show");
        app.settle("s").await;
        lift(&app, &guard).await;
        assert_eq!((create("t").await.status, delete().await.status), (StatusCode::CREATED, StatusCode::NO_CONTENT));
    }
}
