//! Calls for quotas. Heat has none of them.

use http::Method;
use kiln_value::{Map, Value};

use crate::client::{segment, unwrap};
use crate::{Client, Error};

impl Client {
    /// The quotas of a project, or of the caller's: `limit`, `default` and `in_use` by name; -1: no limit.
    pub async fn quotas(&self, project: Option<&str>) -> Result<Value, Error> {
        let path = project.map_or_else(|| "/quotas".to_owned(), path);
        unwrap(self.get(&path, &vec![]).await?, "quotas")
    }

    /// Changes quotas of a project; null: as the configuration of the service says.
    pub async fn set_quotas(&self, project: &str, changes: Map) -> Result<Value, Error> {
        unwrap(self.call(Method::PUT, &path(project), &vec![], Some(&changes.into())).await?, "quotas")
    }

    /// Gives a project the quotas of the configuration again.
    pub async fn reset_quotas(&self, project: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &path(project), &vec![], None).await.map(drop)
    }
}

fn path(project: &str) -> String {
    format!("/quotas/{}", segment(project))
}
