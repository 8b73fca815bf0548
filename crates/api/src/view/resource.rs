//! Resources in lists and in detail.

use std::collections::HashMap;

use kiln_resource::{Resource, StackId};
use kiln_stack::{Backends, LoadedStack};
use kiln_store::Stack;
use kiln_value::{Map, Value};
use serde::Serialize;

use super::instant::instant;
use super::resource_list::nested_of;
use crate::error::ApiError;
use crate::link::{Link, Links};

/// The common data of a resource.
#[derive(Serialize)]
pub(crate) struct ResourceEntry<'a> {
    updated_time: String,
    creation_time: String,
    logical_resource_id: &'a str,
    resource_name: &'a str,
    physical_resource_id: &'a str,
    resource_status: String,
    resource_status_reason: &'a str,
    resource_type: &'a str,
    links: Vec<Link>,
    required_by: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_resource: Option<&'a str>,
    #[serde(flatten)]
    detail: Option<Detail<'a>>,
}

impl<'a> ResourceEntry<'a> {
    /// The entry of a resource of a stack.
    pub(super) fn new(
        stack: &'a Stack,
        row: &'a Resource,
        nested: Option<&Stack>,
        required_by: Vec<&'a str>,
        links: &Links,
    ) -> Self {
        let mut around =
            vec![links.to(stack, &format!("/resources/{}", row.name), "self"), links.to_stack(stack, "stack")];
        around.extend(nested.map(|nested| links.to_stack(nested, "nested")));
        Self {
            updated_time: instant(row.updated),
            creation_time: instant(row.created),
            logical_resource_id: &row.name,
            resource_name: &row.name,
            physical_resource_id: row.physical_id.as_deref().unwrap_or_default(),
            resource_status: row.state.to_string(),
            resource_status_reason: &row.reason,
            resource_type: &row.resource_type,
            links: around,
            required_by,
            parent_resource: stack.parent.as_ref().map(|parent| parent.resource_name.as_str()),
            detail: None,
        }
    }

    /// Adds the details of a single resource.
    pub(crate) fn with(self, detail: Option<Detail<'a>>) -> Self {
        Self { detail, ..self }
    }
}

/// The details of a single resource.
#[derive(Serialize)]
pub(crate) struct Detail<'a> {
    description: &'a str,
    attributes: Map,
}

/// The resources of a stack with the data for their entries.
pub(crate) struct StackResources {
    pub(crate) view: LoadedStack,
    rows: Vec<Resource>,
    /// The direct dependants of each resource.
    required_by: HashMap<String, Vec<String>>,
    /// Nested stacks of resources, by ID.
    nested: HashMap<StackId, Stack>,
}

impl StackResources {
    /// The rows of a stack. A resource without a row is `INIT_COMPLETE`.
    pub(crate) async fn new(backends: &Backends, view: LoadedStack) -> Result<Self, ApiError> {
        let rows = kiln_view::listed(&view);
        let nested = nested_of(backends, view.stack.id, &rows).await?;
        let required_by = view.blueprint.required_by();
        Ok(Self { view, rows, required_by, nested })
    }

    /// The resources.
    pub(crate) fn rows(&self) -> &[Resource] {
        &self.rows
    }

    /// The resource with a name, or with a former name: servers and alarms know URLs with it.
    pub(crate) fn row(&self, name: &str) -> Option<&Resource> {
        let named = |name: &str| self.rows.iter().find(|row| row.name == name);
        named(name).or_else(|| named(&self.view.model().current_or_moved(name)?.name))
    }

    /// The nested stack of a resource.
    pub(crate) fn nested(&self, row: &Resource) -> Option<&Stack> {
        self.nested.get(&row.child?)
    }

    /// The entry of a resource.
    pub(crate) fn entry<'a>(&'a self, row: &'a Resource, links: &Links) -> ResourceEntry<'a> {
        let stack = &self.view.stack;
        ResourceEntry::new(stack, row, self.nested(row), self.required_by(&row.name), links)
    }

    /// The names of the resources that directly depend on this one.
    pub(crate) fn required_by(&self, name: &str) -> Vec<&str> {
        self.required_by.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    /// Description and live attributes of a resource; `more` names attributes in addition to those of its schema.
    pub(crate) async fn detail<'a>(&'a self, row: &Resource, more: &[String]) -> Detail<'a> {
        let mut names = vec!["show".to_owned()];
        names.extend_from_slice(more);
        let mut attributes = self.view.attributes(&row.name, &names).await;
        // Some types return their whole object as attributes, in the format of the service.
        if let Some(Value::Map(mut shown)) = attributes.shift_remove("show") {
            shown.extend(attributes.into_iter().filter(|(name, _)| more.contains(name)));
            attributes = shown;
        }
        let definition = self.view.blueprint.definitions().get(&row.name);
        Detail { description: definition.map_or("", |one| one.description.as_str()), attributes }
    }
}
