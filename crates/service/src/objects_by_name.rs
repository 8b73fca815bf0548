//! Finds the objects that the new resources of a change have the names of.

use std::collections::BTreeMap;

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft};
use kiln_value::Value;
use kiln_view::import::{FoundObject, scanned_types};

use crate::import::{self, ObjectsToImport, refused};
use crate::{Error, Inventory, ObjectToImport, Service, StackChange};

impl Service {
    /// The objects of the project that no stack has, and that have the type and the name of a new resource of a change. A resource
    /// whose template gives no name has none.
    ///
    /// # Errors
    /// [`Error::Import`] if a name is that of several objects, or nobody knows whether there is one; those of the change.
    pub async fn objects_by_name(&self, caller: &Caller, change: &StackChange) -> Result<ObjectsToImport, Error> {
        let names = match change {
            StackChange::Create(create) => {
                let previewed = self.preview_create(caller, create.clone()).await?;
                names(&previewed.expose().blueprint, |_| false)
            }
            StackChange::Update(stack, update) => {
                let blueprint = self.updated_blueprint(caller, stack, update.clone()).await?;
                let view = self.view((**stack).clone()).await?;
                names(&blueprint, |name| view.resource(name).is_some())
            }
        };
        if names.is_empty() {
            return Ok(ObjectsToImport::new());
        }
        let Inventory { scan, owners } = self.inventory(caller).await?;
        let mut found = ObjectsToImport::new();
        for (resource, (resource_type, name)) in names {
            let unlisted = scan.unlisted.iter().any(|(unlisted, _)| *unlisted == resource_type);
            if unlisted || !scanned_types().any(|scanned| scanned == resource_type) {
                let why = format!("objects of the type {resource_type} cannot be found by their names");
                return Err(refused(&resource, &why));
            }
            let is_it = |one: &&FoundObject| {
                one.key.resource_type == resource_type && one.name == name && !owners.contains_key(&one.key)
            };
            match scan.objects.iter().filter(is_it).collect::<Vec<_>>().as_slice() {
                [] => {}
                [one] => {
                    let object = ObjectToImport { resource_type, physical_id: one.key.id.clone() };
                    found.insert(resource, object);
                }
                several => {
                    // The name may be a hidden value.
                    let why = format!("{} objects of the type {resource_type} have its name", several.len());
                    return Err(refused(&resource, &why));
                }
            }
        }
        Ok(found)
    }
}

/// The types and the names of the objects of the resources that a stack does not have yet, by the names of the resources.
fn names(blueprint: &Blueprint, is_present: impl Fn(&str) -> bool) -> BTreeMap<String, (String, String)> {
    let draft = Draft::of(blueprint);
    let new = blueprint.definitions().values().filter(|definition| !is_present(&definition.name));
    let named = new.filter(|definition| import::obstacle(blueprint, definition).is_none()).filter_map(|definition| {
        let (known, _) = blueprint.draft_properties(definition, &draft).ok()?;
        let name = known.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        Some((definition.name.clone(), (definition.resource_type.clone(), name.to_owned())))
    });
    named.collect()
}
