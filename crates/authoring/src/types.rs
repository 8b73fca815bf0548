//! The resource types behind the names in a template.

use kiln_plan::ResourceTypes;
use kiln_resource::{PropertySchema, ResourceType};
use kiln_template::environment::{Environment, Resolved};
use kiln_value::{Path, Segment, Value};

use crate::Page;

/// The type that a name stands for, Heat's aliases included; `None` for templates and for names that nobody knows.
pub fn type_named<'c>(catalog: &'c ResourceTypes, name: &str) -> Option<&'c ResourceType> {
    let found = Environment::default().implementation(&catalog.globals, &Value::from(name), "").ok()?;
    match found.resolved {
        Resolved::Type(name) => catalog.types.get(&name).map(|entry| &entry.resource_type),
        Resolved::Template(_) => None,
    }
}

impl Page {
    /// The type of a resource; `None` as for [`type_named`].
    pub(crate) fn resource_type<'c>(&self, catalog: &'c ResourceTypes, resource: &str) -> Option<&'c ResourceType> {
        type_named(catalog, self.type_of(resource)?)
    }
}

/// The schema of the property that a path below `properties` leads to.
pub(crate) fn property<'t>(of: &'t ResourceType, path: &[Segment]) -> Option<&'t PropertySchema> {
    let (first, rest) = path.split_first()?;
    let Segment::Key(name) = first else { return None };
    let mut schema = of.properties.get(name)?;
    for segment in rest {
        schema = match segment {
            Segment::Key(key) => schema.members()?.get(key)?,
            Segment::Index(_) => schema.items()?,
        };
    }
    Some(schema)
}

/// The resource and the rest of a path below its properties.
pub(crate) fn below_properties<'p>(page: &Page, path: &'p Path) -> Option<(&'p str, &'p [Segment])> {
    let words = page.template.words();
    match path.0.as_slice() {
        [Segment::Key(section), Segment::Key(resource), Segment::Key(properties), rest @ ..]
            if section == words.resources && properties == words.properties =>
        {
            Some((resource, rest))
        }
        _ => None,
    }
}
