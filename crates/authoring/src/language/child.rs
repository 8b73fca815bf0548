//! Definitions of properties and attributes of nested stacks: parameters and outputs of the child template.

use kiln_plan::ResourceTypes;
use kiln_template::environment::Resolved;
use kiln_value::{Path, Position, Segment, Span, Value};

use super::mention_at;
use super::surroundings::Surroundings;
use crate::Page;
use crate::mention::Role;
use crate::types::below_properties;
use crate::walk::value_at;

/// A part of a child template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPart {
    /// The name of the child in the template or the environment.
    pub file: String,
    /// The name of the parameter or the output.
    pub name: String,
    is_output: bool,
}

impl ChildPart {
    /// The declaration of the part in the child, if there is one.
    pub fn place(&self, child: &Page) -> Option<Span> {
        let words = child.template.words();
        let section = if self.is_output { words.outputs } else { words.parameters };
        let path = Path::root().key(section).key(self.name.as_str());
        value_at(child.value(), &path)?;
        Some(child.span(&path))
    }
}

/// The part of a child template that the name at a position refers to.
pub fn child_part(page: &Page, at: Position, catalog: &ResourceTypes, around: &Surroundings) -> Option<ChildPart> {
    let template = |type_name: &str| {
        let found = around.environment.clone().implementation(&catalog.globals, &Value::from(type_name), "").ok()?;
        match found.resolved {
            Resolved::Template(url) => Some(url),
            Resolved::Type(_) => None,
        }
    };
    if let Some(mention) = mention_at(page, at) {
        let Role::Attribute(resource) = &mention.role else { return None };
        return Some(ChildPart { file: template(page.type_of(resource)?)?, name: mention.name, is_output: true });
    }
    let (path, on_key) = page.at(at);
    let definition = below_properties(page, &path).filter(|_| on_key)?;
    let [Segment::Key(name)] = definition.rest else { return None };
    Some(ChildPart { file: template(definition.type_name)?, name: name.clone(), is_output: false })
}
