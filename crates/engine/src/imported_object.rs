//! An object that is taken over as it is. It is compared with the template once more before it gets its row, because others may
//! have changed it since the request. No other stack can take it over: the request has claimed it.

use std::sync::Arc;

use kiln_resource::object_drift::Shown;
use kiln_resource::{Cloud, Context, Facts, Failure, RegisteredType, Software, StoredDefinition};
use kiln_value::{Class, Value, text};

/// What a step checks before it takes over an object.
///
/// The facts of the step itself stay without its ID: a failed step would give it to the row, and a rollback would delete the
/// object.
pub(crate) struct ImportedObject {
    kind: Arc<RegisteredType>,
    definition: Arc<StoredDefinition>,
    /// With the ID of the object.
    facts: Facts,
    /// The properties that cannot be read, and that the user vouches for.
    confirmed: Vec<String>,
}

impl ImportedObject {
    /// The object in the data that a resource adopts. `None`: the data does not ask for a comparison, or has no ID.
    pub(crate) fn of(
        adopted: &Value,
        kind: &Arc<RegisteredType>,
        definition: &Arc<StoredDefinition>,
        facts: &Facts,
    ) -> Option<Self> {
        let (import, id) = (adopted.get("import")?, adopted.str_at("resource_id")?.to_owned());
        let confirmed = import.get("confirmed").and_then(Value::as_list).unwrap_or_default();
        Some(Self {
            kind: Arc::clone(kind),
            definition: Arc::clone(definition),
            facts: Facts { physical_id: Some(id), ..facts.clone() },
            confirmed: confirmed.iter().map(text::str).collect(),
        })
    }

    /// Reads the object and compares it with the template.
    ///
    /// # Errors
    /// The object is not as the template says; errors of the driver.
    pub(crate) async fn check(&self, cloud: &dyn Cloud, software: &dyn Software) -> Result<(), Failure> {
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
