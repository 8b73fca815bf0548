//! Every route of the reference, asked by every persona through the whole API
//! (`policy_matrix_allowed_personas` of reference/rest_api.json).

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_resource::{Action, ResourceId, SnapshotId, StackId, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, Event, EventId, Snapshot};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, App, PROJECT, user};

#[derive(Deserialize)]
struct Reference {
    routes: Vec<Route>,
    policy_personas: BTreeMap<String, Vec<String>>,
    policy_matrix_allowed_personas: BTreeMap<String, Allowed>,
}

#[derive(Deserialize)]
struct Allowed {
    own_project: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Route {
    method: String,
    path: String,
    policy: Vec<String>,
    observed: Observed,
}

#[derive(Deserialize)]
struct Observed {
    status: u16,
}

/// One call with everything that it needs to succeed.
struct Request {
    method: Method,
    path: String,
    body: Option<Value>,
    rule: String,
    /// The status for those who are allowed.
    success: u16,
}

/// A stack with a resource, events and a snapshot, configs and a deployment.
struct Fixture {
    app: App,
    stack: StackId,
    snapshot: String,
    event: String,
    used_config: String,
    config: String,
    deployment: String,
}

fn template(word: &str) -> Value {
    json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string", "default": word}},
        "resources": {"one": {"type": "OS::Heat::WaitConditionHandle"}},
        "outputs": {"out": {"value": {"get_param": "word"}}},
    })
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

impl Fixture {
    async fn new() -> Self {
        let app = App::new().await.with_adoption();
        let path = app.create("s", template("a")).await;
        let stack = app.settle("s").await;
        let (now, guest) = (stack.created, "guest".into());
        let mut row = kiln_store::Resource::new(
            stack.id,
            ResourceId(uuid::Uuid::from_u128(1)),
            "one",
            "OS::Heat::WaitConditionHandle",
            now,
        );
        (row.state, row.physical_id) = (State::new(Action::Create, Status::Complete), Some("p".to_owned()));
        row.data.insert("user_id".to_owned(), guest);
        let event = Event {
            operation: None,
            id: EventId(uuid::Uuid::from_u128(2)),
            stack: stack.id,
            root: stack.id,
            resource_name: "one".to_owned(),
            resource_type: row.resource_type.clone(),
            physical_id: None,
            action: "CREATE".to_owned(),
            status: Status::Complete,
            reason: String::new(),
            properties: kiln_value::Value::Null,
            time: now,
        };
        let batch = Batch { save: vec![row].into(), events: vec![event.clone()], ..Batch::default() };
        app.commit(stack.id, batch).await;
        let made = app.send(Method::POST, &format!("{path}/snapshots"), None, None).await;
        let snapshot = text(&made.json()["id"]);
        app.settle("s").await;
        let id: SnapshotId = snapshot.parse().expect("an ID");
        let stored = app.store.snapshot(stack.id, id).await.expect("read").expect("a snapshot");
        let data = json!({"template": template("saved"), "environment": {}, "files": {}, "resources": {}});
        let data = serde_json::from_value(data).expect("a value");
        let stored = Snapshot { state: State::new(Action::Snapshot, Status::Complete), data, ..stored };
        app.commit(stack.id, Batch { snapshots: vec![stored].into(), ..Batch::default() }).await;
        let mut configs = Vec::new();
        for _ in 0..2 {
            let made = app.json(Method::POST, "/v1/tenant1/software_configs", &json!({})).await;
            configs.push(text(&made.json()["software_config"]["id"]));
        }
        let body = json!({"config_id": configs[0], "server_id": "server"});
        let made = app.json(Method::POST, "/v1/tenant1/software_deployments", &body).await;
        let deployment = text(&made.json()["software_deployment"]["id"]);
        let [used_config, config] = configs.try_into().expect("two configs");
        Self { app, stack: stack.id, snapshot, event: event.id.to_string(), used_config, config, deployment }
    }

