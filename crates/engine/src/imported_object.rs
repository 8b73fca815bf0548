//! An object that is taken over as it is. It is compared with the template once more before it gets its row, because others may
//! have changed it since the request.

use std::sync::Arc;

use kiln_resource::object_drift::Shown;
use kiln_resource::{Cloud, Context, Facts, Failure, RegisteredType, ResourceId, Software, StoredDefinition};
use kiln_stack::owner::owner;
use kiln_stack::stored_software;
use kiln_store::Store;
use kiln_value::{Class, Value, text};

/// What a step checks before it takes over an object.
///
/// The facts of the step itself stay without its ID: a failed step would give it to the row, and a rollback would delete the
/// object.
pub(crate) struct ImportedObject {
    row: ResourceId,
    kind: Arc<RegisteredType>,
    definition: Arc<StoredDefinition>,
    /// With the ID of the object.
    facts: Facts,
    id: String,
    /// The properties that cannot be read, and that the user vouches for.
    confirmed: Vec<String>,
}

impl ImportedObject {
    /// The object in the data that a resource adopts. `None`: the data does not ask for a comparison, or has no ID.
    pub(crate) fn of(
        adopted: &Value,
        row: ResourceId,
        kind: &Arc<RegisteredType>,
        definition: &Arc<StoredDefinition>,
        facts: &Facts,
    ) -> Option<Self> {
        let (import, id) = (adopted.get("import")?, adopted.str_at("resource_id")?.to_owned());
        let confirmed = import.get("confirmed").and_then(Value::as_list).unwrap_or_default();
        Some(Self {
            row,
            kind: Arc::clone(kind),
            definition: Arc::clone(definition),
            facts: Facts { physical_id: Some(id.clone()), ..facts.clone() },
            id,
            confirmed: confirmed.iter().map(text::str).collect(),
        })
    }

    /// Reads the object and compares it with the template.
    ///
    /// # Errors
    /// Another resource has the object, or it is not as the template says; errors of the driver.
    pub(crate) async fn check(
        &self,
        cloud: &dyn Cloud,
        software: &dyn Software,
        store: &dyn Store,
    ) -> Result<(), Failure> {
        let wanted = (self.facts.resource_type.as_str(), self.id.as_str());
        let other = owner(store, &self.facts.stack.project_id, wanted, Some(self.row)).await;
        if let Some(other) = other.map_err(|error| stored_software::failure(&error))? {
            let text = format!("the object belongs to the resource {} of another stack", other.name);
            return Err(Failure::other(Class::StackValidationFailed, text));
        }
        let cx = Context::reading(cloud, software, &self.facts);
        let shown = Shown::read(&*self.kind.driver, &cx).await?;
        let stored = &self.definition.properties;
        let unread = shown.unread(&self.kind.resource_type, self.definition.given(), stored);
        let unread = unread.into_iter().filter(|name| !self.confirmed.contains(name));
        let names: Vec<String> = shown.whole_drift(stored).into_iter().map(|(name, _)| name).chain(unread).collect();
        if names.is_empty() {
            return Ok(());
        }
        let text = format!("the object is not as the template says, and stays as it is: {}", names.join(", "));
        Err(Failure::other(Class::StackValidationFailed, text))
    }
}
