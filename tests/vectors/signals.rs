//! Vectors of the kind `wait_handle_signals`, and signals in those of the kind `lifecycle`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use kiln_drivers::heat::wait_handle::WaitHandle;
use kiln_identity::{Local, Policy};
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, Method, SignalEndpoints, StackId, UserDomain};
use kiln_service::{Service, Signal};
use kiln_stack::{Backends, Clouds};
use kiln_store::Stack;
use kiln_value::{Class, Diagnostic, Map, Secret, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::error;

/// Runs a vector: signals to a handle, one after another.
pub(crate) fn run(case: &Case) -> Outcome {
    let handle = match case.input("type").as_str() {
        Some("OS::Heat::WaitConditionHandle") => WaitHandle::Heat,
        _ => WaitHandle::Cfn,
    };
    let mut metadata = Map::new();
    let mut steps = Vec::new();
    for signal in case.input("signals").as_list().unwrap_or_default() {
        steps.push(match handle.record(&metadata, signal) {
            Ok(recorded) => {
                let mut reason = None;
                if let Some((next, text)) = recorded {
                    (metadata, reason) = (next, Some(text));
                }
                value!({"event_reason": reason, "metadata": (metadata.clone())})
            }
            Err(failure) => value!({"error": (error(&Diagnostic::new(Class::of(failure.class), failure.message)))}),
        });
    }
    case.judge(&value!({ "steps": steps }))
}

/// The use cases, for the owner of all stacks.
pub(crate) fn service(backends: &Backends) -> Service {
    Service {
        shared: kiln_service::SharedCredentials::default(),
        heat_projects: std::sync::Arc::default(),
        templates: None,
        options: kiln_service::Options::default(),
        backends: backends.clone(),
        recent: Arc::default(),
        identity: Arc::new(Local::new("user", "project", "project", Secret::new("{}".to_owned()))),
        policy: Arc::new(Policy::default()),
    }
}

/// Sends a signal to a resource and waits until the engine has handled it.
pub(crate) async fn send(backends: &Backends, stack: StackId, step: &Value) -> Result<(), Diagnostic> {
    let service = service(backends);
    let (resource, details) =
        (step.str_at("resource").unwrap_or_default(), step.get("details").cloned().unwrap_or_default());
    let refused = refusal(backends, stack, resource, &details).await;
    let stack = backends.store.stack(stack).await.expect("read").expect("there");
    let (id, signal) = (stack.id, Signal { resource: resource.to_owned(), details });
    if let Err(error) = service.signal(stack, &signal).await {
        return Err(Diagnostic::new(error.class().unwrap_or_else(|| Class::of("")), error.to_string()));
    }
    while !backends.store.inbox(id, jiff::Timestamp::MAX).await.expect("read").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    refused
}

/// The reference's call was synchronous and reports what the handle says; Heat's API does not.
async fn refusal(backends: &Backends, stack: StackId, resource: &str, details: &Value) -> Result<(), Diagnostic> {
    let rows = backends.store.resources(stack).await.expect("read");
    let row = rows.iter().find(|row| row.name == resource).expect("a row");
    let metadata = row.metadata.as_map().cloned().unwrap_or_default();
    let recorded = WaitHandle::Heat.record(&metadata, details);
    recorded.map(drop).map_err(|failure| {
        let text = format!("{}: resources.{resource}: {}", failure.class, failure.message);
        Diagnostic::new(Class::of("ResourceFailure"), text)
    })
}

/// A cloud that knows only users.
#[derive(Default)]
pub(crate) struct Users {
    made: Arc<AtomicU64>,
}

#[async_trait]
impl Clouds for Users {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(UsersCloud(Arc::clone(&self.made))))
    }
}

struct UsersCloud(Arc<AtomicU64>);

#[async_trait]
impl Cloud for UsersCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        let id = format!("id{}", self.0.fetch_add(1, Ordering::Relaxed));
        let body = if request.method == Method::Post {
            value!({"project": {"id": (&id)}, "user": {"id": (&id)}, "credential": {"id": (&id)}})
        } else {
            value!({"roles": [{"id": "role"}], "users": [], "projects": []})
        };
        let headers = Map::from_iter([("x-subject-token".to_owned(), id.into())]);
        Ok(CloudResponse { status: 200, headers, body })
    }

    async fn find(&self, _: &str, name_or_id: &str) -> Result<String, Failure> {
        Ok(name_or_id.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        let cloud = Arc::new(Self(Arc::clone(&self.0)));
        Ok(Some(UserDomain { cloud, id: "domain".to_owned(), role: "heat_stack_user".to_owned() }))
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        let url = |port: u16| Some(format!("http://heat:{port}/v1"));
        Ok(SignalEndpoints { cfn: url(8000), heat: url(8004), ..SignalEndpoints::default() })
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("project".to_owned())
    }
}