    /// Everything that a request could change.
    async fn state(&self) -> String {
        let stack = format!("/v1/{PROJECT}/stacks/s/{}", self.stack);
        let mut texts = Vec::new();
        let inbox = self.app.store.inbox(self.stack, "2100-01-01T00:00:00Z".parse().expect("a time")).await;
        texts.push(format!("{:?}", inbox.expect("read")));
        for path in [
            stack.clone(),
            format!("{stack}/template"),
            format!("{stack}/resources/one"),
            format!("{stack}/events"),
            format!("{stack}/snapshots"),
            format!("/v1/{PROJECT}/stacks"),
            format!("/v1/{PROJECT}/software_configs"),
            format!("/v1/{PROJECT}/software_deployments"),
        ] {
            let answer = self.app.get(&path).await;
            assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
            texts.push(answer.text);
        }
        texts.join("\n")
    }

    /// The requests of a route, in a project's path.
    fn requests(&self, route: &Route, project: &str) -> Vec<Request> {
        let id = self.stack.to_string();
        let arn = format!("arn:openstack:heat::{project}:stacks/s/{id}");
        let parts = |first_of_choice: &str| {
            let parts = route.path.split('/').map(|part| match part {
                "{tenant_id}" => project,
                "{stack_name:arn\\x3A.*}" => &arn,
                "{stack_name}" => "s",
                "{stack_id}" => &id,
                "{snapshot_id}" => &self.snapshot,
                "{event_id}" => &self.event,
                "{config_id}" if route.method == "DELETE" => &self.config,
                "{config_id}" => &self.used_config,
                "{deployment_id}" => &self.deployment,
                "{server_id}" => "server",
                "{resource_name}" => "one",
                "{output_key}" => "out",
                "{type_name}" => "OS::Heat::RandomString",
                "{template_version}" => "heat_template_version.2018-08-31",
                part if part.starts_with("{path:") => first_of_choice,
                part => part,
            });
            parts.collect::<Vec<_>>().join("/")
        };
        let choice = route.path.split_once("{path:").and_then(|(_, rest)| rest.strip_suffix('}'));
        let paths: Vec<String> =
            choice.map_or_else(|| vec![parts("")], |choice| choice.split('|').map(parts).collect());
        let method: Method = route.method.parse().expect("a method");
        let rule = route.policy[0].clone();
        let one = |path: &String, body: Option<Value>, rule: &str, success: u16| Request {
            method: method.clone(),
            path: path.clone(),
            body,
            rule: rule.to_owned(),
            success,
        };
        if route.path.ends_with("/actions") {
            // What does not fit the state of the stack is refused after the policy was checked.
            let actions = [
                ("suspend", 200),
                ("resume", 200),
                ("check", 200),
                ("cancel_update", 400),
                ("cancel_without_rollback", 400),
            ];
            return actions
                .map(|(name, success)| one(&paths[0], Some(json!({ name: null })), &format!("actions:{name}"), success))
                .into();
        }
        let body = match (route.method.as_str(), rule.as_str()) {
            ("GET" | "DELETE", _) | (_, "stacks:lookup" | "stacks:snapshot" | "stacks:restore_snapshot") => None,
            (_, "stacks:create" | "stacks:preview") => Some(json!({"stack_name": "new", "template": template("a")})),
            (_, "stacks:update" | "stacks:preview_update" | "stacks:validate_template") => {
                Some(json!({"template": template("b")}))
            }
            (_, "stacks:update_patch" | "stacks:preview_update_patch") => Some(json!({"parameters": {"word": "c"}})),
            (_, "resource:mark_unhealthy") => Some(json!({"mark_unhealthy": true})),
            (_, "resource:signal") => Some(json!({"status": "SUCCESS", "id": "1", "data": "d"})),
            (_, "software_configs:create") => Some(json!({"name": "new"})),
            (_, "software_deployments:create") => Some(json!({"config_id": self.used_config, "server_id": "server"})),
            (_, "software_deployments:update") => Some(json!({"status": "COMPLETE"})),
            (method, rule) => panic!("no body for {method} {rule}"),
        };
        paths.iter().map(|path| one(path, body.clone(), &rule, route.observed.status)).collect()
    }

