//! Reads of the cloud. The checks share them: each request is sent once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_resource::{Cloud, CloudRequest, Failure, Method};
use kiln_value::Value;
use tokio::sync::OnceCell;

/// A response, or why there is none.
pub(super) type Answer = Result<Arc<Value>, Unread>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The service says that it does not exist.
    Missing,
    /// The service does not allow it.
    Forbidden,
    /// Another reason, in words.
    Failed(String),
}

impl Unread {
    fn of(failure: &Failure) -> Self {
        if failure.is_not_found() {
            Self::Missing
        } else if failure.class.name().ends_with("Forbidden") {
            Self::Forbidden
        } else {
            Self::Failed(failure.to_string())
        }
    }

    /// In words.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Missing => "the service does not have it",
            Self::Forbidden => "the service does not allow to read it",
            Self::Failed(why) => why,
        }
    }
}

/// The reads of one pre-flight.
pub(super) struct Reader<'a> {
    cloud: &'a dyn Cloud,
    answers: Mutex<HashMap<String, Arc<OnceCell<Answer>>>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(cloud: &'a dyn Cloud) -> Self {
        Self { cloud, answers: Mutex::default() }
    }

    /// The body of a GET.
    pub(super) async fn get(&self, service: &str, path: &str, query: &[(&str, &str)]) -> Answer {
        let key = format!("{service} {path} {query:?}");
        let cell = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(key).or_default())
        };
        let read = async {
            let mut request = CloudRequest::new(service, Method::Get, path);
            for (key, value) in query {
                request = request.query(*key, *value);
            }
            let answer = self.cloud.call(request).await;
            answer.map(|response| Arc::new(response.body)).map_err(|failure| Unread::of(&failure))
        };
        cell.get_or_init(|| read).await.clone()
    }

    /// The value under a key of the body of a GET.
    pub(super) async fn part(&self, service: &str, path: &str, key: &str) -> Result<Value, Unread> {
        let body = self.get(service, path, &[]).await?;
        body.get(key).cloned().ok_or_else(|| Unread::Failed(format!("the answer of {service} has no {key}")))
    }

    /// A list.
    pub(super) async fn list(
        &self,
        service: &str,
        path: &str,
        query: &[(&str, &str)],
        key: &str,
    ) -> Result<Vec<Value>, Unread> {
        let body = self.get(service, path, query).await?;
        Ok(body.get(key).and_then(Value::as_list).map(<[Value]>::to_vec).unwrap_or_default())
    }

    /// The ID of an object by its name or ID, as drivers find it.
    pub(super) async fn find(&self, finder: &str, name: &str) -> Option<String> {
        self.cloud.find(finder, name).await.ok()
    }

    pub(super) async fn project(&self) -> Option<String> {
        self.cloud.project_id().await.ok()
    }

    pub(super) async fn flavor(&self, id: &str) -> Result<Value, Unread> {
        self.part("compute", &format!("/flavors/{id}"), "flavor").await
    }

    pub(super) async fn image(&self, id: &str) -> Result<Arc<Value>, Unread> {
        self.get("image", &format!("/v2/images/{id}"), &[]).await
    }
}
