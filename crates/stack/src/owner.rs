//! Which resource has an object.

use kiln_resource::{Resource, ResourceId};
use kiln_store::{Error, Store};

/// The resource of a project that has an object which a resource of this type would have; not the row `except`.
///
/// # Errors
/// Errors of the store.
pub async fn owner(
    store: &dyn Store,
    project: &str,
    (resource_type, id): (&str, &str),
    except: Option<ResourceId>,
) -> Result<Option<Resource>, Error> {
    let rows = store.resources_by_physical_id(project, id).await?;
    Ok(rows.into_iter().find(|row| Some(row.id) != except && is_of_kind(&row.implementation, resource_type)))
}

/// Whether the object of a resource may be one of this type. Only a volume and its attachments have the same ID; the types of
/// AWS have objects of the others.
fn is_of_kind(implementation: &str, resource_type: &str) -> bool {
    let is_attachment = |name: &str| name.ends_with("VolumeAttachment");
    is_attachment(implementation) == is_attachment(resource_type)
}