    /// Asks as another caller.
    async fn ask(&self, caller: &Caller, request: &Request) -> Answer {
        let app = App::on(self.app.store.clone(), caller.clone(), Limits::default()).with_adoption();
        let body = request.body.as_ref().map(Value::to_string);
        app.send(request.method.clone(), &request.path, None, body.as_deref()).await
    }
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../data/rest_api.json")).expect("the reference is JSON")
}

fn persona(roles: &[String], project: &str) -> Caller {
    let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
    Caller { user_id: "guest".to_owned(), project_id: project.to_owned(), ..user(&roles) }
}

#[tokio::test]
async fn every_route_admits_the_personas_of_the_reference() {
    let reference = reference();
    assert_eq!((reference.routes.len(), reference.policy_personas.len()), (61, 5));
    let untouched = Fixture::new().await;
    let before = untouched.state().await;
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for route in &reference.routes {
        for index in 0..untouched.requests(route, PROJECT).len() {
            for (name, roles) in &reference.policy_personas {
                for own in [PROJECT, "tenant2"] {
                    let caller = persona(roles, own);
                    let request = untouched.requests(route, PROJECT).swap_remove(index);
                    let admits = &reference.policy_matrix_allowed_personas[&request.rule].own_project;
                    // The rules alone deny an administrator of another project. Heat's API checks them for the
                    // administrator's own project instead (heat/api/openstack/v1/util.py).
                    let allowed = admits.contains(name) && (own == PROJECT || caller.is_admin);
                    let changes = allowed && request.method != Method::GET;
                    let fresh = if changes { Some(Fixture::new().await) } else { None };
                    let fixture = fresh.as_ref().unwrap_or(&untouched);
                    let request = fixture.requests(route, PROJECT).swap_remove(index);
                    let answer = fixture.ask(&caller, &request).await;
                    // A name is looked up in the own project, for administrators too.
                    let by_name = request.rule == "stacks:lookup" && !request.path.contains("/arn:");
                    let expected = match allowed {
                        false => 403,
                        true if own != PROJECT && by_name => 404,
                        true => request.success,
                    };
                    cells += 1;
                    if answer.status.as_u16() != expected {
                        wrong.push(format!(
                            "{} {} by {name} of {own}: {} instead of {expected}: {}",
                            request.method, route.path, answer.status, answer.text
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
    // 61 routes, of which two have six and four paths, and one five actions.
    assert_eq!(cells, (61 + 5 + 3 + 4) * 10);
    assert_eq!(untouched.state().await, before, "requests that are denied or only read change nothing");
}

/// Another project's objects do not exist for a member, in the path of the member's own project.
#[tokio::test]
async fn objects_of_other_projects_are_not_found() {
    let fixture = Fixture::new().await;
    let before = fixture.state().await;
    let caller = persona(&["member".to_owned(), "reader".to_owned()], "tenant2");
    let mut asked = 0;
    for route in reference().routes {
        let names_one = ["{stack_name}", "{config_id}", "{deployment_id}"].iter().any(|part| route.path.contains(part));
        for request in fixture.requests(&route, "tenant2").into_iter().filter(|_| names_one) {
            let answer = fixture.ask(&caller, &request).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{} {}: {}", request.method, request.path, answer.text);
            asked += 1;
        }
    }
    assert_eq!(asked, 51);
    let deployments = Request {
        method: Method::GET,
        path: "/v1/tenant2/software_deployments/metadata/server".to_owned(),
        body: None,
        rule: String::new(),
        success: 200,
    };
    assert_eq!(fixture.ask(&caller, &deployments).await.json(), json!({ "metadata": [] }));
    assert_eq!(fixture.state().await, before);
}
