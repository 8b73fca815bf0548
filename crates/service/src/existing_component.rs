//! Resources of other stacks that a blueprint uses (`heat://STACK/RESOURCE`).

use kiln_identity::Caller;
use kiln_value::{Value, text};

use crate::Service;

/// What a caller needs the permission for.
const ACTION: &str = "resource:show";

impl Service {
    /// The reference ID of a resource of a stack of the caller's project, or the value of an attribute at a path.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    pub(crate) async fn existing_component(
        &self,
        caller: &Caller,
        stack: &str,
        resource: &str,
        attribute: &[Value],
    ) -> Result<String, String> {
        if !self.policy.allows(ACTION, caller, &caller.project_id) {
            return Err(format!("The policy does not allow {ACTION}."));
        }
        let found = self.backends.store.stack_by_name(&caller.project_id, stack).await;
        let found = found.map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("The project has no stack {stack}."))?;
        let view = self.view(found).await.map_err(|error| error.to_string())?;
        let row = view.resource(resource).ok_or_else(|| format!("The stack {stack} has no resource {resource}."))?;
        let Some((name, path)) = attribute.split_first() else {
            let id = row.physical_id.clone();
            return id.ok_or_else(|| format!("The resource {resource} of the stack {stack} is not created."));
        };
        let name = text::str(name);
        let mut attributes = view.attributes(resource, std::slice::from_ref(&name)).await;
        let mut value = attributes.shift_remove(&name).unwrap_or_default();
        for part in path {
            value = match (value, part) {
                (Value::Map(mut map), part) => map.shift_remove(&text::str(part)).unwrap_or_default(),
                (Value::List(items), Value::Int(index)) => {
                    usize::try_from(*index).ok().and_then(|i| items.into_iter().nth(i)).unwrap_or_default()
                }
                _ => Value::Null,
            };
        }
        if value.is_null() {
            return Err(format!("The resource {resource} of the stack {stack} has no attribute {name}."));
        }
        Ok(text::str(&value))
    }

    /// The country of the region, if it is one of these.
    ///
    /// # Errors
    /// Why it is not, as a sentence.
    pub(crate) fn country(&self, countries: &[String]) -> Result<String, String> {
        let Some(own) = &self.options.jurisdiction else {
            return Err("The operator has not said in which country this region is.".to_owned());
        };
        if countries.contains(own) { Ok(own.clone()) } else { Err(format!("This region is in {own}.")) }
    }
}
