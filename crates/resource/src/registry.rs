//! The available resource types with their drivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_template::hint::nearest;
use kiln_value::{Class, Diagnostic};

use crate::{Driver, Finders, NotImplemented, ResourceType};

/// A type and its driver.
pub struct RegisteredType {
    /// The type.
    pub resource_type: ResourceType,
    /// Its driver.
    pub driver: Arc<dyn Driver>,
}

/// All resource types by name. Built once at the start.
#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<String, Arc<RegisteredType>>,
}

impl Registry {
    /// No types.
    pub fn new() -> Self {
        Self::default()
    }

    /// The given types with the drivers that `driver` returns. A type without a driver is validated and shown, but
    /// cannot be created.
    pub fn build(
        types: impl IntoIterator<Item = ResourceType>,
        mut driver: impl FnMut(&ResourceType) -> Option<Arc<dyn Driver>>,
    ) -> Self {
        let mut registry = Self::new();
        for resource_type in types {
            let driver = driver(&resource_type).unwrap_or_else(|| Arc::new(NotImplemented));
            registry.insert(resource_type, driver);
        }
        registry
    }

    /// Adds a type; replaces one with the same name.
    pub fn insert(&mut self, resource_type: ResourceType, driver: Arc<dyn Driver>) {
        self.entries.insert(resource_type.name.clone(), Arc::new(RegisteredType { resource_type, driver }));
    }

    /// The type of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredType>> {
        self.entries.get(name)
    }

    /// The names of all types, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// All types, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RegisteredType>> {
        self.entries.values()
    }

    /// The finders of all types.
    pub fn finders(&self) -> Finders {
        Finders::of(self.iter().map(|entry| &entry.resource_type))
    }

    /// The driver that rejects a type without a driver; the template calls the type `name`.
    pub fn refusal(&self, this: &ResourceType, name: &str) -> Option<Diagnostic> {
        let entry = self.get(&this.name)?;
        // A template may stand for a type of the same name.
        if !std::ptr::eq(&raw const entry.resource_type, this) || entry.driver.is_implemented() {
            return None;
        }
        let text = format!("HEAT-E99001 Resource type {name} is not implemented by Kiln yet.");
        Some(Diagnostic::new(Class::ResourceTypeUnavailable, text))
    }

    /// The most similar name.
    pub fn suggest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names())
    }
}
