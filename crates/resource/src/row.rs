//! What is remembered of a resource.

use jiff::Timestamp;
use kiln_value::{Map, Value};

use crate::{ResourceId, StackId, State};

/// A resource as it is. A name has more than one row while a replacement is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// Its stack.
    pub stack: StackId,
    /// Logical name.
    pub name: String,
    /// Type as the template names it.
    pub resource_type: String,
    /// What the type stood for when the resource was made: a type or the URL of a template.
    pub implementation: String,
    /// The object's id in the cloud, or the nested stack's.
    pub physical_id: Option<String>,
    /// Action and status.
    pub state: State,
    /// Reason of the status.
    pub reason: String,
    /// How far the running operation is; the engine's, opaque here.
    pub step: Value,
    /// The resolved definition of the last success: properties, metadata, policies, dependencies; the engine's.
    pub definition: Value,
    /// Metadata.
    pub metadata: Value,
    /// What the driver stored; encrypted at rest, never shown.
    pub data: Map,
    /// Attributes that other resources read, as of the last success.
    pub attributes: Map,
    /// The rows that this one required when it was last made or changed: it is deleted before them.
    pub requires: Vec<ResourceId>,
    /// The row that this one replaces.
    pub replaces: Option<ResourceId>,
    /// The row that replaces this one.
    pub replaced_by: Option<ResourceId>,
    /// The nested stack.
    pub child: Option<StackId>,
    /// The stack's generation that this row was last brought to.
    pub generation: i64,
    /// When the row was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
}

impl Resource {
    /// A row of a resource for which nothing was done yet.
    pub fn new(stack: StackId, id: ResourceId, name: &str, resource_type: &str, created: Timestamp) -> Self {
        Self {
            id,
            stack,
            name: name.to_owned(),
            resource_type: resource_type.to_owned(),
            implementation: resource_type.to_owned(),
            physical_id: None,
            state: State::INIT,
            reason: String::new(),
            step: Value::Null,
            definition: Value::Null,
            metadata: Value::Null,
            data: Map::new(),
            attributes: Map::new(),
            requires: Vec::new(),
            replaces: None,
            replaced_by: None,
            child: None,
            generation: 0,
            created,
            updated: created,
        }
    }
}
