//! Compares objects that are to become resources with what a template says of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use kiln_plan::hidden::{HiddenValues, Masked};
use kiln_plan::{Blueprint, Decision, Model, StackScope, facts};
use kiln_resource::object_drift::Shown;
use kiln_resource::{
    Action, Cloud, CloudRequest, Context, Driver, Failure, Method, Resource, ResourceId, State, Status,
};
use kiln_stack::Backends;
use kiln_stack::gather::Gatherer;
use kiln_stack::load::stack_facts;
use kiln_store::Stack;
use kiln_value::{Value, text};

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
        for property in &mut self.differing {
            property.expected.mask(hidden);
            property.actual.mask(hidden);
            property.baseline.mask(hidden);
        }
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
    for name in in_order(blueprint) {
        let (Some(kind), Some(physical_id)) = (blueprint.kind(&name), objects.get(&name)) else { continue };
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
            &name,
            &entry.resource_type.name,
            backends.clock.now(),
        );
        row.physical_id = Some(physical_id.clone());
        row.state = State::new(Action::Adopt, Status::Complete);
        match decided(backends, stack, &scope, &name).await {
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
                    one.unread = shown.unequal(&entry.resource_type, given, stored).1;
                }
                Err(failure) => one.failure = Some(failure.message),
            }
            if one.failure.is_none() && !is_own(&cloud, &*entry.driver, &cx).await {
                one.failure = Some("the object belongs to another project".to_owned());
            }
            let wanted = blueprint.wanted_names(&name);
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
async fn is_own(cloud: &dyn Cloud, driver: &dyn Driver, cx: &Context<'_>) -> bool {
    let part_of = |property: &str| path_segment(&text::str(cx.facts.property(property)));
    let owner = match cx.facts.resource_type.as_str() {
        INTERFACE => Some(("network", format!("/v2.0/routers/{}", part_of("router")), "router")),
        ATTACHMENT => Some(("compute", format!("/servers/{}", part_of("instance_uuid")), "server")),
        _ => None,
    };
    let object = match owner {
        Some((service, path, member)) => {
            let answer = cloud.call(CloudRequest::new(service, Method::Get, path)).await;
            answer.ok().and_then(|answer| answer.body.get(member).cloned())
        }
        None => driver.attributes(cx, &["show"]).await.ok().and_then(|shown| shown.get("show").cloned()),
    };
    match (object, cloud.project_id().await) {
        (Some(object), Ok(project)) => is_of(&object, &project),
        _ => false,
    }
}

/// An ID in a path.
fn path_segment(id: &str) -> String {
    id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect()
}

/// The definition of a resource with all its values, and with the IDs that names mean.
async fn decided(
    backends: &Backends,
    stack: &Stack,
    scope: &StackScope,
    name: &str,
) -> Result<Arc<kiln_resource::StoredDefinition>, Failure> {
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
        converge: false,
        guards: None,
    };
    let refused = |decision| match decision {
        Decision::Create { definition } => Ok(definition),
        Decision::Refuse { failure } | Decision::Restrict { failure } => Err(failure),
        _ => Err(Failure::other(kiln_value::Class::InternalError, "it is not decided what it is")),
    };
    match gatherer.question(name, None, None) {
        Some(Ok(question)) => refused(question.answer().await.decision),
        Some(Err(decision)) => refused(decision),
        None => Err(Failure::other(kiln_value::Class::InternalError, "the template has no such resource")),
    }
}

/// The names of the resources, each after those that it requires.
fn in_order(blueprint: &Blueprint) -> Vec<String> {
    let mut order = Vec::new();
    let mut placed: HashSet<&str> = HashSet::new();
    let mut begun: BTreeSet<&str> = BTreeSet::new();
    // Without recursion: a template may be a long chain.
    for start in blueprint.definitions().keys() {
        let mut stack = vec![start.as_str()];
        while let Some(name) = stack.last().copied() {
            if placed.contains(name) {
                stack.pop();
            } else if begun.insert(name) {
                stack.extend(blueprint.requires(name).iter().map(String::as_str).filter(|one| !begun.contains(one)));
            } else {
                placed.insert(name);
                order.push(name.to_owned());
                stack.pop();
            }
        }
    }
    order
}
