//! Compares objects that are to become resources with what a template says of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_plan::hidden::{HiddenValues, Masked};
use kiln_plan::{Blueprint, Decision, Model, StackScope, facts};
use kiln_resource::object_drift::Shown;
use kiln_resource::{
    Action, Cloud, Context, Converging, Facts, Failure, RegisteredType, Resource, ResourceId, State, Status,
    StoredDefinition,
};
use kiln_stack::Backends;
use kiln_stack::gather::Gatherer;
use kiln_stack::load::stack_facts;
use kiln_store::Stack;
use kiln_value::{Class, Value, text};

use super::scan::{ATTACHMENT, INTERFACE, is_of};
use crate::reading_cloud::ReadingCloud;
use crate::stack_drift::{PropertyDrift, differing};

/// An object, compared with the resource that it is to become.
#[derive(Clone, Debug)]
pub struct ComparedObject {
    /// The name of the resource.
    pub resource: String,
    /// Its type.
    pub resource_type: String,
    /// The ID of the object.
    pub physical_id: String,
    /// The properties with another value in the object than in the template.
    pub differing: Vec<PropertyDrift>,
    /// The properties of the template that cannot be read in the object.
    pub unread: Vec<String>,
    /// Why it could not be compared: the object does not exist, or cannot be read.
    pub failure: Option<String>,
    /// The metadata of the template.
    pub metadata: Value,
}

impl Masked for ComparedObject {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.differing.mask(hidden);
        self.failure.mask(hidden);
        self.metadata.mask(hidden);
    }
}

/// Compares the objects of all resources, by their names, with a template, in the order of its dependencies. The stack is
/// not stored. Sends only requests that read.
pub async fn compare(
    backends: &Backends,
    cloud: &Arc<dyn Cloud>,
    stack: &Stack,
    blueprint: &Arc<Blueprint>,
    objects: &BTreeMap<String, String>,
) -> Vec<ComparedObject> {
    let cloud = ReadingCloud::new(Arc::clone(cloud), objects.len());
    let mut scope = StackScope::new(Arc::clone(blueprint), stack_facts(stack));
    let mut compared = Vec::new();
    for definition in blueprint.in_order() {
        let name = &definition.name;
        let (Some(kind), Some(physical_id)) = (blueprint.kind(name), objects.get(name)) else { continue };
        let Some(entry) = kind.entry() else { continue };
        let mut one = ComparedObject {
            resource: name.clone(),
            resource_type: entry.resource_type.name.clone(),
            physical_id: physical_id.clone(),
            differing: Vec::new(),
            unread: Vec::new(),
            failure: None,
            metadata: Value::Null,
        };
        let mut row = Resource::new(
            stack.id,
            ResourceId(backends.chance.uuid()),
            name,
            &entry.resource_type.name,
            backends.clock.now(),
        );
        row.physical_id = Some(physical_id.clone());
        row.state = State::new(Action::Adopt, Status::Complete);
        match decided(backends, stack, &scope, name).await {
            Ok(definition) => row.definition = Some(definition),
            Err(failure) => one.failure = Some(failure.message),
        }
        if one.failure.is_none() {
            if let Some(definition) = &row.definition {
                one.metadata = Value::Map(definition.metadata.clone());
            }
            let facts = facts(&row, kind, &stack_facts(stack));
            let software = backends.software(&stack.project);
            let cx = Context::reading(&cloud, &software, &facts);
            match Shown::read(&*entry.driver, &cx).await {
                Ok(shown) => {
                    let stored = row.properties();
                    let given = row.definition.as_ref().map_or(stored, |definition| definition.given());
                    one.differing = differing(&shown, &entry.resource_type, stored);
                    one.unread = shown.unread(&entry.resource_type, given, stored);
                }
                Err(failure) => one.failure = Some(failure.message),
            }
            if one.failure.is_none() && !is_own(backends, entry, &cx).await {
                one.failure = Some("the object belongs to another project".to_owned());
            }
            let wanted = blueprint.wanted_names(name);
            if one.failure.is_none() && !wanted.is_empty() {
                let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
                match entry.driver.attributes(&cx, &names).await {
                    Ok(attributes) => row.attributes = attributes,
                    Err(failure) => one.failure = Some(failure.message),
                }
            }
        }
        scope.see(&row);
        compared.push(one);
    }
    compared
}

/// Whether an object, or the one that it is a part of, belongs to the project of the cloud. An administrator can read those of
/// all projects. Some objects have no project.
async fn is_own(backends: &Backends, entry: &RegisteredType, cx: &Context<'_>) -> bool {
    let part_of = match cx.facts.resource_type.as_str() {
        INTERFACE => Some(("OS::Neutron::Router", "router")),
        ATTACHMENT => Some(("OS::Nova::Server", "instance_uuid")),
        _ => None,
    };
    let whole = part_of.and_then(|(resource_type, property)| {
        let physical_id = Some(text::str(cx.facts.property(property)));
        let facts = Facts { resource_type: resource_type.to_owned(), physical_id, ..Facts::default() };
        Some((backends.resource_types.types.get(resource_type)?, facts))
    });
    let shown = match &whole {
        Some((entry, facts)) => {
            entry.driver.attributes(&Context::reading(cx.cloud, cx.software, facts), &["show"]).await
        }
        None => entry.driver.attributes(cx, &["show"]).await,
    };
    match (shown, cx.cloud.project_id().await) {
        (Ok(shown), Ok(project)) => {
            let object = shown.get("show").filter(|object| !object.is_null());
            object.map_or(part_of.is_none(), |object| is_of(object, &project))
        }
        _ => false,
    }
}

/// The definition of a resource with all its values, and with the IDs that names mean.
async fn decided(
    backends: &Backends,
    stack: &Stack,
    scope: &StackScope,
    name: &str,
) -> Result<Arc<StoredDefinition>, Failure> {
    let model = Model::new(Vec::new());
    let gatherer = Gatherer {
        backends,
        scope,
        model: &model,
        stack,
        root: Arc::new(stack.clone()),
        is_preview: true,
        call_retries: 0,
        request: None,
        nested_depth: u32::MAX,
        converging: Converging::None,
        guards: None,
    };
    let refused = |decision| match decision {
        Decision::Create { definition } => Ok(definition),
        Decision::Refuse { failure } | Decision::Restrict { failure } => Err(failure),
        _ => Err(Failure::other(Class::InternalError, "it is not decided what it is")),
    };
    match gatherer.question(name, None, None) {
        Some(Ok(question)) => refused(question.answer().await.decision),
        Some(Err(decision)) => refused(decision),
        None => Err(Failure::other(Class::InternalError, "the template has no such resource")),
    }
}
