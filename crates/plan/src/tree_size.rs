//! The number of resources of a stack with all its nested stacks, before they are built.

use kiln_resource::{Facts, properties};
use kiln_template::Definition;

use crate::ResourceTypes;
use crate::blueprint::{Blueprint, Nesting, Sources};
use crate::kind::Kind;
use crate::stack_scope::Draft;

impl Blueprint {
    /// The number of resources of the whole tree, as far as it is known, or any number above `most` if there are more.
    /// Members of a group are multiplied, not built; stacks deeper than `max_depth` are left to the validation.
    pub fn tree_size(&self, catalog: &ResourceTypes, most: usize, max_depth: u32) -> usize {
        let mut size = self.definitions().len();
        let draft = Draft::of(self);
        for definition in self.definitions().values() {
            if size > most {
                break;
            }
            size = size.saturating_add(self.size_inside(definition, &draft, catalog, most, max_depth).unwrap_or(0));
        }
        size
    }

    /// The number of resources in a resource's nested stack; `None` if there is none, or if it is not known yet.
    fn size_inside(
        &self,
        definition: &Definition,
        draft: &Draft<'_>,
        catalog: &ResourceTypes,
        most: usize,
        max_depth: u32,
    ) -> Option<usize> {
        let kind = self.kind(&definition.name).filter(|kind| kind.is_nested())?;
        let (given, _) = self.draft_properties(definition, draft).ok()?;
        let properties = properties::resolve(&kind.resource_type().properties, &given).unwrap_or(given);
        let inside = |sources: Sources| {
            let place = Nesting { facade: Some(self.facade_of(definition)), depth: self.place.depth + 1 };
            if place.depth > max_depth {
                return None;
            }
            let nested = Blueprint::build(sources, catalog, self.identity.clone(), place).ok()?;
            Some(nested.tree_size(catalog, most, max_depth))
        };
        let described = match kind {
            Kind::Template(provider) => return inside(self.provider_sources(definition, provider, &properties).ok()?),
            Kind::Type(entry) => entry.driver.nested_stack()?,
        };
        let facts = Facts { name: definition.name.clone(), properties, ..Facts::default() };
        let Some(members) = described.group().and_then(|group| group.initial_size(&facts)) else {
            let nested = described.nested(&facts, &[])?.ok()?;
            return inside(self.group_sources(definition, nested).ok()?);
        };
        if members > most {
            return Some(members);
        }
        let one = described.draft(&facts, &[])?.ok()?;
        let each = self.group_sources(definition, one).ok().and_then(inside).unwrap_or(1);
        Some(members.saturating_mul(each))
    }
}
