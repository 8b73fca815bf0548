//! The stored data of a resource.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use kiln_value::{Map, Value};

use crate::{OperationState, ResourceId, Running, StackId, State, StoredDefinition};

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
    /// The operation under way.
    pub operation: OperationState,
    /// The resolved definition of the last success; of a resource being created, the one it is created by. `None`
    /// before that.
    pub definition: Option<Arc<StoredDefinition>>,
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
            operation: OperationState::Idle,
            definition: None,
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

    /// The operation under way, if there is one that this version of Kiln knows.
    pub fn running(&self) -> Option<&Running> {
        self.operation.running()
    }

    /// The properties of the last success.
    pub fn properties(&self) -> &Map {
        static NONE: LazyLock<Map> = LazyLock::new(Map::new);
        self.definition.as_ref().map_or(&NONE, |definition| &definition.properties)
    }

    /// Whether the object stays when the resource goes.
    pub fn is_retained(&self) -> bool {
        self.definition.as_ref().is_some_and(|definition| definition.is_retained())
    }
}
