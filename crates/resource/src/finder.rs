//! How objects are found by name or ID: the sections `finder` and `finders` of a definition file
//! (docs/resource-types.md). Requests and errors are those of the client libraries that Heat uses.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_value::Class;

use crate::ResourceType;

/// Finds objects of a collection by name or ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finder {
    /// The name of the finder, and of the custom constraint: `neutron.network`.
    pub name: String,
    /// Service type in the catalog.
    pub service: String,
    /// The extension of the service that is required.
    pub extension: Option<String>,
    /// The path of the objects.
    pub collection: String,
    /// The path of one object, with `{id}`.
    pub item: String,
    /// Key of the ID of an object; `None`: the result is the value itself, of an object that exists.
    pub id: Option<String>,
    /// How IDs are looked for.
    pub ids: Ids,
    /// Key by whose value the list is searched; `None`: only the ID counts, or the service accepts names in its place.
    pub by: Option<String>,
    /// Whether the service filters the list by this key.
    pub filter: bool,
    /// Whether the list is read page by page, with the query parameter `marker`.
    pub pages: bool,
    /// Query parameters of the list; `{project}` is the ID of the project.
    pub query: Vec<(String, String)>,
    /// Values may have the form `name{scope}`: the query parameter of the scope, and the finder of its ID.
    pub within: Option<(String, String)>,
    /// The library.
    pub client: FinderClient,
    /// The word for an object in errors.
    pub word: String,
    /// The error if there is no such object.
    pub missing: Missing,
    /// What happens if several objects have the name.
    pub several: Several,
}

/// The library whose requests and errors a finder has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinderClient {
    /// An object by ID, then a list; Heat's own errors: `The Volume (x) could not be found.`
    #[default]
    Heat,
    /// As Heat, with the errors of osc-lib: `x not found (HTTP 404)`.
    Osc,
    /// As Heat, with the errors of openstacksdk: `No Segment found for x`.
    Sdk,
    /// Lists with `fields`, by `id` for what looks like a UUID, then by `name`; errors of Heat's Neutron plug-in.
    Neutron,
    /// As Heat, with the errors of Heat's Neutron plug-in: `Unable to find port_pair with name or id 'x'`.
    NeutronExtension,
}

/// How the object with an ID is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// It is read.
    #[default]
    Read,
    /// It is read if the value looks like a UUID.
    Uuid,
    /// What looks like a UUID is one, and is not looked for. Heat finds these names in its calls, so what goes wrong is a
    /// failure of the call, not an error of the property.
    Taken,
    /// The ID is the last segment of the value, which is a URL.
    Url,
    /// It is in the list.
    List,
    /// Not at all.
    Never,
}

/// An error that a definition file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Heat's class.
    pub class: Class,
    /// The text, with `{value}`, `{quoted}` (as Python shows a text) and `{known}` (the names in the list).
    pub text: String,
}

/// The error for a missing object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// That of the client.
    #[default]
    Usual,
    /// The response of the service.
    Response,
    /// This one.
    Custom(Complaint),
}

/// The result if several objects have a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Several {
    /// The error of the client.
    #[default]
    Usual,
    /// The first object.
    First,
    /// The error for a missing object.
    Missing,
    /// This error.
    Custom(Complaint),
}

/// The finders of resource types, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finders(Arc<BTreeMap<String, Finder>>);

impl Finders {
    /// The finders of these types.
    pub fn of<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Self {
        let finders = types.into_iter().flat_map(|this| this.finders.clone());
        Self(Arc::new(finders.map(|finder| (finder.name.clone(), finder)).collect()))
    }

    /// The finder of this name.
    pub fn get(&self, name: &str) -> Option<&Finder> {
        self.0.get(name)
    }

    /// The finders of the objects at a path of a service.
    pub fn of_collection(&self, service: &str, path: &str) -> impl Iterator<Item = &Finder> {
        self.0.values().filter(move |finder| finder.service == service && finder.collection == path)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
