//! Tokens, scopes, trusts, and permissions of ordinary users.

use std::time::Duration;

use kiln_testcloud::Testcloud;
use serde_json::{Value, json};

use crate::client::{Client, NOBODY, start, text};

const V3: &str = "/identity/v3";

#[tokio::test]
async fn wrong_passwords_and_tokens_are_401() {
    let (cloud, demo) = start().await;
    let user = json!({"name": "demo", "domain": {"id": "default"}, "password": "wrong"});
    let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}});
    let answer = Client::auth(&cloud, body).await.expect_err("no token");
    answer.refused(401, "The request you have made requires authentication.");
    let stranger = Client { token: "nonsense".to_owned(), ..demo };
    for path in ["/identity/v3/projects", "/compute/v2.1/servers", "/network/v2.0/networks", "/image/v2/images"] {
        assert_eq!(stranger.get(path).await.status, 401, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_expire() {
    let cloud = Testcloud::builder().token_life(Duration::from_mins(1)).start().await.unwrap();
    let demo = Client::new(&cloud, cloud.users().demo).await;
    demo.get("/network/v2.0/networks").await.expect(200);
    tokio::time::sleep(Duration::from_secs(61)).await;
    demo.get("/network/v2.0/networks").await.refused(401, "authentication");
}

#[tokio::test]
async fn only_services_and_owners_validate_tokens() {
    let (cloud, demo) = start().await;
    let heat = Client::new(&cloud, cloud.users().heat).await;
    let path = format!("{V3}/auth/tokens");
    let own = [("x-subject-token", demo.token.as_str())];
    let answer = heat.with("GET", &path, Value::Null, &own).await.unwrap().expect(200);
    assert_eq!(answer["token"]["project"]["name"], "demo");
    let catalog: Vec<String> =
        answer["token"]["catalog"].as_array().unwrap().iter().map(|service| text(&service["type"])).collect();
    assert!(catalog.contains(&"compute".to_owned()), "{catalog:?}");
    demo.with("GET", &path, Value::Null, &own).await.unwrap().expect(200);
    let other = [("x-subject-token", heat.token.as_str())];
    demo.with("GET", &path, Value::Null, &other).await.unwrap().refused(403, "identity:validate_token");
    let unknown = [("x-subject-token", "bad")];
    heat.with("GET", &path, Value::Null, &unknown).await.unwrap().refused(404, "Could not recognize Fernet token");
    demo.with("DELETE", &path, Value::Null, &own).await.unwrap().expect(204);
    assert_eq!(demo.get("/network/v2.0/networks").await.status, 401);
}

#[tokio::test]
async fn a_trust_is_usable_until_it_is_deleted() {
    let (cloud, demo) = start().await;
    let heat = Client::new(&cloud, cloud.users().heat).await;
    let trusts = format!("{V3}/OS-TRUST/trusts");
    let trust = |roles: Value| {
        json!({"trust": {
            "trustor_user_id": demo.user, "trustee_user_id": heat.user, "project_id": demo.project,
            "impersonation": true, "roles": roles,
        }})
    };
    demo.post(&trusts, trust(json!([{"name": "admin"}]))).await.refused(404, "Could not find role assignment");
    demo.post(&trusts, trust(json!([{"name": "nobody"}]))).await.refused(404, "Could not find role");
    heat.post(&trusts, trust(json!([{"name": "member"}]))).await.refused(403, "identity:create_trust");
    let id = demo.make(&trusts, trust(json!([{"name": "member"}]))).await;

    let login = |user: &str| {
        let user = json!({"name": user, "domain": {"id": "default"}, "password": "password"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        json!({"auth": {"identity": identity, "scope": {"OS-TRUST:trust": {"id": id}}}})
    };
    Client::auth(&cloud, login("alt_demo")).await.err().unwrap().refused(403, "User is not a trustee.");
    let acting = Client::auth(&cloud, login("heat")).await.expect("a trust-scoped token");
    assert_eq!((&acting.user, &acting.project), (&demo.user, &demo.project));
    acting.get("/network/v2.0/routers").await.expect(200);
    let rescope = json!({"auth": {
        "identity": {"methods": ["token"], "token": {"id": acting.token}}, "scope": {"project": {"id": demo.project}},
    }});
    Client::auth(&cloud, rescope).await.err().unwrap().refused(403, "trust-scoped token");

    heat.delete(&format!("{trusts}/{id}")).await.expect(204);
    assert_eq!(acting.get("/network/v2.0/routers").await.status, 401);
    Client::auth(&cloud, login("heat")).await.err().unwrap().refused(404, "Could not find trust");
}

#[tokio::test]
async fn projects_and_users_are_for_administrators() {
    let (cloud, demo) = start().await;
    let admin = Client::new(&cloud, cloud.users().admin).await;
    let projects = format!("{V3}/projects");
    demo.get(&projects).await.refused(403, "identity:list_projects");
    demo.post(&projects, json!({"project": {"name": "x"}})).await.refused(403, "identity:create_project");
    admin.post(&projects, json!({"project": {}})).await.refused(400, "'name' is a required property");
    admin.post(&projects, json!({"project": {"name": "demo"}})).await.refused(409, "Conflict occurred");
    admin.get(&format!("{projects}/{NOBODY}")).await.refused(404, "Could not find project");
    let id = admin.make(&projects, json!({"project": {"name": "x"}})).await;
    let user = admin.make(&format!("{V3}/users"), json!({"user": {"name": "u", "password": "p"}})).await;
    let member = admin.id(&format!("{V3}/roles"), "member").await;
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {"id": user, "password": "p"}}},
        "scope": {"project": {"id": id}},
    }});
    assert_eq!(Client::auth(&cloud, body.clone()).await.expect_err("no role yet").status, 401);
    admin.put(&format!("{projects}/{id}/users/{user}/roles/{member}"), Value::Null).await.expect(204);
    let own = Client::auth(&cloud, body).await.expect("a token");
    let seen = own.get("/network/v2.0/networks").await.expect(200);
    assert_eq!(seen["networks"].as_array().unwrap().len(), 1, "only the external network");
    admin.delete(&format!("{projects}/{id}")).await.expect(204);
    assert_eq!(own.get("/network/v2.0/networks").await.status, 401);
}

#[tokio::test]
async fn application_credentials_log_in() {
    let (cloud, demo) = start().await;
    let path = format!("{V3}/users/{}/application_credentials", demo.user);
    let made = demo.post(&path, json!({"application_credential": {"name": "c"}})).await.expect(201);
    let made = &made["application_credential"];
    demo.post(&path, json!({"application_credential": {"name": "c"}})).await.refused(409, "Duplicate entry");
    let login = |secret: &Value| {
        let credential = json!({"id": made["id"], "secret": secret});
        json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": credential}}})
    };
    let client = Client::auth(&cloud, login(&made["secret"])).await.expect("a token");
    assert_eq!(client.project, demo.project);
    assert_eq!(Client::auth(&cloud, login(&json!("wrong"))).await.err().unwrap().status, 401);
    let more = json!({"application_credential": {"name": "d"}});
    client.post(&path, more).await.refused(403, "not allowed for managing additional application credentials");
    let trust = json!({"trust": {"trustor_user_id": demo.user, "trustee_user_id": demo.user, "impersonation": true}});
    client.post(&format!("{V3}/OS-TRUST/trusts"), trust).await.refused(403, "not allowed for managing trusts");
}
