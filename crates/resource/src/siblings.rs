//! The resources of one stack as their types see each other, before anything is created.

use std::cell::LazyCell;
use std::collections::HashMap;

use kiln_value::Map;

/// A resource of a stack.
pub struct Sibling<'a> {
    /// Logical name.
    pub name: &'a str,
    /// Type.
    pub resource_type: &'a str,
    /// Names of the resources that it references.
    pub requires: &'a [String],
    properties: LazyCell<Map, Box<dyn FnOnce() -> Map + 'a>>,
}

impl<'a> Sibling<'a> {
    /// A resource whose properties are computed when a type asks for them.
    pub fn new(
        name: &'a str,
        resource_type: &'a str,
        requires: &'a [String],
        properties: impl FnOnce() -> Map + 'a,
    ) -> Self {
        Self { name, resource_type, requires, properties: LazyCell::new(Box::new(properties)) }
    }

    /// Properties as known before anything is created: a reference to a resource is `{"get_resource": name}`, other
    /// unknown values are null.
    pub fn properties(&self) -> &Map {
        &self.properties
    }
}

/// All resources of a stack, by name and by type: a type that asks for some of them does not read the others.
#[derive(Default)]
pub struct Siblings<'a> {
    all: Vec<Sibling<'a>>,
    by_name: HashMap<&'a str, usize>,
    by_type: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Siblings<'a> {
    /// The resource with a name.
    pub fn get(&self, name: &str) -> Option<&Sibling<'a>> {
        self.by_name.get(name).map(|at| &self.all[*at])
    }

    /// The resources of a type, in the order in which they were added.
    pub fn of_type(&self, resource_type: &str) -> impl Iterator<Item = &Sibling<'a>> {
        self.by_type.get(resource_type).into_iter().flatten().map(|at| &self.all[*at])
    }

    /// All resources.
    pub fn iter(&self) -> impl Iterator<Item = &Sibling<'a>> {
        self.all.iter()
    }
}

impl<'a> FromIterator<Sibling<'a>> for Siblings<'a> {
    fn from_iter<T: IntoIterator<Item = Sibling<'a>>>(siblings: T) -> Self {
        let mut found = Self::default();
        for sibling in siblings {
            let at = found.all.len();
            found.by_name.insert(sibling.name, at);
            found.by_type.entry(sibling.resource_type).or_default().push(at);
            found.all.push(sibling);
        }
        found
    }
}
