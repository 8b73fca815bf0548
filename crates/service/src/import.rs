//! Imports: changes of stacks that adopt existing objects and do nothing else.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Kind};
use kiln_resource::{Cloud, Context, Facts, Failure, Operation, RegisteredType, Software, properties};
use kiln_template::Definition;
use kiln_value::{Map, Value, value};

use crate::{Error, Service};

/// The number of objects that are looked for at the same time.
const AT_ONCE: usize = 8;

/// An object to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectToImport {
    /// The type of its resource.
    pub resource_type: String,
    /// Its ID in the cloud.
    pub physical_id: String,
}

/// The objects to import by the names of their resources.
pub type ObjectsToImport = BTreeMap<String, ObjectToImport>;

/// The data of the objects as the engine reads them: that of an export, without what only drivers know.
pub(crate) fn data(objects: &ObjectsToImport) -> Map {
    let entry =
        |object: &ObjectToImport| value!({ "type": (&object.resource_type), "resource_id": (&object.physical_id) });
    objects.iter().map(|(name, object)| (name.clone(), entry(object))).collect()
}

/// The objects in such data.
pub(crate) fn objects(data: &Map) -> ObjectsToImport {
    let read = |entry: &Value| {
        Some(ObjectToImport {
            resource_type: entry.str_at("type")?.to_owned(),
            physical_id: entry.str_at("resource_id")?.to_owned(),
        })
    };
    data.iter().filter_map(|(name, entry)| Some((name.clone(), read(entry)?))).collect()
}

/// The resources of a template that can be imported, by type: those with an object in the cloud.
pub fn importable(blueprint: &Blueprint) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for definition in blueprint.definitions().values() {
        if obstacle(blueprint, definition).is_none() {
            found.entry(definition.resource_type.clone()).or_default().push(definition.name.clone());
        }
    }
    found
}

/// Why a resource cannot be imported, whatever the object.
pub(crate) fn obstacle(blueprint: &Blueprint, definition: &Definition) -> Option<String> {
    let (kind, resource_type) = (blueprint.kind(&definition.name), &definition.resource_type);
    if kind.is_some_and(Kind::is_nested) {
        Some("a nested stack cannot be imported, only its objects into a stack of their own".to_owned())
    } else if !kind.and_then(Kind::entry).is_some_and(|entry| entry.driver.has_object()) {
        Some(format!("{resource_type} has no object in the cloud"))
    } else if definition.external_id.is_some() {
        Some("it has an external_id, which refers to an object without importing it".to_owned())
    } else {
        None
    }
}

/// Rejects objects that the resources of a template cannot take over, whatever the cloud says.
pub(crate) fn fit(blueprint: &Blueprint, objects: &ObjectsToImport) -> Result<(), Error> {
    let mut holders = BTreeMap::new();
    for (name, object) in objects {
        let definition = blueprint.definitions().get(name);
        let definition = definition.ok_or_else(|| refused(name, "the template has no such resource"))?;
        let kind = &definition.resource_type;
        if *kind != object.resource_type {
            return Err(refused(name, &format!("its type is {kind}, not {}", object.resource_type)));
        }
        if let Some(why) = obstacle(blueprint, definition) {
            return Err(refused(name, &why));
        }
        if let Some(other) = holders.insert((kind, &object.physical_id), name) {
            return Err(refused(name, &format!("{other} has the same object {}", object.physical_id)));
        }
    }
    Ok(())
}

impl Service {
    /// Rejects objects that the resources of a template cannot adopt: those of unknown resources, of other types, of
    /// types without an object in the cloud, of nested stacks, and those that do not exist.
    pub(crate) async fn check_import(
        &self,
        caller: &Caller,
        blueprint: &Blueprint,
        objects: &ObjectsToImport,
    ) -> Result<(), Error> {
        if !self.options.adopt {
            return Err(Error::NotSupported("Stack Adopt".to_owned()));
        }
        fit(blueprint, objects)?;
        self.find_objects(caller, blueprint, objects).await
    }

    /// Rejects objects that do not exist.
    async fn find_objects(
        &self,
        caller: &Caller,
        blueprint: &Blueprint,
        objects: &ObjectsToImport,
    ) -> Result<(), Error> {
        let Some(cloud) = self.identity.cloud(caller).await else { return Ok(()) };
        let software = &self.backends.software(&caller.project_id);
        let draft = Draft::of(blueprint);
        let checked = objects.iter().filter_map(|(name, object)| {
            let entry = blueprint.kind(name)?.entry()?;
            let (known, unknown) = blueprint.draft_properties(blueprint.definitions().get(name)?, &draft).ok()?;
            // The URL of some objects has properties in it, such as the policy of a rule.
            let located = entry.resource_type.rest.as_ref().is_none_or(|rest| !rest.collection.contains('{'));
            if !located && !unknown.is_empty() {
                return None;
            }
            let facts = Facts {
                name: name.clone(),
                resource_type: object.resource_type.clone(),
                properties: properties::resolve(&entry.resource_type.properties, &known).unwrap_or(known),
                physical_id: Some(object.physical_id.clone()),
                ..Facts::default()
            };
            Some((entry, facts))
        });
        let cloud = &*cloud;
        let looks: Vec<BoxFuture<'_, Option<Error>>> =
            checked.map(|(entry, facts)| missing(cloud, software, entry, facts).boxed()).collect();
        let mut refusals = stream::iter(looks).buffered(AT_ONCE).filter_map(std::future::ready);
        refusals.next().await.map_or(Ok(()), Err)
    }
}

/// The error if the object does not exist.
async fn missing(cloud: &dyn Cloud, software: &dyn Software, entry: &RegisteredType, facts: Facts) -> Option<Error> {
    let cx = Context::reading(cloud, software, &facts);
    let failure = entry.driver.start(&cx, &Operation::Check).await.err().filter(Failure::is_not_found)?;
    let (kind, id) = (&facts.resource_type, facts.physical_id.as_deref().unwrap_or_default());
    Some(refused(&facts.name, &format!("{kind} {id} was not found: {}", failure.message)))
}

pub(crate) fn refused(name: &str, why: &str) -> Error {
    Error::Import(format!("Resource {name} cannot be imported: {why}."))
}
