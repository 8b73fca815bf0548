//! The stored data of a resource.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use kiln_value::{Map, Value};

use crate::{OperationState, ResourceId, Running, StackId, State, StoredDefinition};

/// The entry of a resource's data with the token of a create with unknown outcome, and the time until which its call
/// may be in progress (microseconds since 1970). A later delete looks for the object first.
pub const LOST_CREATE: &str = "kiln_lost_create";

/// The entry of a resource's data with the names that it had before.
const FORMER_NAMES: &str = "kiln_former_names";
/// The entry with the name that a row had when it began.
const FIRST_NAME: &str = "kiln_first_name";
/// The entry with the name of the stack in which a row began.
const FIRST_STACK: &str = "kiln_first_stack";

/// The actual state of a resource. During a replacement, a name has more than one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its ID.
    pub id: ResourceId,
    /// Its stack.
    pub stack: StackId,
    /// Logical name.
    pub name: String,
    /// Type as the template names it.
    pub resource_type: String,
    /// What implemented the type when the resource was created: a type or the URL of a template.
    pub implementation: String,
    /// The ID of the object in the cloud, or of the nested stack.
    pub physical_id: Option<String>,
    /// Action and status.
    pub state: State,
    /// Reason of the status.
    pub reason: String,
    /// The running operation.
    pub operation: OperationState,
    /// The resolved definition of the last success, or for a resource that is being created, that of the create; `None`
    /// before.
    pub definition: Option<Arc<StoredDefinition>>,
    /// Metadata.
    pub metadata: Value,
    /// Data stored by the driver; encrypted in the database, never shown.
    pub data: Map,
    /// Attributes that other resources read, as of the last success.
    pub attributes: Map,
    /// The rows that this one required when it was last created or updated: it is deleted before them.
    pub requires: Vec<ResourceId>,
    /// The row that this one replaces.
    pub replaces: Option<ResourceId>,
    /// The row that replaces this one.
    pub replaced_by: Option<ResourceId>,
    /// The nested stack.
    pub child: Option<StackId>,
    /// The generation of the stack that this row has reached.
    pub generation: i64,
    /// Time of creation.
    pub created: Timestamp,
    /// Time of the last change.
    pub updated: Timestamp,
}

impl Resource {
    /// A row for a resource without any operation yet.
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

    /// The running operation, if this version of Kiln can read it.
    pub fn running(&self) -> Option<&Running> {
        self.operation.running()
    }

    /// The properties of the last success.
    pub fn properties(&self) -> &Map {
        static NONE: LazyLock<Map> = LazyLock::new(Map::new);
        self.definition.as_ref().map_or(&NONE, |definition| &definition.properties)
    }

    /// The names that the row had before, the oldest one first.
    pub fn former_names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.data.get(FORMER_NAMES).and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether the row has had another name.
    pub fn has_moved(&self) -> bool {
        self.data.contains_key(FORMER_NAMES)
    }

    /// The name with which the row began: names of objects are made of it, and never made again of a later one.
    pub fn first_name(&self) -> &str {
        self.data.get(FIRST_NAME).and_then(Value::as_str).unwrap_or(&self.name)
    }

    /// The name of the stack in which the row began, if it was another one: names of objects are made of it.
    pub fn first_stack(&self) -> Option<&str> {
        self.data.get(FIRST_STACK).and_then(Value::as_str)
    }

    /// Moves the row from a stack with this name to another stack, where it gets another name. Its names in the former stack
    /// mean nothing there.
    pub fn move_to(&mut self, from: &str, stack: StackId, name: &str) {
        let (first_name, first_stack) = (self.first_name().to_owned(), self.first_stack().unwrap_or(from).to_owned());
        self.data.insert(FIRST_NAME.to_owned(), first_name.into());
        self.data.insert(FIRST_STACK.to_owned(), first_stack.into());
        self.data.shift_remove(FORMER_NAMES);
        self.stack = stack;
        name.clone_into(&mut self.name);
    }

    /// Takes over the former names of the row that this one replaces: whoever knows only such a name reaches this one now.
    pub fn inherit_names(&mut self, replaced: &Self) {
        if let Some(names) = replaced.data.get(FORMER_NAMES) {
            self.data.insert(FORMER_NAMES.to_owned(), names.clone());
        }
    }

    /// Gives the row another name. A former name that it gets again is no former name any more.
    pub fn rename(&mut self, name: &str) {
        if !self.data.contains_key(FIRST_NAME) {
            self.data.insert(FIRST_NAME.to_owned(), self.name.as_str().into());
        }
        let kept: Vec<Value> = self
            .former_names()
            .chain([self.name.as_str()])
            .take_while(|former| *former != name)
            .map(Value::from)
            .collect();
        self.data.insert(FORMER_NAMES.to_owned(), Value::List(kept));
        name.clone_into(&mut self.name);
    }

    /// Whether there is an object, or one may exist whose ID is not known.
    pub fn may_have_object(&self) -> bool {
        self.physical_id.is_some() || self.data.contains_key(LOST_CREATE)
    }

    /// Whether the object is kept when the resource is deleted.
    pub fn is_retained(&self) -> bool {
        self.definition.as_ref().is_some_and(|definition| definition.is_retained())
    }
}
