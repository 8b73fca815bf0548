//! What drivers and rules of types know about a resource and its stack.

use std::time::Duration;

use kiln_value::{Class, Map, Value};

use crate::{Failure, Member};

/// The stack that a resource belongs to.
#[derive(Clone, Debug, Default)]
pub struct StackFacts {
    /// Stack id.
    pub id: String,
    /// Stack name.
    pub name: String,
    /// Project (tenant) id of the stack.
    pub project_id: String,
    /// Project of the stack's users, once made.
    pub user_project_id: Option<String>,
    /// Id of the root stack of the tree.
    pub root_id: String,
    /// The way from the root stack to this one for hints of the scheduler: `["web", "tier,web-tier-x2y4"]`, the name of
    /// a nested stack after that of its resource. Empty unless `stack_scheduler_hints` is set, and in plans.
    pub path: Vec<String>,
}

/// The resource that a driver works on.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Kiln's id of the resource (a UUID); a replacement has another one.
    pub id: String,
    /// Logical name in the template.
    pub name: String,
    /// Type as it was resolved: `OS::Neutron::Net`.
    pub resource_type: String,
    /// The stack.
    pub stack: StackFacts,
    /// The name of the object if the template specifies none; unique: `<stack>-<resource>-<short id>`.
    pub physical_name: String,
    /// ID of the object in the cloud, if known.
    pub physical_id: Option<String>,
    /// Resolved, coerced and translated properties: all properties of the schema, null without a value. For an update
    /// these are the new ones, for a delete those of the last success.
    pub properties: Map,
    /// Names of the properties that the template specifies (others have defaults).
    pub given: Vec<String>,
    /// Metadata section, resolved.
    pub metadata: Value,
    /// The data of earlier steps (`resource_data`); never shown to users.
    pub data: Map,
    /// The attempt to create the object.
    pub attempt: Attempt,
    /// What is asked of the nested stack that stands for the object.
    pub nested: NestedFacts,
    /// The current action and status: `("CREATE", "IN_PROGRESS")`.
    pub state: (String, String),
    /// The existing resources of [`crate::TypeRules::observes`].
    pub observed: Vec<Observed>,
    /// The hints for the scheduler if the operator has changed those of [`crate::TypeRules::scheduler_hints`].
    pub scheduler_hints: Option<Map>,
}

/// An attempt to create an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    /// Its token, a UUID. It is stored before the first call, so that [`crate::Driver::find`] can look for the object of a
    /// lost call.
    pub token: String,
    /// The object is created without a mark: the time before the call in seconds since 1970, by the clock of
    /// [`crate::Unmarked::service`], or by that of the database for one that is [`crate::Unmarked::listed`].
    pub unmarked_since: Option<i64>,
}

/// What is asked of a nested stack: only [`crate::NestedStack`] and [`crate::Group`] read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NestedFacts {
    /// Which of several templates is requested ([`crate::Nested::then`]); null at first.
    pub step: Value,
    /// Only the last of several templates is requested, for a plan: [`crate::Nested::then`] is ignored.
    pub last_step: bool,
    /// Its resources: failed ones first, then from the oldest to the newest, then by name.
    pub members: Vec<Member>,
    /// The properties that the running update changes.
    pub changed: Vec<String>,
    /// The update policy with the defaults of its schema; null for policies that are not given.
    pub update_policy: Map,
    /// Timeout of an action on the stack; `None` if it is unknown.
    pub action_timeout: Option<Duration>,
}

/// Another resource of the stack, as currently stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Kiln's id of the resource.
    pub id: String,
    /// Logical name.
    pub name: String,
    /// ID of the object, if it is known.
    pub physical_id: Option<String>,
    /// Its type.
    pub resource_type: String,
    /// Its metadata.
    pub metadata: Value,
    /// Its properties.
    pub properties: Map,
    /// The data of its driver.
    pub data: Map,
}

impl Facts {
    /// The value of a property; null if it has none.
    pub fn property(&self, name: &str) -> &Value {
        const NULL: &Value = &Value::Null;
        self.properties.get(name).unwrap_or(NULL)
    }

    /// The physical ID.
    ///
    /// # Errors
    /// Not found, if it is unknown.
    pub fn require_id(&self) -> Result<&str, Failure> {
        self.physical_id.as_deref().ok_or_else(|| {
            Failure::new(crate::FailureKind::NotFound, Class::NotFound, format!("{} has no physical id", self.name))
        })
    }
}
