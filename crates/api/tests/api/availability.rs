//! Types without their service or extension in the caller's cloud.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use http::{Method, StatusCode};
use kiln_identity::Local;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind};
use kiln_service::Limits;
use kiln_value::{Class, Secret};
use serde_json::{Value, json};

use crate::support::{Answer, App, user};

/// A cloud that only has basic networks; it counts requests.
#[derive(Default)]
struct Plain {
    asked: AtomicUsize,
    is_broken: bool,
}

#[async_trait]
impl Cloud for Plain {
    async fn call(&self, _: CloudRequest) -> Result<CloudResponse, Failure> {
        Err(Failure::new(FailureKind::Unavailable, Class::ConnectFailure, "nobody there"))
    }

    async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
        Ok(name.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(service, "network", "a service that is not in the catalog is not asked");
        if self.is_broken {
            return Err(Failure::new(FailureKind::Unavailable, Class::ConnectFailure, "nobody there"));
        }
        Ok(alias == "router")
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("tenant1".to_owned())
    }
}

/// A service for a caller whose catalog contains only networks.
async fn app(cloud: &Arc<Plain>) -> App {
    let catalog = json!([{"type": "network", "endpoints": []}]);
    let catalog = serde_json::from_value(catalog).expect("a catalog");
    let cloud: Arc<dyn Cloud> = Arc::<Plain>::clone(cloud);
    let owner = Local::of(user(&["admin", "member", "reader"]), Secret::new("{}".to_owned()));
    App::with(App::new().await.store, owner.with_cloud(cloud, catalog), Limits::default())
}

fn template(resource_type: &str) -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": resource_type}}})
}

async fn create(app: &App, template: &Value, files: &Value) -> Answer {
    let body = json!({"stack_name": "one", "template": template, "files": files});
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

#[track_caller]
fn refused(answer: &Answer, class: &str, text: &str) {
    let error = &answer.json()["error"];
    assert_eq!(
        (answer.status, &error["type"], &error["message"]),
        (StatusCode::BAD_REQUEST, &class.into(), &text.into())
    );
}

const ZUN: &str = "HEAT-E99001 Service zun is not available for resource type OS::Zun::Container, reason: zun \
                   container endpoint is not in service catalog.";
const QOS: &str = "HEAT-E99001 Service neutron is not available for resource type OS::Neutron::QoSPolicy, reason: \
                   Required extension qos in neutron service is not available.";
const HEAT: &str = "HEAT-E99001 Service heat is not available for resource type OS::Heat::SoftwareConfig, reason: \
                    heat cloudformation endpoint is not in service catalog.";

#[tokio::test]
async fn what_has_no_service_is_refused() {
    let app = app(&Arc::default()).await;
    let cases = [("OS::Zun::Container", ZUN), ("OS::Neutron::QoSPolicy", QOS), ("OS::Heat::SoftwareConfig", HEAT)];
    for (name, text) in cases {
        let class = "ResourceTypeUnavailable";
        refused(&create(&app, &template(name), &json!({})).await, class, text);
        let body = json!({ "template": template(name) });
        refused(&app.json(Method::POST, "/v1/tenant1/validate", &body).await, class, text);
        refused(&app.get(&format!("/v1/tenant1/resource_types/{name}")).await, class, text);
    }
    // Its properties do not matter while the service is missing.
    let ignoring = "/v1/tenant1/validate?ignore_errors=99001";
    let answer = app.json(Method::POST, ignoring, &json!({"template": template("OS::Neutron::QoSPolicy")})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(create(&app, &template("OS::Neutron::Router"), &json!({})).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn nested_templates_are_looked_into() {
    let app = app(&Arc::default()).await;
    let files = json!({"inner.yaml": template("OS::Zun::Container").to_string()});
    let text = format!("ResourceTypeUnavailable: : resources.one<inner.yaml>: : {ZUN}");
    refused(&create(&app, &template("inner.yaml"), &files).await, "StackValidationFailed", &text);
}

#[tokio::test]
async fn what_has_no_service_is_not_listed() {
    let cloud = Arc::default();
    let app = app(&cloud).await;
    let listed = app.get("/v1/tenant1/resource_types").await.json()["resource_types"].take();
    let has = |name: &str| listed.as_array().expect("a list").contains(&name.into());
    assert!(has("OS::Heat::Value") && has("OS::Neutron::Net") && has("OS::Neutron::Router"), "{listed}");
    assert!(!has("OS::Nova::Server") && !has("OS::Neutron::QoSPolicy") && !has("OS::Heat::SoftwareConfig"), "{listed}");
}

#[tokio::test]
async fn a_service_that_does_not_answer_refuses_nothing() {
    let cloud = Arc::new(Plain { is_broken: true, ..Plain::default() });
    let app = app(&cloud).await;
    let listed = app.get("/v1/tenant1/resource_types").await.json()["resource_types"].take();
    assert!(listed.as_array().expect("a list").contains(&"OS::Neutron::QoSPolicy".into()), "{listed}");
    assert_eq!(cloud.asked.load(Ordering::Relaxed), 1, "it is asked again and again");
    assert_eq!(create(&app, &template("OS::Neutron::QoSPolicy"), &json!({})).await.status, StatusCode::CREATED);
}
