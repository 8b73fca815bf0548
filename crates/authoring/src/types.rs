//! Looks up the resource types of a template.

use std::borrow::Cow;

use kiln_plan::{Provider, ResourceTypes};
use kiln_resource::{AttributeSchema, PropertySchema, ResourceType};
use kiln_template::environment::{Environment, Resolved};
use kiln_value::{Path, Segment, Value};

use crate::Page;
use crate::language::Surroundings;

/// The type with this name, with Heat's aliases; `None` for templates and unknown names.
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

/// The schema of the property at a path below `properties`.
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

/// The type with this name. The name of a child template is accepted too: its type has a property for each parameter
/// and an attribute for each output.
pub(crate) fn type_or_child<'c>(
    catalog: &'c ResourceTypes,
    around: &Surroundings,
    name: &str,
) -> Option<Cow<'c, ResourceType>> {
    let found = around.environment.clone().implementation(&catalog.globals, &Value::from(name), "").ok()?;
    let url = match found.resolved {
        Resolved::Type(name) => return Some(Cow::Borrowed(&catalog.types.get(&name)?.resource_type)),
        Resolved::Template(url) => url,
    };
    let provider = Provider::new(&url, name, around.files.get(&url)?).ok()?;
    let mut child = provider.resource_type;
    child.summary = provider.template.description();
    let words = provider.template.words();
    let outputs = provider.template.as_value().get(words.outputs).and_then(Value::as_map);
    for (output, declared) in outputs.into_iter().flatten() {
        let description = declared.str_at(words.description).map(str::to_owned);
        child.attributes.insert(output.clone(), AttributeSchema { description, ..AttributeSchema::default() });
    }
    Some(Cow::Owned(child))
}

/// A resource definition and a path below its properties. Definitions may be nested in properties of others: the
/// members of groups.
pub(crate) struct Definition<'p> {
    /// The name of its type.
    pub(crate) type_name: &'p str,
    /// The path of its properties.
    pub(crate) properties: Path,
    /// The path below them.
    pub(crate) rest: &'p [Segment],
}

/// The innermost definition with properties that contain a path.
pub(crate) fn below_properties<'p>(page: &'p Page, path: &'p Path) -> Option<Definition<'p>> {
    let words = page.template.words();
    let segments = path.0.as_slice();
    let Some(Segment::Key(section)) = segments.first() else { return None };
    if section != words.resources {
        return None;
    }
    let mut found = None;
    let mut value = page.value();
    for (index, segment) in segments.iter().enumerate() {
        let Segment::Key(key) = segment else {
            value = walk_in(value, segment)?;
            continue;
        };
        let is_own = index == 2 && key == words.properties;
        // Members of groups have HOT's keys, whatever the language of the template.
        let is_member = index > 3 && key == "properties" && is_member_key(segments.get(index - 1));
        let type_key = if is_own { words.resource_type } else { "type" };
        if (is_own || is_member)
            && let Some(type_name) = value.str_at(type_key)
        {
            let properties = Path(segments.get(..=index)?.to_vec());
            found = Some(Definition { type_name, properties, rest: segments.get(index + 1..)? });
        }
        match walk_in(value, segment) {
            Some(inner) => value = inner,
            None => break,
        }
    }
    found
}

/// Whether a property contains the definition of a group's members.
pub(crate) fn is_member_key(segment: Option<&Segment>) -> bool {
    matches!(segment, Some(Segment::Key(key)) if key == "resource_def" || key == "resource")
}

fn walk_in<'v>(value: &'v Value, segment: &Segment) -> Option<&'v Value> {
    match segment {
        Segment::Key(key) => value.get(key),
        Segment::Index(index) => value.at(*index),
    }
}

/// Whether the value at a path is the type of a resource or of a group's member.
pub(crate) fn is_type(page: &Page, path: &Path) -> bool {
    let words = page.template.words();
    match path.0.as_slice() {
        [Segment::Key(section), Segment::Key(_), Segment::Key(key)] => {
            section == words.resources && key == words.resource_type
        }
        [Segment::Key(section), .., member, Segment::Key(key)] => {
            section == words.resources && key == "type" && is_member_key(Some(member))
        }
        _ => false,
    }
}
