//! An object as a saved plan has seen it. It is read once more before the first call of an operation that changes or deletes
//! it, because others may have changed it since the request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_plan_document::{Moved, ObservedObject};
use kiln_resource::object_drift::Shown;
use kiln_resource::{
    Cloud, Context, Facts, Failure, OperationState, PlanId, RegisteredType, Resource, ResourceId, Software,
};
use kiln_value::Class;

/// The objects that a plan has seen, and whose operations have not begun.
#[derive(Default)]
pub(crate) struct PlannedObjects {
    by_row: BTreeMap<ResourceId, Arc<ObservedObject>>,
    /// Rows that the plan certainly replaces, perhaps only because a user has asked for it.
    replaced: BTreeSet<ResourceId>,
    /// Rows whose operations have begun: their objects have changed.
    begun: BTreeSet<ResourceId>,
}

impl PlannedObjects {
    /// The objects of the rows that the request with this generation has not reached yet; `replaced` are the IDs of objects.
    pub(crate) fn of<'a>(
        seen: impl IntoIterator<Item = ObservedObject>,
        replaced: &BTreeSet<String>,
        rows: impl Iterator<Item = &'a Resource>,
        generation: i64,
    ) -> Self {
        let seen = seen.into_iter().map(|object| (object.id.clone(), Arc::new(object)));
        let seen: BTreeMap<String, Arc<ObservedObject>> = seen.collect();
        let mut objects = Self::default();
        for row in rows.filter(|row| row.operation == OperationState::Idle && row.generation < generation) {
            let Some(id) = &row.physical_id else { continue };
            if let Some(object) = seen.get(id).filter(|object| is_named(row, object.name())) {
                objects.by_row.insert(row.id, Arc::clone(object));
            }
            if replaced.contains(id) {
                objects.replaced.insert(row.id);
            }
        }
        objects
    }

    /// Whether the plan replaces a row whatever the engine would decide.
    pub(crate) fn is_replaced(&self, row: ResourceId) -> bool {
        self.replaced.contains(&row)
    }

    /// The object to read before a row begins an operation.
    pub(crate) fn before(&self, begins: ResourceId, owner: ResourceId) -> Option<Arc<ObservedObject>> {
        self.by_row.get(&owner).filter(|_| !self.begun.contains(&begins)).cloned()
    }

    /// Whether the plan knows that the object of a row does not exist any more.
    pub(crate) fn is_missing(&self, row: ResourceId) -> bool {
        self.by_row.get(&row).is_some_and(|seen| seen.properties.is_none())
    }

    /// A row has begun an operation.
    pub(crate) fn begin(&mut self, row: ResourceId) {
        if !self.by_row.is_empty() {
            self.begun.insert(row);
        }
    }
}

/// Whether a row has this name, or had it before the request.
fn is_named(row: &Resource, name: &str) -> bool {
    row.name == name || row.former_names().next_back() == Some(name)
}

/// What a step checks before its call.
pub(crate) struct PlannedObject {
    pub(crate) plan: PlanId,
    pub(crate) seen: Arc<ObservedObject>,
    /// Of the row that has the object.
    pub(crate) facts: Facts,
    pub(crate) kind: Arc<RegisteredType>,
    /// The object would be deleted: it may be gone already.
    pub(crate) is_deleted: bool,
}

impl PlannedObject {
    /// Reads the object and compares it. A property counts that differs both from the plan and from what the stack has set:
    /// what the operation itself does with other resources may change what the template does not say, such as the device of a
    /// port.
    ///
    /// # Errors
    /// What has moved, without values; or an error of the service.
    pub(crate) async fn check(&self, cloud: &dyn Cloud, software: &dyn Software) -> Result<(), Failure> {
        let cx = Context::reading(cloud, software, &self.facts);
        let shown = match Shown::read(&*self.kind.driver, &cx).await {
            Ok(shown) => shown,
            // Its server or network may have taken it along.
            Err(failure) if failure.is_not_found() && self.is_deleted => return Ok(()),
            Err(failure) if failure.is_not_found() => return self.compared(None, |_| true),
            Err(failure) => return Err(failure),
        };
        let differing = shown.whole_drift(&self.facts.properties);
        self.compared(Some(shown.live), |name| differing.contains_key(name))
    }

    fn compared(&self, live: Option<kiln_value::Map>, counts: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let now = ObservedObject { properties: live, ..ObservedObject::clone(&self.seen) };
        let moved = self.seen.moved(&now).into_iter().filter_map(|moved| match moved {
            Moved::Gone => Some("its object does not exist any more".to_owned()),
            // An object that was missing is planned as one that is made again.
            Moved::Back => Some("its object exists again".to_owned()),
            Moved::Property { name, .. } => counts(&name).then(|| format!("others have changed {name}")),
        });
        let moved: Vec<String> = moved.collect();
        if moved.is_empty() {
            return Ok(());
        }
        let text = format!("{} since the plan {} was accepted", moved.join(", "), self.plan);
        Err(Failure::other(Class::of("ObjectMoved"), text))
    }
}
