//! Calls for stacks that are compared with their objects regularly. Heat has none of them.

use http::Method;
use kiln_value::{Map, Value};

use crate::client::{Query, unwrap, unwrap_list};
use crate::{Client, Error};

/// The path of schedules.
const SCHEDULES: &str = "/drift_schedules";

/// A list of stacks that are watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriftFilter {
    /// Only `IN_SYNC`, `DRIFTED` or `NOT_CHECKED` ones.
    pub status: Option<String>,
    /// Those of all projects, which is for administrators.
    pub all_projects: bool,
    /// Maximum number.
    pub limit: Option<u64>,
    /// Only stacks after the one with this ID.
    pub marker: Option<String>,
}

impl Client {
    /// The stacks that are compared regularly, and what was found.
    pub async fn watched_stacks(&self, filter: &DriftFilter) -> Result<Vec<Value>, Error> {
        let given =
            [("status", filter.status.clone()), ("global_tenant", filter.all_projects.then(|| "true".to_owned()))];
        let query: Query = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        self.pages("/drift", "drift", query, filter.limit, filter.marker.clone()).await
    }

    /// Sets how often a stack, or the stacks of the project, are compared; 0 seconds: never. With `repair`, what has drifted is
    /// repaired where that has a low risk.
    pub async fn set_drift_schedule(&self, stack: Option<&str>, seconds: u64, repair: bool) -> Result<Value, Error> {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let mut body = Map::from([("every".to_owned(), seconds.into())]);
        body.extend(repair.then(|| ("repair".to_owned(), true.into())));
        body.extend(stack.map(|stack| ("stack".to_owned(), stack.into())));
        unwrap(self.call(Method::PUT, SCHEDULES, &vec![], Some(&body.into())).await?, "drift_schedule")
    }

    /// The schedules of the project and of its stacks.
    pub async fn drift_schedules(&self) -> Result<Vec<Value>, Error> {
        unwrap_list(self.get(SCHEDULES, &vec![]).await?, "drift_schedules")
    }

    /// Removes the schedule of a stack, or of the project.
    pub async fn remove_drift_schedule(&self, stack: Option<&str>) -> Result<(), Error> {
        let query: Query = stack.map(|stack| ("stack".to_owned(), stack.to_owned())).into_iter().collect();
        self.call(Method::DELETE, SCHEDULES, &query, None).await.map(drop)
    }
}
