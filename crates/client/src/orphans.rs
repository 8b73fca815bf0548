//! Calls for resources that are forgotten.

use http::Method;
use kiln_value::{Value, value};

use crate::client::{Query, segment};
use crate::{Client, Error};

/// Filters of a list of orphans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanFilter {
    /// Only those of the root stack with this ID.
    pub stack: Option<String>,
    /// Those of all projects, for administrators.
    pub all_projects: bool,
    /// Those of this project, for administrators.
    pub project: Option<String>,
    /// Only orphans after this one.
    pub marker: Option<String>,
    /// Maximum number.
    pub limit: Option<u64>,
}

impl Client {
    /// Forgets a resource whose delete failed; its object is left in the cloud.
    pub async fn forget(&self, stack: &str, resource: &str, reason: &str) -> Result<(), Error> {
        let path = format!("{}/forget", self.resource_path(stack, resource).await?);
        self.call(Method::POST, &path, &vec![], Some(&value!({ "reason": reason }))).await.map(drop)
    }

    /// The objects of forgotten resources, newest first.
    pub async fn orphans(&self, filter: &OrphanFilter) -> Result<Vec<Value>, Error> {
        let mut query = Query::new();
        query.extend(filter.stack.clone().map(|stack| ("stack_id".to_owned(), stack)));
        query.extend(
            (filter.all_projects || filter.project.is_some()).then(|| ("global_tenant".to_owned(), "true".to_owned())),
        );
        query.extend(filter.project.clone().map(|project| ("tenant".to_owned(), project)));
        self.pages("/orphans", "orphans", query, filter.limit, filter.marker.clone()).await
    }

    /// Removes an entry from the list of orphans.
    pub async fn delete_orphan(&self, id: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &format!("/orphans/{}", segment(id)), &vec![], None).await.map(drop)
    }
}
