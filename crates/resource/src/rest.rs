//! The requests of a simple REST resource: the `rest` section of a definition file (docs/resource-types.md).

use std::time::Duration;

use indexmap::IndexMap;
use kiln_value::Map;

use crate::Method;

/// Requests of a type whose objects live in a REST collection.
///
/// In every path `{id}` is the physical id (its last segment if it is a URL), `{project}` the project's id, `{x}` the
/// property `x`, and `{x:finder}` the id of the object that the property `x` names.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// Where objects are made and listed.
    pub collection: String,
    /// One object.
    pub item: String,
    /// Key around an object in requests and answers.
    pub member: Option<String>,
    /// Key around the list.
    pub list: String,
    /// Key of the object's id.
    pub id: String,
    /// Microversion of every request.
    pub microversion: Option<String>,
    /// The property that is sent as the physical name where it is not given.
    pub name: Option<String>,
    /// How it is made.
    pub create: RestCreate,
    /// How it is changed; none if it cannot be.
    pub update: Option<RestUpdate>,
    /// How it is taken away.
    pub delete: RestDelete,
    /// When it is ready; none if at once.
    pub ready: Option<Ready>,
    /// How what a lost create made is told.
    pub adopt: Adopt,
    /// How the service filters lists.
    pub filter: Filter,
    /// Whether requests have no key around the object although responses do.
    pub bare: bool,
    /// Texts of the conflicts (409) that end by themselves: the object, or one that it belongs to, is being changed.
    pub busy: Vec<String>,
    /// Properties that are sent by requests of their own.
    pub parts: IndexMap<String, RestPart>,
}

/// The request that makes an object.
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
}

/// The request that changes an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RestUpdate {
    /// PUT, PATCH or POST.
    pub method: Method,
    /// Usually the item.
    pub path: String,
    /// Properties that are not sent.
    pub omit: Vec<String>,
    /// Whether all properties are sent and not only the changed ones.
    pub whole: bool,
    /// Whether the body is a JSON patch: a list of replaced keys.
    pub json_patch: bool,
}

/// The request that takes an object away.
#[derive(Clone, Debug, PartialEq)]
pub struct RestDelete {
    /// Usually the item.
    pub path: String,
    /// Whether it is gone only when GET answers 404.
    pub wait: bool,
}

/// When an object is ready. Values are compared without regard to case.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// Path of the state in the object.
    pub at: Vec<String>,
    /// States of a ready object.
    pub done: Vec<String>,
    /// States of a failed object.
    pub failed: Vec<String>,
    /// The states in which a new object is not ready yet; if there are any, every other state is a failure.
    pub waiting: Vec<String>,
    /// Path of the reason of a failure in the object.
    pub reason: Option<Vec<String>>,
    /// Time between the first polls; later ones are further apart.
    pub every: Duration,
}

/// What tells the object that a lost create made from all others. The first that is there counts, in this order; a
/// create with none of them is not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adopt {
    /// The service lets its client choose the id: that of the template, else the attempt's token.
    pub id: bool,
    /// The physical name, which is unique: sent where the template gives no name, and sent first where it does and
    /// there is no mark, but an update that sets the given one.
    pub name: bool,
    /// The attempt's token in this property or key of the body. Where the template fills it, the token is sent first
    /// and an update sets the given value.
    pub mark: Option<String>,
    /// Properties of which the service lets no two objects have the same values: a natural key.
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
    /// Not at all: parameters would be rejected.
    Nothing,
}

/// A property that is sent on its own: body `{ <wire>: value }`.
#[derive(Clone, Debug, PartialEq)]
pub struct RestPart {
    /// Usually PUT.
    pub method: Method,
    /// Where to.
    pub path: String,
    /// Key in the body.
    pub wire: String,
}
