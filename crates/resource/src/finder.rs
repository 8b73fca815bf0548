//! How the objects of a type are found by name or ID: the `finder` section of a definition file
//! (docs/resource-types.md). Requests and errors are those of the client libraries that Heat uses.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Key of the ID of an object.
    pub id: String,
    /// Key by whose value the list is searched; `None`: only the ID counts, or the service accepts names in its place.
    pub by: Option<String>,
    /// The library.
    pub client: FinderClient,
    /// The word for an object in errors.
    pub word: String,
}

/// The library whose requests and errors a finder has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinderClient {
    /// An object by ID, then a list; Heat's own errors: `The Volume (x) could not be found.`
    #[default]
    Heat,
    /// As Heat, with the errors of osc-lib: `x not found (HTTP 404)`.
    Osc,
    /// As Heat, with the errors of openstacksdk: `No Flavor found for x`.
    Sdk,
    /// Lists with `fields`, by `id` for what looks like a UUID, then by `name`; errors of Heat's Neutron plug-in.
    Neutron,
    /// As Heat, with the errors of Heat's Neutron plug-in: `Unable to find port_pair with name or id 'x'`.
    NeutronExtension,
}

/// The finders of resource types, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finders(Arc<BTreeMap<String, Finder>>);

impl Finders {
    /// The finders of these types.
    pub fn of<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Self {
        let finders = types.into_iter().filter_map(|this| this.finder.clone());
        Self(Arc::new(finders.map(|finder| (finder.name.clone(), finder)).collect()))
    }

    /// The finder of this name.
    pub fn get(&self, name: &str) -> Option<&Finder> {
        self.0.get(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
