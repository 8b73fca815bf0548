//! The requests of a simple REST resource: the `rest` section of a definition file (docs/resource-types.md).

use std::time::Duration;

use indexmap::IndexMap;
use kiln_value::Map;

use crate::Method;

/// The requests of a type whose objects are in a REST collection.
///
/// In paths, `{id}` is the physical ID (its last segment if it is a URL), `{project}` the ID of the project, `{x}` the
/// property `x`, and `{x:finder}` the ID of the object that the property `x` names.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// The path where objects are created and listed.
    pub collection: String,
    /// The path of one object.
    pub item: String,
    /// Key of the object in requests and responses.
    pub member: Option<String>,
    /// Key of the list.
    pub list: String,
    /// Key of the object's ID.
    pub id: String,
    /// Microversion of every request.
    pub microversion: Option<String>,
    /// The property that gets the physical name if it is not given.
    pub name: Option<String>,
    /// The create request.
    pub create: RestCreate,
    /// The update request; `None` if updates are not possible.
    pub update: Option<RestUpdate>,
    /// The delete request.
    pub delete: RestDelete,
    /// When an object is ready; `None`: immediately.
    pub ready: Option<Ready>,
    /// How the object of a lost create is identified.
    pub adopt: Adopt,
    /// How the service filters lists.
    pub filter: Filter,
    /// Whether requests have no key around the object although responses do.
    pub bare: bool,
    /// Texts of the conflicts (409) that end by themselves: the object, or one that it belongs to, is being changed.
    pub busy: Vec<String>,
    /// Properties that are sent in separate requests.
    pub parts: IndexMap<String, RestPart>,
}

/// The request that creates an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RestCreate {
    /// Usually POST.
    pub method: Method,
    /// Usually the collection.
    pub path: String,
    /// Properties that are not sent.
    pub omit: Vec<String>,
    /// Constant entries of the body.
    pub add: Map,
    /// Query parameters of the request.
    pub query: Map,
}

/// The request that updates an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RestUpdate {
    /// PUT, PATCH or POST.
    pub method: Method,
    /// Usually the item.
    pub path: String,
    /// Properties that are not sent.
    pub omit: Vec<String>,
    /// Whether all properties are sent instead of only the changed ones.
    pub whole: bool,
    /// Whether the body is a JSON patch: a list of replaced keys.
    pub json_patch: bool,
}

/// The request that deletes an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RestDelete {
    /// Usually the item.
    pub path: String,
    /// Whether the object is deleted only when GET returns 404.
    pub wait: bool,
    /// States of an object whose delete has failed.
    pub failed: Vec<String>,
    /// Query parameters of the request.
    pub query: Map,
}

/// When an object is ready. Values are compared without regard to case.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// Path of the state in the object.
    pub at: Vec<String>,
    /// States of a ready object.
    pub done: Vec<String>,
    /// States of a ready object after an update, if they are others.
    pub updated: Vec<String>,
    /// States of a failed object.
    pub failed: Vec<String>,
    /// The states in which a new object is not ready yet; if there are any, every other state is a failure.
    pub waiting: Vec<String>,
    /// Path of the reason of a failure in the object.
    pub reason: Option<Vec<String>>,
    /// The initial polling interval; it increases.
    pub every: Duration,
}

/// How the object of a lost create is distinguished from others. The first one that applies is used, in this order; a
/// create without any is not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adopt {
    /// The client chooses the ID: that of the template, or the token of the attempt.
    pub id: bool,
    /// The physical name, which is unique. If the template specifies a name and there is no mark, the physical name is
    /// sent first, and an update sets the given name.
    pub name: bool,
    /// The token of the attempt in this property or key of the body. If the template specifies it, the token is sent
    /// first, and an update sets the given value.
    pub mark: Option<String>,
    /// The key of the object with the time of its creation. If there is one, a mark that an update would remove is not
    /// sent: the object is found by its name, its properties and this time.
    pub created: Option<String>,
    /// The service does not show when objects were created: instead, the objects with the name are listed before the
    /// create, and are not the one.
    pub listed: bool,
    /// A natural key: the service does not allow two objects with the same values of these properties.
    pub key: Vec<String>,
}

/// How a service filters a list by the values of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// By query parameters with the names of the keys.
    #[default]
    Values,
    /// By one condition, in the parameters `q.field`, `q.op` and `q.value`.
    Query,
    /// Not at all: the service rejects parameters.
    Nothing,
}

/// A property that is sent in a separate request with the body `{ <wire>: value }`.
#[derive(Clone, Debug, PartialEq)]
pub struct RestPart {
    /// Usually PUT.
    pub method: Method,
    /// The path.
    pub path: String,
    /// Key in the body.
    pub wire: String,
}
