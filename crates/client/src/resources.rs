//! Calls for the resources and events of a stack.

use std::collections::BTreeMap;

use http::Method;
use kiln_value::{Value, value};

use crate::client::{Query, segment, stack_path, unwrap, unwrap_list};
use crate::{Client, Error, Event, HookNews, Resource};

/// Filters of an event list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this resource; not together with `nested_depth`.
    pub resource: Option<String>,
    /// Includes nested stacks down to this depth.
    pub nested_depth: u32,
    /// Required properties.
    pub properties: Query,
    /// Only events after this one.
    pub marker: Option<String>,
    /// Maximum number.
    pub limit: Option<u64>,
    /// Sort keys; empty: sort by time.
    pub sort_keys: Vec<String>,
    /// Whether newest events come first.
    pub descending: bool,
}

impl EventFilter {
    fn query(&self) -> Query {
        let mut query = self.properties.clone();
        if self.nested_depth > 0 {
            query.push(("nested_depth".into(), self.nested_depth.to_string()));
        }
        query.extend(self.marker.clone().map(|marker| ("marker".to_owned(), marker)));
        query.extend(self.limit.map(|limit| ("limit".to_owned(), limit.to_string())));
        query.extend(self.sort_keys.iter().map(|key| ("sort_keys".to_owned(), key.clone())));
        query.push(("sort_dir".into(), if self.descending { "desc" } else { "asc" }.into()));
        query
    }
}

impl Client {
    /// The resources of a stack, including those of nested stacks down to `nested_depth`.
    pub async fn resources(
        &self,
        stack: &str,
        nested_depth: u32,
        detail: bool,
        filters: &Query,
    ) -> Result<Vec<Resource>, Error> {
        let mut query = filters.clone();
        if nested_depth > 0 {
            query.push(("nested_depth".into(), nested_depth.to_string()));
        }
        if detail {
            query.push(("with_detail".into(), "True".into()));
        }
        let answer = self.get(&format!("{}/resources", stack_path(stack)), &query).await?;
        Ok(unwrap_list(answer, "resources")?.into_iter().map(Resource).collect())
    }

    /// A resource, with additional attributes.
    pub async fn resource(&self, stack: &str, name: &str, attributes: &[String]) -> Result<Resource, Error> {
        let query = attributes.iter().map(|name| ("with_attr".to_owned(), name.clone())).collect();
        let answer = self.get(&self.resource_path(stack, name).await?, &query).await?;
        unwrap(answer, "resource").map(Resource)
    }

    /// The metadata of a resource.
    pub async fn resource_metadata(&self, stack: &str, name: &str) -> Result<Value, Error> {
        let path = format!("{}/metadata", self.resource_path(stack, name).await?);
        unwrap(self.get(&path, &vec![]).await?, "metadata")
    }

    /// Sends a signal to a resource.
    pub async fn signal(&self, stack: &str, name: &str, data: Option<&Value>) -> Result<(), Error> {
        let path = format!("{}/signal", self.resource_path(stack, name).await?);
        self.call(Method::POST, &path, &vec![], data).await.map(drop)
    }

    /// Marks a resource as unhealthy, so that the next update replaces it, or as healthy.
    pub async fn mark_unhealthy(&self, stack: &str, name: &str, unhealthy: bool, reason: &str) -> Result<(), Error> {
        let body = value!({"mark_unhealthy": unhealthy, "resource_status_reason": reason});
        let path = self.resource_path(stack, name).await?;
        self.call(Method::PATCH, &path, &vec![], Some(&body)).await.map(drop)
    }

    /// Events, by default oldest first.
    pub async fn events(&self, stack: &str, filter: &EventFilter) -> Result<Vec<Event>, Error> {
        let answer = self.get(&self.events_path(stack, filter).await?, &filter.query()).await?;
        Ok(unwrap_list(answer, "events")?.into_iter().map(Event).collect())
    }

    /// The events of a stack; waits for the first one, up to this number of seconds (at most 60). `None` if the service
    /// does not wait, like Heat: poll instead.
    pub async fn awaited_events(
        &self,
        stack: &str,
        filter: &EventFilter,
        seconds: u32,
    ) -> Result<Option<Vec<Event>>, Error> {
        let mut query = filter.query();
        query.push(("wait".into(), seconds.to_string()));
        let (answer, applied) =
            self.get_with(&self.events_path(stack, filter).await?, &query, "preference-applied").await?;
        if !applied.is_some_and(|applied| applied.contains("wait=")) {
            return Ok(None);
        }
        Ok(Some(unwrap_list(answer, "events")?.into_iter().map(Event).collect()))
    }

    /// The hooks at which resources of a stack wait, with the events that say so, oldest first.
    pub async fn pending_hooks(&self, stack: &str, nested_depth: u32) -> Result<Vec<(String, Event)>, Error> {
        let filter = EventFilter { nested_depth, ..EventFilter::default() };
        let mut waiting: BTreeMap<(String, String, String), Event> = BTreeMap::new();
        for event in self.events(stack, &filter).await? {
            let place = |hook: &str| (event.stack_id().to_owned(), event.resource_name().to_owned(), hook.to_owned());
            match event.hook() {
                Some(HookNews::Reached(hook)) => {
                    waiting.insert(place(hook), event.clone());
                }
                Some(HookNews::Cleared(hook)) => {
                    waiting.remove(&place(hook));
                }
                Some(HookNews::Left) => {
                    waiting.retain(|(stack, name, _), _| stack != event.stack_id() || name != event.resource_name());
                }
                None => {}
            }
        }
        let mut found: Vec<(String, Event)> = waiting.into_iter().map(|((_, _, hook), event)| (hook, event)).collect();
        found.sort_by(|(_, a), (_, b)| a.time().cmp(b.time()));
        Ok(found)
    }

    async fn events_path(&self, stack: &str, filter: &EventFilter) -> Result<String, Error> {
        match &filter.resource {
            Some(name) => Ok(format!("{}/events", self.resource_path(stack, name).await?)),
            None => Ok(format!("{}/events", stack_path(stack))),
        }
    }

    /// An event of a resource.
    pub async fn event(&self, stack: &str, resource: &str, id: &str) -> Result<Event, Error> {
        let path = format!("{}/events/{}", self.resource_path(stack, resource).await?, segment(id));
        unwrap(self.get(&path, &vec![]).await?, "event").map(Event)
    }

    pub(crate) async fn resource_path(&self, stack: &str, name: &str) -> Result<String, Error> {
        let stack = self.stack_identity(stack).await?;
        Ok(format!("{}/resources/{}", stack_path(&stack), segment(name)))
    }
}
